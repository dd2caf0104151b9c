package gates

import (
	"maps"

	"github.com/signalbox-ai/signalbox"
)

// Load counts the tasks that wait at a gate.
type Load struct {
	Parked  int // they continue when it opens
	Waiting int // others that cannot start while it is closed
}

// Loads returns the load of each gate that has one. parked are all parked tasks, queues the numbers of
// waiting tasks by queue, parked ones included, and keeps returns the gate at which the tasks of a queue
// wait.
func Loads(parked []signalbox.Task, queues map[string]int, keeps func(queue string) signalbox.GateRef) map[signalbox.GateRef]Load {
	loads := map[signalbox.GateRef]Load{}
	left := maps.Clone(queues)
	for i := range parked {
		left[parked[i].Queue]--
		at := parked[i].Parking.Ref()
		l := loads[at]
		l.Parked++
		loads[at] = l
	}
	for queue, n := range left {
		if n <= 0 {
			continue
		}
		if at := keeps(queue); at != (signalbox.GateRef{}) {
			l := loads[at]
			l.Waiting += n
			loads[at] = l
		}
	}
	return loads
}
