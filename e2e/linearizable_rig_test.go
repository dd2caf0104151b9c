package e2e_test

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/signalbox-ai/signalbox/client"
)

// linRun is a director that is killed and restarted, with queues whose
// clients record their requests and answers.
type linRun struct {
	*box
	director *role
	c        *client.Client
	began    time.Time
	asked    atomic.Int64
	sign     chan struct{} // a request was made

	mu     sync.Mutex
	deaths []int64 // times by which a director was dead
}

func newLinRun(t *testing.T) *linRun {
	r := &linRun{box: newBox(t), began: time.Now(), sign: make(chan struct{}, 1)}
	// Priorities do not change by age within a test, because the model has no
	// clock.
	config := r.file("signalbox.yaml", "queue: {age_step: 12h, max_size: 1000}\ndiscover: off\n", 0o600)
	addr := freePort(t)
	r.director = &role{b: r.box, name: "director", died: deaths{}}
	r.director.args = r.server("director", []string{"--addr", addr, "--config", config})
	r.director.start()
	r.director.p.prints("http://")
	// Each request has its own connection, so that a broken one belongs to one
	// director, and the transport retries nothing.
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	var err error
	r.c, err = client.New("http://"+addr, client.Options{Tries: 1, HTTPClient: &http.Client{Transport: asOwner{transport}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wreck kills the director at random moments until the clients are done.
func (r *linRun) wreck(rng *rand.Rand, kills int, done <-chan struct{}) {
	for range kills {
		for next := r.asked.Load() + 30 + rng.Int64N(40); r.asked.Load() < next; {
			select {
			case <-r.sign:
			case <-done:
				return
			}
		}
		r.director.kill()
		r.mu.Lock()
		r.deaths = append(r.deaths, r.now())
		r.mu.Unlock()
		r.director.start()
	}
}

func (r *linRun) now() int64 { return int64(time.Since(r.began)) }

// linLine is one queue and the requests to it.
type linLine struct {
	*linRun
	kind    string
	clients atomic.Int64

	mu    sync.Mutex
	ops   []porcupine.Operation
	keys  []linIn  // submitted keys
	ids   []string // known IDs
	found map[string]bool
}

// asking is a request in flight.
type asking struct {
	l  *linLine
	op porcupine.Operation
}

func (l *linLine) ask(who int, in linIn) *asking {
	a := &asking{l: l}
	a.op.ClientId, a.op.Input, a.op.Call = who, in, l.now()
	return a
}

// answered records the answer. It reports whether there was one: if no
// connection was made, there was no request; if it broke, the result is
// unknown.
func (a *asking) answered(err error, out linOut) bool {
	l := a.l
	a.op.Return = l.now()
	l.asked.Add(1)
	select {
	case l.sign <- struct{}{}:
	default:
	}
	if err == nil || client.Code(err) != "" {
		out.code = client.Code(err)
		l.write(a.op, out)
		return true
	}
	if sent, unreachable := wasSent(err); !unreachable {
		l.t.Errorf("%+v: %v", a.op.Input, err)
		return true
	} else if sent {
		l.write(a.op, linOut{lost: true})
	}
	time.Sleep(10 * time.Millisecond) // the director is restarting
	return false
}

func (l *linLine) write(op porcupine.Operation, out linOut) {
	op.Output = out
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = append(l.ops, op)
	if out.id != "" && !l.found[out.id] {
		l.found[out.id] = true
		l.ids = append(l.ids, out.id)
	}
}

// history returns the requests, with an end for each request without an
// answer: a director executed it before it was dead. Reads without an answer
// are left out.
func (l *linLine) history() (ops []porcupine.Operation) {
	for _, op := range l.ops {
		if op.Output.(linOut).lost {
			if op.Input.(linIn).verb == "read" {
				continue
			}
			op.Return = l.deathAfter(op)
		}
		ops = append(ops, op)
	}
	return ops
}

func (l *linLine) deathAfter(op porcupine.Operation) int64 {
	died := false
	for _, at := range l.deaths {
		if at >= op.Return {
			return at
		}
		died = died || at >= op.Call
	}
	if !died {
		l.t.Errorf("the connection of %+v broke though no director died", op.Input)
		return math.MaxInt64
	}
	return op.Return // it broke after the death: the kernel closes a dead process's connections
}

// until retries until there is an answer.
func (l *linLine) until(who int, in linIn, do func(context.Context) (linOut, error)) (linOut, error) {
	for {
		ctx, cancel := context.WithTimeout(l.t.Context(), long)
		a := l.ask(who, in)
		out, err := do(ctx)
		cancel()
		if a.answered(err, out) || l.t.Failed() || l.t.Context().Err() != nil {
			return out, err
		}
	}
}
