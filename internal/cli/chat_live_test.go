package cli_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

func TestChatOnATerminal(t *testing.T) {
	f := newDirector(t)
	f.ran(3*time.Minute, 2*time.Minute, time.Minute, time.Minute, time.Minute)
	f.occupy()
	p := start(t, f, cli.IO{OutTTY: true, ErrTTY: true, Columns: 100}, "chat", "coder", "queued \x1b[2Jhello", "-f")
	p.expectExit(t, 0)
	want := "\r\x1b[Kqueue-…0080 · Queued at position 2 (about 1–4 min)" +
		"\r\x1b[Kqueue-…0080 · Queued at position 1 (about 0–60 s)" +
		"\r\x1b[KRunning on coder: " + f.id(8) + "\n"
	if p.err.String() != want {
		t.Errorf("standard error %q\nwant %q", p.err, want)
	}
	if got := p.out.String(); got != "thinking\nhello\n" {
		t.Errorf("standard output %q", got)
	}
}

func TestChatWithoutAMessageOnATerminal(t *testing.T) {
	p := start(t, newDirector(t), cli.IO{InTTY: true}, "chat", "coder")
	p.expectExit(t, 2)
	if !strings.Contains(p.err.String(), "no message: want signalbox chat AGENT MESSAGE") {
		t.Fatal(p.err)
	}
}

func TestInterruptDetachesFromAChat(t *testing.T) {
	for message, state := range map[string]string{"hang": "running", "line": "queued"} {
		t.Run(message, func(t *testing.T) {
			f := newDirector(t)
			n := 1
			if message == "line" {
				f.occupy()
				n = 3
			}
			p := start(t, f, cli.IO{}, "chat", "coder", message)
			p.err.waitFor(t, map[string]string{"hang": "Running on coder: ", "line": "Queued at position 2"}[message])
			p.interrupt()
			p.expectExit(t, 130)
			for _, want := range []string{"Detached: " + f.id(n) + " goes on (" + state + ").\n", "signalbox logs -f " + f.id(n), "signalbox cancel " + f.id(n)} {
				if !strings.Contains(p.err.String(), want) {
					t.Errorf("%q is missing in %q", want, p.err)
				}
			}
			if p.out.String() != "" {
				t.Errorf("standard output: %q", p.out)
			}
		})
	}
}

func TestInterruptCancelsAChatWithCancelOnInterrupt(t *testing.T) {
	f := newDirector(t)
	f.occupy()
	p := start(t, f, cli.IO{}, "chat", "coder", "line", "--cancel-on-interrupt")
	p.err.waitFor(t, "Queued at position 2")
	p.interrupt()
	p.expectExit(t, 11)
	if state := f.task(3).State; state != "cancelled" || !strings.Contains(p.err.String(), "Error: "+f.id(3)+" cancelled\n") {
		t.Fatalf("%s %q", state, p.err)
	}
}

func TestInterruptOfAChatWhoseCancelIsNotConfirmed(t *testing.T) {
	f := newDirector(t)
	p := start(t, f, cli.IO{}, "chat", "coder", "hang", "--cancel-on-interrupt", "--json", "-f")
	p.out.waitFor(t, `{"event":"started","data":{}}`)
	p.interrupt()
	p.expectExit(t, 130)
	if state := f.task(1).State; state != "cancelling" {
		t.Errorf("the task is %s", state)
	}
	for _, want := range []string{`"error": "task_cancelling"`, `"queue_id": "` + f.id(1) + `"`} {
		if !strings.Contains(p.err.String(), want) {
			t.Errorf("%s is missing in %s", want, p.err)
		}
	}
}

// With --persist only the wait of the command ends, not the task.
func TestWaitForAPersistentChatEnds(t *testing.T) {
	t.Parallel()
	f := newDirector(t)
	f.occupy()
	p := start(t, f, cli.IO{}, "chat", "coder", "line", "--persist", "--wait-timeout", "400ms")
	p.expectExit(t, 124)
	if !strings.Contains(p.err.String(), "Error: the wait is over; "+f.id(3)+" goes on (queued)\n") {
		t.Fatal(p.err)
	}
	f.moveUp()
	f.moveUp()
	f.complete(3, "")
	p = start(t, f, cli.IO{}, "chat", "coder", "hang", "--persist", "--wait-timeout", "1h")
	p.err.waitFor(t, "Running on coder") // a chat that runs has no limit
	p.interrupt()
	p.expectExit(t, 130)
}

// If the director does not answer before the wait is over, it may have stored the task.
func TestWaitForAPersistentChatEndsBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	f := newDirector(t)
	f.proxy.answer("chat", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	p := start(t, f, cli.IO{}, "chat", "coder", "line", "--persist", "--wait-timeout", "50ms", "--idempotency-key", "k1")
	p.expectExit(t, 124)
	for _, want := range []string{"Error: the wait is over before the director answered\n", "--idempotency-key k1 finds it"} {
		if !strings.Contains(p.err.String(), want) {
			t.Errorf("%q is missing in %q", want, p.err)
		}
	}
}

func TestChatWithALostConnectionNamesTheTask(t *testing.T) {
	f := newDirector(t)
	p := start(t, f, cli.IO{}, "chat", "coder", "hang", "--idempotency-key", "k1")
	p.err.waitFor(t, "Running on coder")
	f.AddToken(identity.NewToken{Name: "admin", Scopes: []signalbox.Scope{signalbox.ScopeAdmin}}) // the director is closed now, and refuses the reconnect
	f.proxy.CloseClientConnections()
	p.expectExit(t, 4)
	if !strings.Contains(p.err.String(), "this director asks for a token; as far as is known, "+f.id(1)+" goes on") {
		t.Fatal(p.err)
	}
}
