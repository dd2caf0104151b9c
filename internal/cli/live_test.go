package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/cli"
)

// outputBuffer is an output whose text a test can wait for.
type outputBuffer struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newOutputBuffer() *outputBuffer { return &outputBuffer{changed: make(chan struct{})} }

func (s *outputBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

func (s *outputBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// waitFor waits until a text has been written.
func (s *outputBuffer) waitFor(t *testing.T, text string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		s.mu.Lock()
		changed, shown := s.changed, strings.Contains(s.text.String(), text)
		s.mu.Unlock()
		if shown {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("never shown: %q\nshown: %q", text, s)
		}
	}
}

// program is a run of the command line, concurrent with the test.
type program struct {
	out, err  *outputBuffer
	interrupt context.CancelFunc
	code      chan int
}

// start runs the command line with nothing on standard input.
func start(t *testing.T, f *director, io cli.IO, args ...string) *program {
	t.Helper()
	io.In = strings.NewReader("")
	return startWithInput(t, f, io, args...)
}

// startWithInput runs the command line with io.In as standard input.
func startWithInput(t *testing.T, f *director, io cli.IO, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &program{out: newOutputBuffer(), err: newOutputBuffer(), interrupt: cancel, code: make(chan int, 1)}
	io.Out, io.Err = p.out, p.err
	io.Now = func() time.Time { return noon.Add(11 * time.Minute) }
	io.Dir = t.TempDir()
	env := io.Env
	io.Env = func(name string) (string, bool) {
		switch {
		case name == "SIGNALBOX_DIRECTOR":
			return f.URL, true
		case name == "SIGNALBOX_TOKEN" && f.token != "":
			return f.token, true
		case env != nil:
			return env(name)
		}
		return "", false
	}
	go func() { p.code <- cli.Main(ctx, args, io, fakeRoles) }()
	t.Cleanup(cancel)
	return p
}

func (p *program) expectExit(t *testing.T, want int) {
	t.Helper()
	select {
	case code := <-p.code:
		if code != want {
			t.Fatalf("exit code %d, want %d\n%s\n%s", code, want, p.out, p.err)
		}
	case <-time.After(time.Minute):
		t.Fatalf("it does not end\n%s\n%s", p.out, p.err)
	}
}

func TestWaitOnATerminal(t *testing.T) {
	f := newDirector(t)
	f.slots = 1
	f.ran(3*time.Minute, 2*time.Minute, time.Minute, time.Minute, time.Minute)
	f.seed("first")
	f.work(6)
	f.seed("second")
	p := start(t, f, cli.IO{OutTTY: true, ErrTTY: true, Columns: 100}, "submit", "third", "--wait")
	p.err.waitFor(t, " (position 2)\n")
	p.err.waitFor(t, "\r\x1b[Kqueue-…0080 · 2nd for any agent · about 1–4 min · behind queue-…0060 (2 min)")
	f.complete(6, "")
	f.complete(7, "")
	third := f.claim(f.id(8))
	p.err.waitFor(t, "\r\x1b[Kqueue-…0080 · dispatching to coder · 2 min")
	f.accept(third)
	p.err.waitFor(t, "\r\x1b[K"+f.id(8)+" working on coder\n")
	f.complete(8, "the \x1b[32manswer\x1b[0m\x1b[2J")
	p.expectExit(t, 0)
	if got, want := p.out.String(), "the \x1b[32manswer\x1b[0m\n"; got != want {
		t.Fatalf("standard output %q, want %q, once", got, want)
	}
}

func TestWaitOnADumbTerminal(t *testing.T) {
	f := newDirector(t)
	dumb := func(name string) (string, bool) { return "dumb", name == "TERM" }
	p := start(t, f, cli.IO{OutTTY: true, ErrTTY: true, Env: dumb}, "submit", "echo hello", "--wait")
	p.expectExit(t, 0)
	if strings.Contains(p.err.String()+p.out.String(), "\x1b") || p.out.String() != "hello\n" {
		t.Fatalf("%q %q", p.out, p.err)
	}
}

func TestInterruptDetaches(t *testing.T) {
	for name, io := range map[string]cli.IO{"terminal": {OutTTY: true, ErrTTY: true}, "pipe": {}} {
		t.Run(name, func(t *testing.T) {
			f := newDirector(t)
			p := start(t, f, io, "submit", "waits for ever", "--wait")
			p.err.waitFor(t, "Queued: ")
			if io.ErrTTY {
				p.err.waitFor(t, "1st for any agent")
			} else {
				p.err.waitFor(t, " pending\n")
			}
			p.interrupt()
			p.expectExit(t, 130)
			for _, want := range []string{"Detached: " + f.id(1) + " goes on (pending).\n", "signalbox logs -f " + f.id(1), "signalbox cancel " + f.id(1)} {
				if !strings.Contains(p.err.String(), want) {
					t.Errorf("%q is missing in %q", want, p.err)
				}
			}
			if p.out.String() != "" {
				t.Errorf("standard output: %q", p.out)
			}
			if state := f.task(1).State; state != "pending" {
				t.Errorf("the task is %s", state)
			}
		})
	}
}

func TestWaitSurvivesADirectorRestart(t *testing.T) {
	t.Parallel()
	f := newDirector(t)
	p := start(t, f, cli.IO{}, "submit", "waits", "--wait")
	p.err.waitFor(t, " pending\n")
	addr := f.proxy.Listener.Addr().String()
	f.proxy.stop()
	p.err.waitFor(t, "; trying again\n")
	f.proxy.startAt(t, addr)
	f.complete(1, "done all the same")
	p.expectExit(t, 0)
	if p.out.String() != "done all the same\n" {
		t.Fatal(p.out)
	}
}

func TestWaitForRoom(t *testing.T) {
	f := newDirector(t, withRoom(1))
	f.seed("in the way")
	waits := 0
	after := func(time.Duration) <-chan time.Time {
		if waits++; waits == 3 {
			f.claim(f.id(1))
		}
		fired := make(chan time.Time, 1)
		fired <- noon
		return fired
	}
	p := start(t, f, cli.IO{After: after}, "submit", "patient", "--wait-for-room")
	p.expectExit(t, 0)
	if p.out.String() != "Queued: "+f.id(2)+" (position 1)\n" || p.err.String() != "queue is at capacity (1 tasks): waiting for room\n" {
		t.Fatalf("%q %q", p.out, p.err)
	}
	submits := f.proxy.requests("submit")
	for _, s := range submits {
		if len(submits) != 4 || s.header.Get("Idempotency-Key") != submits[0].header.Get("Idempotency-Key") {
			t.Fatal("each try had a key of its own")
		}
	}
}

func TestWaitForRoomEnds(t *testing.T) {
	t.Parallel()
	f := newDirector(t, withRoom(1))
	f.seed("in the way")
	never := func(time.Duration) <-chan time.Time { return nil }
	p := start(t, f, cli.IO{After: never}, "submit", "patient", "--wait-for-room", "--wait-timeout", "20ms")
	p.expectExit(t, 124)
	if !strings.Contains(p.err.String(), "Error: no room in the queue after 20ms: the task was not submitted\n") {
		t.Fatal(p.err)
	}
	p = start(t, f, cli.IO{After: never}, "submit", "patient", "--wait-for-room", "--json")
	p.err.waitFor(t, "waiting for room")
	p.interrupt()
	p.expectExit(t, 130)
	if !strings.Contains(p.err.String(), `"error": "interrupted"`) {
		t.Fatal(p.err)
	}
}

func TestLostReplyNamesTheIdempotencyKey(t *testing.T) {
	t.Parallel()
	f := newDirector(t)
	f.proxy.lose["submit"] = 1
	p := start(t, f, cli.IO{}, "submit", "x", "--idempotency-key", "mine")
	p.expectExit(t, 0) // the second request finds what the first has stored
	f.proxy.refuse("submit", 504, api.Error{Error: "x"})
	p = start(t, f, cli.IO{}, "submit", "x", "--idempotency-key", "mine")
	p.expectExit(t, 7)
	if !strings.Contains(p.err.String(), "the same command with --idempotency-key mine finds it") {
		t.Fatal(p.err)
	}
}

func TestEventsAsLines(t *testing.T) {
	f := newDirector(t)
	f.seed("one")
	p := start(t, f, cli.IO{}, "events", "--after", "2", "--json")
	p.out.waitFor(t, `{"seq":3,`)
	f.claim(f.id(1))
	p.out.waitFor(t, `"kind":"claim"`)
	p.interrupt()
	p.expectExit(t, 130)
	if lines := strings.Split(strings.TrimSpace(p.out.String()), "\n"); len(lines) != 2 {
		t.Fatalf("%q", lines)
	}
	p = start(t, f, cli.IO{}, "events", "--after", "2", "--task", "0010")
	p.out.waitFor(t, "2026-11-21 12:00:01 claim "+f.id(1)+" [dispatching] coder\n")
}

func TestColours(t *testing.T) {
	env := func(pairs ...string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1], true
				}
			}
			return "", false
		}
	}
	for _, test := range []struct {
		name string
		io   cli.IO
		args []string
		want bool
	}{
		{"terminal", cli.IO{OutTTY: true}, nil, true},
		{"pipe", cli.IO{}, nil, false},
		{"NO_COLOR", cli.IO{OutTTY: true, Env: env("NO_COLOR", "1")}, nil, false},
		{"NO_COLOR is empty", cli.IO{OutTTY: true, Env: env("NO_COLOR", "")}, nil, true},
		{"dumb", cli.IO{OutTTY: true, Env: env("TERM", "dumb")}, nil, false},
		{"always", cli.IO{Env: env("NO_COLOR", "1")}, []string{"--color", "always"}, true},
		{"never", cli.IO{OutTTY: true}, []string{"--color=never"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newDirector(t)
			f.seed("one")
			f.claim(f.id(1))
			p := start(t, f, test.io, append([]string{"status"}, test.args...)...)
			p.expectExit(t, 0)
			if got := strings.Contains(p.out.String(), "\x1b["); got != test.want {
				t.Fatalf("%q", p.out)
			}
		})
	}
}

// TestFlagsReachTheRequest has every flag of submit, before and after the
// prompt.
func TestFlagsReachTheRequest(t *testing.T) {
	f := newDirector(t)
	env := func(name string) (string, bool) { return "from here", name == "INHERITED" }
	p := start(t, f, cli.IO{Env: env}, "--json", "submit", "--agent", "coder", "--model", "opus", "the prompt", "--tier", "deep",
		"--timeout", "90.2", "--project", "src", "--env", "A=b=c", "--env", "INHERITED",
		"--thinking=false", "--priority", "-3", "--not-before", "1h", "--start-within", "2m", "--on-lost", "requeue", "--source-job", "nightly",
		"--idempotency-key", "k1")
	p.expectExit(t, 0)
	got := f.proxy.requests("submit")[0]
	at, thinking := noon.Add(71*time.Minute), false
	want := api.SubmitRequest{
		Prompt: "the prompt", Agent: "coder", Model: "opus", Tier: "deep", TimeoutSeconds: 91,
		Project: &api.Project{Path: "src"}, Env: map[string]string{"A": "b=c", "INHERITED": "from here"}, Thinking: &thinking, Priority: -3,
		NotBefore: &at, WaitTimeout: 120, OnLost: "requeue", Source: "cli", SourceJob: "nightly",
	}
	if key := got.header.Get("Idempotency-Key"); key != "k1" || got.body != asJSON(t, want) {
		t.Fatalf("key %q\ngot  %s\nwant %s", key, got.body, asJSON(t, want))
	}
	start(t, f, cli.IO{}, "submit", "more", "--session", "s1", "--session-mode", "prefer").expectExit(t, 0)
	want = api.SubmitRequest{Prompt: "more", SessionID: "s1", Session: "prefer", Source: "cli"}
	if got := f.proxy.requests("submit")[1].body; got != asJSON(t, want) {
		t.Fatalf("got  %s\nwant %s", got, asJSON(t, want))
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
