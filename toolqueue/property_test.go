package toolqueue_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Odd times, so that no two events coincide.
const (
	oddIdle = 3*time.Second + 211_003
	oddHold = 7*time.Second + 307_019
	oddWait = 2*time.Second + 101_057
)

// action is an operation on the queue. n selects the call.
type action struct {
	what string
	n    int
}

func (a action) String() string { return fmt.Sprintf("%s %d", a.what, a.n) }

// TestMatchesModel applies the same operations to a queue and to the model, and compares after
// each the holders, the waiters in order, the depth and the outcome of each call.
func TestMatchesModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		config := toolqueue.Config{
			Concurrent: rapid.SampledFrom([]int{1, 2, 3, 9}).Draw(rt, "concurrent"),
			MaxWaiters: rapid.SampledFrom([]int{0, 0, 4}).Draw(rt, "waiters"),
		}
		if rapid.Bool().Draw(rt, "lease") {
			config.Lease.Idle = oddIdle
			config.Lease.MaxHold = rapid.SampledFrom([]time.Duration{0, oddHold}).Draw(rt, "hold")
		}
		actions := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) action {
			return action{
				rapid.SampledFrom([]string{"acquire", "acquire", "acquire", "acquire", "release", "release", "release", "release again", "cancel", "end session", "raise", "update", "sleep"}).Draw(rt, "what"),
				rapid.IntRange(0, 99).Draw(rt, "n"),
			}
		}), 1, 60).Draw(rt, "actions")
		var err error
		synctest.Test(t, func(t *testing.T) {
			p := pair{t: t, queue: newQueues(t, toolqueue.Hooks{}, one("a", config)), model: &model{config: config, behind: map[string][]*modelCall{}}}
			for i, a := range actions {
				if err = p.do(a); err != nil {
					err = fmt.Errorf("action %d, %s: %w", i, a, err)
					break
				}
			}
			p.close()
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// pair is the queue and its model.
type pair struct {
	t     *testing.T
	queue *toolqueue.Queues
	model *model
	calls []*pairCall
	inUse int // at the last comparison: more than the capacity only drains
}

type pairCall struct {
	*Call
	*modelCall
}

func (p *pair) do(a action) error {
	switch a.what {
	case "acquire":
		p.acquire(a.n)
	case "release":
		if c := p.find(a.n, "in"); c != nil {
			c.Permit.Release()
			p.model.release(c.modelCall)
		}
	case "release again":
		if c := p.find(a.n, "out"); c != nil {
			c.Permit.Release()
		}
	case "cancel":
		if c := p.find(a.n, ""); c != nil {
			c.Cancel()
			p.model.giveUp(c.modelCall, toolqueue.ReasonCancelled)
		}
	case "end session":
		s := fmt.Sprint("s", a.n%3)
		p.queue.EndSession(s)
		p.model.endSession(s)
	case "raise":
		if err := p.queue.Configure(one("a", toolqueue.Config{Concurrent: 1 + a.n%12})); err != nil {
			return err
		}
		p.model.raise(1 + a.n%12)
	case "update":
		if _, _, err := p.queue.Update("a", func(c *toolqueue.Config) { c.Concurrent = 1 + a.n%12 }); err != nil {
			return err
		}
		p.model.update(1 + a.n%12)
	case "sleep":
		p.sleep(time.Duration(a.n%8) * time.Second)
	}
	synctest.Wait()
	if err := p.compare(); err != nil {
		return err
	}
	p.sleep(time.Millisecond) // no two actions at one moment
	return nil
}

func (p *pair) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	p.model.pass(d)
}

func (p *pair) acquire(n int) {
	m := &modelCall{id: fmt.Sprint("call-", len(p.calls))}
	if n%4 > 0 {
		m.session = fmt.Sprint("s", n%4-1)
	}
	maxWait := time.Duration(0)
	if n%3 == 0 {
		maxWait = oddWait + 13*time.Duration(len(p.calls))
		m.deadline = p.model.now + maxWait
	}
	p.model.acquire(m)
	p.calls = append(p.calls, &pairCall{Start(p.t, p.queue, "a", In(m.session, m.id), maxWait), m})
}

// find returns one of the calls with that outcome.
func (p *pair) find(n int, outcome string) *pairCall {
	var some []*pairCall
	for _, c := range p.calls {
		if c.outcome == outcome {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[n%len(some)]
}

func (p *pair) compare() error {
	s, _ := p.queue.Status("a", 1000)
	if most := max(s.Concurrent, p.inUse); s.InUse > most {
		return fmt.Errorf("%d in use of %d", s.InUse, s.Concurrent)
	}
	p.inUse = s.InUse
	if got, want := summary(s), p.model.summary(); got != want {
		return fmt.Errorf("the queue has  %s\nthe model has %s", got, want)
	}
	for _, c := range p.calls {
		if got := c.state(); got != c.outcome && (got != "in" || c.outcome != "out") {
			return fmt.Errorf("%s is %q; the model says %q", c.id, got, c.outcome)
		}
	}
	return nil
}

// state is waiting, in, or the reason it was refused.
func (c *pairCall) state() string {
	var e *toolqueue.Error
	switch {
	case c.Waits():
		return ""
	case errors.As(c.Err, &e):
		return string(e.Reason)
	}
	return "in"
}

// close ends all calls and leases.
func (p *pair) close() {
	for _, c := range p.calls {
		c.Cancel()
		_ = c.End()
		c.Permit.Release()
	}
	for n := range 3 {
		p.queue.EndSession(fmt.Sprint("s", n))
	}
	synctest.Wait()
	counts(p.t, p.queue, "a", 0, 0)
}
