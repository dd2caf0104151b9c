package tickets_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/tickets"
	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lease is how long the tests' tickets last: a process that was paused for that long has lost what it held.
const lease = 15 * time.Second

// process is one of several that share tool queues: its queues, and its wire to the store, which can be cut.
type process struct {
	*toolqueue.Queues
	name string
	wire *wire
}

// join returns a process over a store.
func join(t testing.TB, s tickets.Store, name string, configs map[string]toolqueue.Config) *process {
	t.Helper()
	return joinWithin(t, s, name, lease, toolqueue.Hooks{}, configs)
}

func joinWithin(t testing.TB, s tickets.Store, name string, lasts time.Duration, hooks toolqueue.Hooks, configs map[string]toolqueue.Config) *process {
	t.Helper()
	p := &process{Queues: toolqueue.New(hooks), name: name, wire: &wire{store: s}}
	if err := p.Share(toolqueue.Sharing{Backend: tickets.New(p.wire, p.wire.now), Owner: name, Lease: lasts}); err != nil {
		t.Fatal(err)
	}
	for name, c := range configs {
		c.Shared = true
		if err := p.Configure(map[string]toolqueue.Config{name: c}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { p.end(t) })
	return p
}

// end makes the process give everything back, and ends its goroutines.
func (p *process) end(t testing.TB) {
	p.wire.mend()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func queue(c toolqueue.Config) map[string]toolqueue.Config {
	return map[string]toolqueue.Config{"q": c}
}

// wire is a store that can be out of reach.
type wire struct {
	store tickets.Store
	mu    sync.Mutex
	cut   error         // no step reaches the store
	deaf  float64       // share of answers that are lost
	slow  time.Duration // maximum duration of a step, each way
	steps int
	rand  *rand.Rand
	ahead time.Duration // of the server's clock, as this process reads it
}

func (w *wire) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

var errCut = errors.New("the wire is cut")

func (w *wire) sever() { w.set(func() { w.cut = errCut }) }
func (w *wire) mend()  { w.set(func() { w.cut, w.deaf, w.slow = nil, 0, 0 }) }

func (w *wire) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *wire) taken() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.steps
}

func (w *wire) Tickets(ctx context.Context, s store.TicketStep) (store.ToolLine, error) {
	w.mu.Lock()
	w.steps++
	cut, lost, there, back := w.cut, false, time.Duration(0), time.Duration(0)
	if w.rand != nil {
		lost = w.rand.Float64() < w.deaf
		there, back = time.Duration(w.rand.Float64()*float64(w.slow)), time.Duration(w.rand.Float64()*float64(w.slow))
	}
	w.mu.Unlock()
	pause(there)
	if cut != nil {
		return store.ToolLine{}, cut
	}
	rows, err := w.store.Tickets(ctx, s)
	pause(back)
	if lost && err == nil {
		return store.ToolLine{}, errors.New("the answer was lost")
	}
	return rows, err
}

func pause(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}

// start begins an Acquire and returns once it waits or has returned. An hour passes quickly in simulated
// time, and is longer than any timeout of the tests.
func (p *process) start(t testing.TB, who toolqueue.Who, within time.Duration) *Call {
	t.Helper()
	return StartPatiently(t, p.Queues, "q", who, within, time.Hour)
}

func (p *process) take(t testing.TB, who toolqueue.Who) toolqueue.Permit {
	t.Helper()
	return Take(t, p.Queues, "q", who)
}

func lost(p toolqueue.Permit) bool {
	select {
	case <-p.Lost():
		return true
	default:
		return false
	}
}

// counts checks how many slots are in use and how many calls wait, as a process sees it a second later.
func (p *process) counts(t testing.TB, inUse, depth int) toolqueue.Status {
	t.Helper()
	time.Sleep(time.Second)
	if _, ok := p.Status("q", 0); !ok { // requests it again
		t.Fatal("no queue")
	}
	time.Sleep(10 * time.Millisecond)
	s, _ := p.Status("q", 100)
	if s.InUse != inUse || s.Depth != depth {
		t.Fatalf("%s sees in use %d, depth %d; want %d, %d: %+v", p.name, s.InUse, s.Depth, inUse, depth, s)
	}
	return s
}
