package top

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/client"
)

// liveDirector has a stream that sends the busy board, then ends with end.
type liveDirector struct {
	fakeDirector
	end error // nil: the stream goes on until the user quits
}

func (d *liveDirector) Live(ctx context.Context, _ func()) iter.Seq2[client.LiveEvent, error] {
	return func(yield func(client.LiveEvent, error) bool) {
		l := busyBoard()
		l.At = noon
		if !yield(client.LiveEvent{Kind: client.LiveSnapshot, Live: l}, nil) {
			return
		}
		if d.end == nil {
			<-ctx.Done()
			d.end = ctx.Err()
		}
		yield(client.LiveEvent{}, d.end)
	}
}

// screen is what was written to a terminal.
type screen struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	written chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.written <- struct{}{}:
	default:
	}
	return s.buf.Write(p)
}

func (s *screen) shows(t *testing.T, text string) {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		s.mu.Lock()
		found := strings.Contains(s.buf.String(), text)
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-s.written:
		case <-deadline:
			t.Fatalf("the screen does not show %q:\n%s", text, s.buf.String())
		}
	}
}

// TestRun checks each way in which the view ends, and that no goroutine outlives it.
func TestRun(t *testing.T) {
	refused := errors.New("a token is required")
	for _, test := range []struct {
		name  string
		end   error
		leave func(keys io.Writer, cancel func())
		want  error
	}{
		{name: "q", leave: func(keys io.Writer, _ func()) { io.WriteString(keys, "q") }},
		{name: "Ctrl-C", leave: func(keys io.Writer, _ func()) { io.WriteString(keys, "\x03") }},
		{name: "a signal", leave: func(_ io.Writer, cancel func()) { cancel() }},
		{name: "the director's refusal", end: refused, leave: func(io.Writer, func()) {}, want: refused},
	} {
		t.Run(test.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			keyboard, keys := io.Pipe()
			defer keys.Close()
			out := &screen{written: make(chan struct{}, 1)}
			done := make(chan error, 1)
			go func() {
				done <- Run(ctx, Options{URL: "http://127.0.0.1:8080", Director: &liveDirector{end: test.end}, In: keyboard, Out: out, NoColours: true})
			}()
			if test.end == nil {
				out.shows(t, "Signalbox")
			}
			test.leave(keys, cancel)
			select {
			case err := <-done:
				if !errors.Is(err, test.want) || test.want == nil && err != nil {
					t.Errorf("it ended with %v, want %v", err, test.want)
				}
			case <-time.After(time.Minute):
				t.Fatal("it did not end")
			}
		})
	}
}

// TestNoColours checks that no colours are sent if they are off.
func TestNoColours(t *testing.T) {
	keyboard, keys := io.Pipe()
	defer keys.Close()
	out := &screen{written: make(chan struct{}, 1)}
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), Options{Director: &liveDirector{}, In: keyboard, Out: out, NoColours: true})
	}()
	out.shows(t, "Signalbox")
	io.WriteString(keys, "q")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if colour := regexp.MustCompile("\x1b\\[([0-9]+;)*(3|4|9|10)[0-8](;[0-9]+)*m").FindString(out.buf.String()); colour != "" {
		t.Errorf("a colour was sent: %q", colour)
	}
}
