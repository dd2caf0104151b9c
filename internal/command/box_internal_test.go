package command

import (
	"os"
	"strconv"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/confine"
)

// A process that survived SIGKILL and is dead when its box is freed no longer
// holds the slot: if asked later, the box would report processes of the next
// run.
func TestAFreedBoxReportsNoProcesses(t *testing.T) {
	host, err := confine.Open(confine.Options{Name: "signalbox-test-box-" + strconv.Itoa(os.Getpid())})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}()
	u := &run{t: &Tool{host: host}}
	if err := u.takeBox(); err != nil {
		t.Fatal(err)
	}
	_, knows := u.box.Alive()
	o := Outcome{Alive: []int{4711}, Still: func() []int { return []int{4711} }}
	u.freeBox(&o)
	if (o.Still == nil) != knows || (o.Alive == nil) != knows {
		t.Errorf("a box that knows its processes (%v) leaves %+v", knows, o)
	}
}
