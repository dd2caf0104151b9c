package cli_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/cli"
)

func TestChatOnATerminal(t *testing.T) {
	f := newFake(t)
	p := start(t, f, cli.IO{OutTTY: true, ErrTTY: true, Columns: 100}, "chat", "coder", "queued \x1b[2Jhello", "-f")
	p.expectExit(t, 0)
	want := "\r\x1b[Kqueue-…0001 · Queued at position 2 (about 3–5 min)" +
		"\r\x1b[Kqueue-…0001 · Queued at position 1 (about 60–90 s)" +
		"\r\x1b[KRunning on coder: " + id(1) + "\n"
	if p.err.String() != want {
		t.Errorf("standard error %q\nwant %q", p.err, want)
	}
	if got := p.out.String(); got != "thinking\nhello\n" {
		t.Errorf("standard output %q", got)
	}
}

func TestChatWithoutAMessageOnATerminal(t *testing.T) {
	p := start(t, newFake(t), cli.IO{InTTY: true}, "chat", "coder")
	p.expectExit(t, 2)
	if !strings.Contains(p.err.String(), "no message: want signalbox chat AGENT MESSAGE") {
		t.Fatal(p.err)
	}
}

func TestInterruptDetachesFromAChat(t *testing.T) {
	for message, state := range map[string]string{"hang": "running", "line": "queued"} {
		t.Run(message, func(t *testing.T) {
			f := newFake(t)
			p := start(t, f, cli.IO{}, "chat", "coder", message)
			p.err.waitFor(t, map[string]string{"hang": "Running on coder: ", "line": "Queued at position 2"}[message])
			p.interrupt()
			p.expectExit(t, 130)
			for _, want := range []string{"Detached: " + id(1) + " goes on (" + state + ").\n", "signalbox logs -f " + id(1), "signalbox cancel " + id(1)} {
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
	f := newFake(t)
	p := start(t, f, cli.IO{}, "chat", "coder", "line", "--cancel-on-interrupt")
	p.err.waitFor(t, "Queued at position 2")
	p.interrupt()
	p.expectExit(t, 11)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tasks[0].State != "cancelled" || !strings.Contains(p.err.String(), "Error: "+id(1)+" cancelled\n") {
		t.Fatalf("%s %q", f.tasks[0].State, p.err)
	}
}

func TestInterruptOfAChatWhoseCancelIsNotConfirmed(t *testing.T) {
	f := newFake(t)
	p := start(t, f, cli.IO{}, "chat", "coder", "hang", "--cancel-on-interrupt", "--json", "-f")
	p.out.waitFor(t, `{"event":"started","data":{}}`)
	p.interrupt()
	p.expectExit(t, 130)
	for _, want := range []string{`"error": "task_cancelling"`, `"queue_id": "` + id(1) + `"`} {
		if !strings.Contains(p.err.String(), want) {
			t.Errorf("%s is missing in %s", want, p.err)
		}
	}
}

// With --persist it is the wait here that ends, not the task.
func TestWaitForAPersistentChatEnds(t *testing.T) {
	f := newFake(t)
	p := start(t, f, cli.IO{}, "chat", "coder", "line", "--persist", "--wait-timeout", "400ms")
	p.expectExit(t, 124)
	if !strings.Contains(p.err.String(), "Error: the wait is over; "+id(1)+" goes on (queued)\n") {
		t.Fatal(p.err)
	}
	p = start(t, f, cli.IO{}, "chat", "coder", "hang", "--persist", "--wait-timeout", "1h")
	p.err.waitFor(t, "Running on coder") // from here on nothing bounds it
	p.interrupt()
	p.expectExit(t, 130)
}

// A director that does not answer in the time of the wait may have stored it.
func TestWaitForAPersistentChatEndsBeforeTheAnswer(t *testing.T) {
	f := newFake(t)
	f.mu.Lock()
	p := start(t, f, cli.IO{}, "chat", "coder", "line", "--persist", "--wait-timeout", "50ms", "--idempotency-key", "k1")
	p.expectExit(t, 124)
	f.mu.Unlock()
	for _, want := range []string{"Error: the wait is over before the director answered\n", "--idempotency-key k1 finds it"} {
		if !strings.Contains(p.err.String(), want) {
			t.Errorf("%q is missing in %q", want, p.err)
		}
	}
}

func TestChatWithALostConnectionNamesTheTask(t *testing.T) {
	f := newFake(t)
	p := start(t, f, cli.IO{}, "chat", "coder", "hang", "--idempotency-key", "k1")
	p.err.waitFor(t, "Running on coder")
	f.mu.Lock()
	f.token = "closed" // the director was closed, and refuses who comes back
	f.mu.Unlock()
	f.CloseClientConnections()
	p.expectExit(t, 4)
	if !strings.Contains(p.err.String(), "a token is required; "+id(1)+" goes on as far as is known") {
		t.Fatal(p.err)
	}
}
