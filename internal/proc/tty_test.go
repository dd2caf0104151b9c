//go:build unix

package proc_test

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/proc"
)

// screen is the content of a terminal; seen waits for a text.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func newScreen() *screen { return &screen{more: make(chan struct{}, 1)} }

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	s.text.Write(b)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (s *screen) seen(t *testing.T, want string) {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		s.mu.Lock()
		text := s.text.String()
		s.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
		select {
		case <-s.more:
		case <-deadline:
			t.Fatalf("%q is not on the screen: %q", want, text)
		}
	}
}

func shell(t *testing.T, out *screen, script string) *proc.Process {
	t.Helper()
	p, err := proc.Start(proc.Spec{
		Argv: []string{"/bin/sh", "-c", script}, Dir: t.TempDir(), Env: append(os.Environ(), "TERM=xterm-256color"),
		Stdout: out, Mark: t.Name(), Grace: 100 * time.Millisecond, TTY: &proc.Size{Cols: 91, Rows: 17},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.End() })
	return p
}

func TestTerminalHasASizeAndTakesKeys(t *testing.T) {
	out := newScreen()
	p := shell(t, out, `stty size; read x; echo "got $x"; stty size; read y; exit 7`)
	out.seen(t, "17 91")
	if err := p.Resize(proc.Size{Cols: 120, Rows: 40}); err != nil {
		t.Fatal(err)
	}
	if err := p.Type([]byte("hello\r"), time.Second); err != nil {
		t.Fatal(err)
	}
	out.seen(t, "got hello")
	out.seen(t, "40 120")
	if err := p.Type([]byte("\r"), time.Second); err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	if e, err := p.End(); err != nil || e.Code != 7 {
		t.Errorf("got %v, %v", e, err)
	}
}

// A job that ignores the hangup, in a group of its own, is ended too.
func TestEndOfATerminalLeavesNothingAlive(t *testing.T) {
	out := newScreen()
	p := shell(t, out, `trap "" HUP TERM; set -m; sleep 1000 & nohup sleep 1000 & echo "re""ady"; wait`)
	out.seen(t, "ready")
	if n := len(p.Alive()); n < 3 {
		t.Errorf("%d processes are alive before the end, want a shell and its two jobs", n)
	}
	if _, err := p.End(); err != nil {
		t.Fatal(err)
	}
	if pids := proc.Alive(p.Ident()); len(pids) > 0 {
		t.Errorf("%v live", pids)
	}
}

// A program that does not read its input does not block Type.
func TestTypingGivesUp(t *testing.T) {
	out := newScreen()
	p := shell(t, out, `stty raw -echo; echo "re""ady"; sleep 1000`)
	out.seen(t, "ready")
	for range 64 {
		if err := p.Type(make([]byte, 4096), 50*time.Millisecond); err != nil {
			if !os.IsTimeout(err) {
				t.Fatal(err)
			}
			return
		}
	}
	t.Error("a program that reads nothing accepted 256 KiB of keys")
}

func TestNoTerminalToType(t *testing.T) {
	p := start(t, "hang", nil, 0)
	if p.Resize(proc.Size{Cols: 1, Rows: 1}) == nil || p.Type([]byte("x"), time.Second) == nil {
		t.Error("a program without a terminal accepted keys")
	}
}
