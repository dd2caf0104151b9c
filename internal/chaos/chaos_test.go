package chaos_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/chaos"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a server that counts what it was asked, and a client that reaches
// it through a proxy, over a new connection each time.
type place struct {
	*testing.T
	p     *chaos.Proxy
	got   atomic.Int32
	asked chan string
}

const answer = "the answer is as long as a sentence"

func newPlace(t *testing.T, o chaos.Options) *place {
	l := &place{T: t, asked: make(chan string, 1000)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		l.got.Add(1)
		l.asked <- string(said)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	l.p = chaos.New(t, server.Listener.Addr().String(), o)
	return l
}

// ask asks once, and returns the answer, and how long it took.
func (l *place) ask(patience time.Duration) (string, time.Duration, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.p.Addr, strings.NewReader("a question"))
	if err != nil {
		l.Fatal(err)
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", time.Since(began), err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), time.Since(began), err
}

// Each fault does what it says, to the request that it strikes and to no other.
func TestWhatAFaultDoes(t *testing.T) {
	const soon = 5 * time.Second
	for fault, want := range map[chaos.Fault]struct {
		arrives  int32 // at the server
		answered bool
		slow     bool
	}{
		chaos.DropBefore:    {0, false, false},
		chaos.DropAfter:     {1, false, false},
		chaos.Duplicate:     {2, true, false},
		chaos.DelayUp:       {1, true, true},
		chaos.DelayDown:     {1, true, true},
		chaos.TruncateUp:    {0, false, false},
		chaos.TruncateDown:  {1, false, false},
		chaos.ResetUp:       {0, false, false},
		chaos.ResetDown:     {1, false, false},
		chaos.DripUp:        {1, true, true},
		chaos.DripDown:      {1, true, true},
		chaos.PartitionUp:   {1, true, true},
		chaos.PartitionDown: {1, true, true},
		chaos.PartitionBoth: {1, true, true},
	} {
		t.Run(string(fault), func(t *testing.T) {
			l := newPlace(t, chaos.Options{Length: 400 * time.Millisecond})
			done := l.p.Strike(fault, nil)
			text, took, err := l.ask(soon)
			<-done
			if want.answered != (err == nil && text == answer) {
				t.Errorf("answered %q, %v", text, err)
			}
			if want.slow && took < 40*time.Millisecond {
				t.Errorf("it took %s", took)
			}
			for range want.arrives {
				if said := <-l.asked; said != "a question" {
					t.Errorf("the server was asked %q", said)
				}
			}
			if text, _, err := l.ask(soon); err != nil || text != answer {
				t.Errorf("the next: %q, %v", text, err)
			}
			if n := l.got.Load(); n != want.arrives+1 {
				t.Errorf("the server was asked %d times, want %d and one", n, want.arrives)
			}
			if seen := l.p.Seen(); len(seen) != 1 || seen[fault] != 1 {
				t.Errorf("seen: %v", seen)
			}
		})
	}
}

// A reset is one for the client, not an end.
func TestAResetIsAReset(t *testing.T) {
	l := newPlace(t, chaos.Options{})
	l.p.Strike(chaos.ResetUp, nil)
	if _, _, err := l.ask(5 * time.Second); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
}

// What is kept back arrives at Release, when its client is long gone.
func TestWhatIsKeptBack(t *testing.T) {
	l := newPlace(t, chaos.Options{})
	done := l.p.Strike(chaos.KeepBack, nil)
	if _, _, err := l.ask(5 * time.Second); err == nil {
		t.Error("it was answered")
	}
	if n := l.got.Load(); n != 0 {
		t.Errorf("%d arrived before", n)
	}
	<-done
	l.p.Release()
	<-l.asked
}

// A partition holds until it heals; one way lets the server do what its client
// never hears of.
func TestAPartition(t *testing.T) {
	for name, c := range map[string]struct {
		ways    []chaos.Way
		arrives bool
	}{
		"up":   {[]chaos.Way{chaos.Up}, false},
		"down": {[]chaos.Way{chaos.Down}, true},
		"both": {[]chaos.Way{chaos.Up, chaos.Down}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newPlace(t, chaos.Options{})
			l.p.Partition(c.ways...)
			if c.arrives {
				go func() { l.asked <- <-l.asked }() // nothing: it only proves below that something came
			}
			if _, _, err := l.ask(300 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			if arrived := l.got.Load() > 0; arrived != c.arrives {
				t.Errorf("arrived: %v", arrived)
			}
			l.p.Heal()
			if text, _, err := l.ask(5 * time.Second); err != nil || text != answer {
				t.Errorf("healed: %q, %v", text, err)
			}
		})
	}
}

// By itself a proxy strikes with every fault, in an order that the seed gives,
// until it heals.
func TestTheDeck(t *testing.T) {
	l := newPlace(t, chaos.Options{Pace: 5 * time.Millisecond, Seed: 7, Length: 20 * time.Millisecond})
	for deadline := time.Now().Add(time.Minute); len(l.p.Seen()) < len(chaos.Faults); {
		if time.Now().After(deadline) {
			t.Fatalf("seen only: %v", l.p.Seen())
		}
		_, _, _ = l.ask(time.Second)
	}
	l.p.Heal()
	before := l.p.Seen()
	for range 20 {
		if text, _, err := l.ask(5 * time.Second); err != nil || text != answer {
			t.Fatalf("healed: %q, %v", text, err)
		}
	}
	for f, n := range l.p.Seen() {
		if n != before[f] {
			t.Errorf("%s struck after the end", f)
		}
	}
}
