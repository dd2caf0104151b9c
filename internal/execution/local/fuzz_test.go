package local

import (
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// FuzzPlace: the place of a page of tool tasks is one of the two queues, or
// refused.
func FuzzPlace(f *testing.F) {
	for _, s := range []string{"", "commands:1:2:3", "calls:-1:2:3", "work:1:2:3", "commands", "commands:1:2", "commands:99999999999999999999:1:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		queue, _, _, err := parsePlace(s)
		if err == nil && queue != signalbox.QueueCommands && queue != signalbox.QueueCalls {
			t.Fatalf("%q leads to queue %q", s, queue)
		}
	})
}
