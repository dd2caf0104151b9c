package signalbox_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// FuzzNames asserts that every valid name, id, session and queue is safe in a path,
// a header and a log line, and that a queue made from a valid name is valid.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"coder", "a.b-c_d", "..", "a..b", "", "-a", "ä", "a/b", "a\x00", "commands@local", "agent:coder", "pool:", "queue-01JHZ0000000000000000000", strings.Repeat("a", 65), "work", "bypass:x", "host-8080", "a\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		plain := func(what string, most int) {
			if s == "" || len(s) > most || strings.ContainsAny(s, "/\\%?#&\"'<>") || strings.Contains(s, "..") || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Errorf("%q is taken for %s", s, what)
			}
		}
		if signalbox.ValidName(s) {
			plain("a name", signalbox.MaxAgentNameLength)
			for _, queue := range []string{signalbox.AgentQueue(s), signalbox.PoolQueue(s)} {
				if !signalbox.ValidQueue(queue) {
					t.Errorf("%q is a name, and %q no queue", s, queue)
				}
			}
			if signalbox.IsExecutor(s) {
				t.Errorf("%q is a name that an agent can have, and that of an executor", s)
			}
		}
		if signalbox.ValidSessionID(s) {
			plain("the id of a session", signalbox.MaxSessionIDLength)
		}
		if signalbox.ValidInstance(s) {
			plain("the name of a director", 256)
			if kind, own := signalbox.ExecutorKind(signalbox.ExecutorName(signalbox.ExecutorCommands, s)); !own || kind != signalbox.ExecutorCommands {
				t.Errorf("the executor of %q is not known again: %q %t", s, kind, own)
			}
		}
		if signalbox.ValidID(s) {
			plain("an id", 128)
		}
		if signalbox.ValidQueue(s) {
			plain("a queue", 128)
		}
	})
}
