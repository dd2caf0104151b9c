package cli_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// Output that the log has shown already is not printed again as the result.
func TestWaitForAToolTaskOnATerminal(t *testing.T) {
	f := newDirector(t)
	p := start(t, f, cli.IO{OutTTY: true, ErrTTY: true, Columns: 100}, "tools", "call", "report", "--task", "--wait")
	p.err.waitFor(t, " (position 1)\n")
	p.err.waitFor(t, "\r\x1b[Kqueue-…5v94 · 1st for commands")
	claimed := f.claim(f.id(1))
	p.err.waitFor(t, "\r\x1b[Kqueue-…5v94 · dispatching · 10 min")
	f.accept(claimed)
	p.err.waitFor(t, "\r\x1b[K"+f.id(1)+" working\n")
	f.complete(1, "the report")
	p.expectExit(t, 0)
	if got, want := p.out.String(), "the report\n"; got != want {
		t.Fatalf("standard output %q, want %q, once", got, want)
	}
}

// A token with only the scope tool can wait for its call: the routes that it may not
// read only show progress.
func TestWaitForAToolTaskWithATokenForTools(t *testing.T) {
	t.Parallel()
	f := newDirector(t)
	f.close()
	secret := f.AddToken(identity.NewToken{Name: "tools", Scopes: []signalbox.Scope{signalbox.ScopeTool}})
	p := start(t, f, cli.IO{}, "tools", "call", "echo", "--task", "--wait", "--token", secret)
	p.err.waitFor(t, " pending\n")
	f.play(f.id(1))
	p.expectExit(t, 0)
	if got, want := p.out.String(), "from the tool\nstderr:\na warning\n"; got != want {
		t.Fatalf("standard output %q, want %q", got, want)
	}
}
