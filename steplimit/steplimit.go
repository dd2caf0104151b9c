package steplimit

import (
	"cmp"
	"context"
	"fmt"
	"sync"
)

// Limiter limits the steps of any number of conversations. Each step is counted
// separately.
type Limiter struct {
	opt Options
	log logger
}

// New returns a Limiter. An unknown policy is an error.
func New(o Options) (*Limiter, error) {
	if o.Policy != "" && o.Policy != Reject && o.Policy != Queue {
		return nil, fmt.Errorf("steplimit: unknown policy %q: use %q or %q", o.Policy, Reject, Queue)
	}
	o.Prefix = cmp.Or(o.Prefix, "[streamChat]")
	return &Limiter{opt: o, log: logger{to: o.Logger, prefix: o.Prefix}}, nil
}

// max returns the limit of a step that begins now.
func (l *Limiter) max() int {
	n := l.opt.Max
	if l.opt.MaxFunc != nil {
		n = l.opt.MaxFunc()
	} else if n == 0 {
		n = DefaultMax
	}
	return max(n, 1)
}

// Run runs the calls of one step and returns a result for each, in order. step is
// the number of the step in the log. Run returns when the last call has ended. If
// ctx ends, calls that have not begun are answered with AbortedText.
func (l *Limiter) Run(ctx context.Context, step int, calls []Call, execute Execute) []Result {
	s := l.begin(step)
	results := make([]Result, len(calls))
	tickets := make([]*ticket, len(calls))
	for i, c := range calls {
		tickets[i] = s.admit(c)
	}
	var all sync.WaitGroup
	for i, t := range tickets {
		if r, over := t.verdict(ctx); over {
			results[i] = r
			continue
		}
		all.Go(func() { results[i] = t.run(ctx, execute) })
	}
	all.Wait()
	return results
}

// Steps returns the counter for a conversation whose SDK calls the tools one by one.
// Each call names its step.
func (l *Limiter) Steps() *Steps { return &Steps{l: l, open: map[int]*step{}} }

// Steps counts the calls of the steps of one conversation.
type Steps struct {
	l    *Limiter
	mu   sync.Mutex
	open map[int]*step
}

// Do runs one call of a step, or answers it without running it, as Limiter.Run does
// for all calls. The id of a step is any number that is the same for all its calls
// and new for the next step, such as the number of messages so far. Calls count in
// the order in which they arrive. A step is forgotten when the first call of a new
// step arrives while none of its own calls is in flight. Until then, a call with its
// id counts in it, even if other steps have begun since.
func (s *Steps) Do(ctx context.Context, id int, c Call, execute Execute) Result {
	st, t := s.enter(id, c)
	defer s.exit(st)
	if r, over := t.verdict(ctx); over {
		return r
	}
	return t.run(ctx, execute)
}

func (s *Steps) enter(id int, c Call) (*step, *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.open[id]
	if st == nil {
		for old, o := range s.open {
			if o.inFlight == 0 {
				delete(s.open, old)
			}
		}
		st = s.l.begin(id)
		s.open[id] = st
	}
	st.inFlight++
	return st, st.admit(c)
}

func (s *Steps) exit(st *step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.inFlight--
}
