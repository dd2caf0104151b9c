package accounts

import (
	"maps"

	"github.com/signalbox-ai/signalbox"
)

// Load counts the tasks that wait for an account.
type Load struct {
	Parked  int // they go on when it is open
	Waiting int // the others that cannot start because it is not
}

// Loads returns the load of each account that has one, by name. parked are all parked tasks,
// queues how many tasks wait in each queue, parked ones among them, and keeps returns the
// account because of which the tasks of a queue wait; "" for none.
func Loads(parked []signalbox.Task, queues map[string]int, keeps func(queue string) string) map[string]Load {
	loads := map[string]Load{}
	left := maps.Clone(queues)
	for i := range parked {
		left[parked[i].Queue]--
		if p := parked[i].Parking; p.Kind == signalbox.GateAccount {
			l := loads[p.Name]
			l.Parked++
			loads[p.Name] = l
		}
	}
	for queue, n := range left {
		if n <= 0 {
			continue
		}
		if name := keeps(queue); name != "" {
			l := loads[name]
			l.Waiting += n
			loads[name] = l
		}
	}
	return loads
}
