package steplimit

import (
	"cmp"
	"context"
	"fmt"
	"sync"
)

// Limiter bounds the steps of any number of conversations. Each step has a
// count of its own: nothing is shared between two of them.
type Limiter struct {
	opt Options
	log logger
}

// New makes a Limiter. A policy that it does not know is an error.
func New(o Options) (*Limiter, error) {
	if o.Policy != "" && o.Policy != Reject && o.Policy != Queue {
		return nil, fmt.Errorf("steplimit: there is no policy %q: it is %q or %q", o.Policy, Reject, Queue)
	}
	o.Prefix = cmp.Or(o.Prefix, "[streamChat]")
	return &Limiter{opt: o, log: logger{to: o.Logger, prefix: o.Prefix}}, nil
}

// max is the limit of a step that begins now.
func (l *Limiter) max() int {
	n := l.opt.Max
	if l.opt.MaxFunc != nil {
		n = l.opt.MaxFunc()
	} else if n == 0 {
		n = DefaultMax
	}
	return max(n, 1)
}

// Run runs the calls of one step, numbered step in the log, and returns a
// result for each, in their order. It returns when the last has ended; when ctx
// ends, those that have not begun are answered with AbortedText.
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

// Steps is for those whose SDK calls the tools itself, one by one: it counts
// the calls by the step that they say they are of.
func (l *Limiter) Steps() *Steps { return &Steps{l: l, open: map[int]*step{}} }

// Steps counts the calls of the steps of one conversation.
type Steps struct {
	l    *Limiter
	mu   sync.Mutex
	open map[int]*step
}

// Do runs one call of a step, or answers it otherwise, as Limiter.Run does for
// all of them. The id of a step is anything that is the same for all its calls
// and new for the next, such as the number of messages so far. Calls count in
// the order in which they come. A step is forgotten when the first call of a
// step that is not known comes while none of its own calls is in flight; until
// then a call with its id counts in it, whatever other steps have come.
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
			if o.underWay == 0 {
				delete(s.open, old)
			}
		}
		st = s.l.begin(id)
		s.open[id] = st
	}
	st.underWay++
	return st, st.admit(c)
}

func (s *Steps) exit(st *step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.underWay--
}
