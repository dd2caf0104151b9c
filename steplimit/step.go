package steplimit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// step is the state of one step.
type step struct {
	l        *Limiter
	number   int
	limit    int
	counted  int  // counted calls so far
	line     line // of counted calls, with the policy Queue
	approved line // of approved calls
	inFlight int  // calls of Steps in flight
}

func (l *Limiter) begin(number int) *step {
	n := l.max()
	return &step{l: l, number: number, limit: n, line: line{free: n}, approved: line{free: n}}
}

// kind says how a call is treated.
type kind int

const (
	counts  kind = iota
	beyond       // refused
	asks         // needs approval
	exempts      // does not count
)

// ticket is a call that has been counted.
type ticket struct {
	s      *step
	call   Call
	kind   kind
	exempt bool
	pos    int
	place  *place // of a counted call, with the policy Queue
	since  time.Time
}

// admit counts a call. Calls must be admitted one after the other, in the order in
// which they count.
func (s *step) admit(c Call) *ticket {
	t := &ticket{s: s, call: c, since: time.Now()}
	t.exempt = s.l.opt.Exempt != nil && s.l.opt.Exempt(c)
	switch {
	case s.l.opt.NeedsApproval != nil && s.l.opt.NeedsApproval(c):
		t.kind = asks
	case t.exempt:
		t.kind = exempts
	default:
		s.counted++
		t.pos = s.counted
		s.l.log.position(t)
		if s.l.opt.Policy == Queue {
			t.queue()
		} else if t.pos > s.limit {
			t.kind = beyond
		}
	}
	return t
}

func (t *ticket) queue() {
	t.place = t.s.line.join()
	if t.place.turn == nil {
		return
	}
	t.s.l.log.queued(t)
	if h := t.s.l.opt.Hooks.Queued; h != nil {
		h(t.call, t.s.number, t.pos, t.s.limit)
	}
}

// verdict answers a call that is not to be executed.
func (t *ticket) verdict(ctx context.Context) (Result, bool) {
	switch {
	case ctx.Err() != nil:
		if t.place != nil {
			t.giveUp(ctx)
		}
		return t.abort(ctx.Err()), true
	case t.kind == beyond:
		t.s.l.log.refused(t)
		return t.end(Refused, RefusalText(t.call), nil), true
	case t.kind == asks && t.s.l.opt.Approve == nil:
		t.s.l.log.unapproved(t)
		return t.end(NeedsApproval, ApprovalText(t.call), nil), true
	}
	return Result{}, false
}

// giveUp leaves the line because the context has ended.
func (t *ticket) giveUp(ctx context.Context) {
	if t.place.wait(ctx) == nil {
		t.place.leave()
	}
}

// run waits until the call may be executed, and executes it.
func (t *ticket) run(ctx context.Context, execute Execute) Result {
	p := t.place
	if t.kind == asks {
		r, ok := t.ask(ctx)
		if !ok {
			return r
		}
		if !t.exempt {
			p = t.s.approved.join()
		}
	}
	if p != nil {
		if err := p.wait(ctx); err != nil {
			return t.abort(err)
		}
		defer p.leave()
	}
	if err := ctx.Err(); err != nil {
		return t.abort(err)
	}
	return t.execute(ctx, execute)
}

// ask waits for a person's answer. ok is false, with the result, if it is not yes.
func (t *ticket) ask(ctx context.Context) (Result, bool) {
	t.s.l.log.asked(t)
	if h := t.s.l.opt.Hooks.Asked; h != nil {
		h(t.call, t.s.number)
	}
	var d Decision
	err := guard(func() (err error) {
		d, err = t.s.l.opt.Approve(ctx, t.call)
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return t.abort(err), false
	case err != nil:
		t.s.l.log.failed(t, err)
		return t.end(Failed, failure(t.call, "its approval could not be asked for: "+plain(err)), err), false
	case !d.Approved:
		t.s.l.log.unapproved(t)
		return t.end(Denied, DeniedText(t.call, d.Reason), nil), false
	}
	return Result{}, true
}

func (t *ticket) execute(ctx context.Context, execute Execute) Result {
	t.s.l.log.executing(t)
	waited, began := time.Since(t.since), time.Now()
	var a Answer
	err := guard(func() (err error) {
		a, err = execute(ctx, t.call)
		return err
	})
	r := Result{Answer: a, Outcome: Executed, Waited: waited, Took: time.Since(began)}
	switch {
	case err == nil && a.NotRun:
		t.s.l.log.failed(t, errors.New(a.Text))
		r.Outcome = Failed
	case err == nil:
		t.s.l.log.completed(t)
	case ctx.Err() != nil:
		t.s.l.log.aborted(t)
		r.Outcome, r.Answer, r.Err = Aborted, Answer{Text: AbortedText, IsError: true}, err
	default:
		t.s.l.log.failed(t, err)
		r.Outcome, r.Answer, r.Err = Failed, Answer{Text: failure(t.call, plain(err)), IsError: true}, err
	}
	return t.tell(r)
}

func (t *ticket) abort(err error) Result {
	t.s.l.log.aborted(t)
	return t.end(Aborted, AbortedText, err)
}

// end returns the result of a call that was not executed.
func (t *ticket) end(o Outcome, text string, err error) Result {
	return t.tell(Result{Answer: Answer{Text: text, IsError: true}, Outcome: o, Waited: time.Since(t.since), Err: err})
}

func (t *ticket) tell(r Result) Result {
	r.Call, r.Step, r.Position, r.Limit, r.Exempt = t.call, t.s.number, t.pos, t.s.limit, t.exempt
	if h := t.s.l.opt.Hooks.Ended; h != nil {
		h(r)
	}
	return r
}

func failure(c Call, why string) string {
	return "The tool " + c.Name + " could not be executed: " + why
}

// panicked is the error of a tool that panicked.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("it panicked: %v\n%s", p.value, p.stack) }

// plain returns the text of an error for the model. The message and the stack of a panic
// go only to the log.
func plain(err error) string {
	if _, ok := errors.AsType[*panicked](err); ok {
		return "it failed unexpectedly."
	}
	if err.Error() == "" {
		return "no reason was given."
	}
	return err.Error()
}

// guard converts a panic into an error, so that one tool does not crash the process
// and the other calls. If the goroutine ends itself (runtime.Goexit), the call ends
// too.
func guard(f func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errors.New("it ended without an answer")
		defer func() {
			if v := recover(); v != nil {
				err = &panicked{value: v, stack: debug.Stack()}
			}
			done <- err
		}()
		err = f()
	}()
	return <-done
}
