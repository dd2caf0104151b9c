package cli_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/cli"
)

// Output that the log has shown is not printed again as the result.
func TestWaitForAToolTaskOnATerminal(t *testing.T) {
	f := newFake(t)
	p := start(t, f, cli.IO{OutTTY: true, ErrTTY: true, Columns: 100}, "tools", "call", "report", "--task", "--wait")
	p.err.waitFor(t, "Queued: "+id(1)+" (position 1)\n")
	p.err.waitFor(t, "\r\x1b[Kqueue-…0001 · 1st for commands")
	f.change(1, "claim", "dispatching")
	p.err.waitFor(t, "\r\x1b[Kqueue-…0001 · dispatching · 10 min")
	f.change(1, "accept", "working")
	p.err.waitFor(t, "\r\x1b[K"+id(1)+" working\n")
	f.finish(1, "completed", "the report")
	p.expectExit(t, 0)
	if got, want := p.out.String(), "the report\n"; got != want {
		t.Fatalf("standard output %q, want %q, once", got, want)
	}
}

// A token with the scope tool alone can wait for its call: the routes that it may
// not read only show progress.
func TestWaitForAToolTaskWithATokenForTools(t *testing.T) {
	f := newFake(t)
	f.mu.Lock()
	for _, route := range []string{"task", "events", "output", "why"} {
		f.refuse[route] = api.Error{Error: "forbidden", Message: "this needs the scope read", RetryAfter: 403}
	}
	f.polled[id(1)] = true // the client cannot read the task
	f.mu.Unlock()
	p := start(t, f, cli.IO{}, "tools", "call", "echo", "--task", "--wait")
	p.expectExit(t, 0)
	if got, want := p.out.String(), "from the tool\nstderr:\na warning\n"; got != want {
		t.Fatalf("standard output %q, want %q", got, want)
	}
}
