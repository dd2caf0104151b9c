package local

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// A call that waits for its tool queue yields its command slot, and takes one again when it
// has a slot of the tool queue:
//
//	claimed ─▶ its slot ─▶ waits in the tool queue, without it ─▶ a slot again ─▶ runs
//
// So calls of one narrow tool queue do not block others.

// maxYielded bounds the calls that have yielded their slots.
const maxYielded = 1000

// errDeferred: a call that has not started gives its claim back.
var errDeferred = errors.New("the call was deferred before it started")

// slotState says whether a run has a slot of its pool.
type slotState int

const (
	slotHeld    slotState = iota
	slotYielded           // it waits for its tool queue
	slotWanted            // it has its tool queue's slot and waits for one of the pool
)

// acquire takes a slot for a claim. Executor.mu is held.
func (p *pool) acquire() bool {
	if p.limit > 0 && p.taken >= p.limit {
		p.refused = true
		return false
	}
	p.taken++
	return true
}

// release gives a slot to the first run that wants one back, else to the next claim.
// Executor.mu is held.
func (p *pool) release() {
	if len(p.wanted) > 0 && p.taken <= p.limit {
		first := p.wanted[0]
		p.wanted = p.wanted[1:]
		close(first)
		return
	}
	p.taken--
	if p.refused {
		p.refused = false
		p.wake.Send()
	}
}

// yield releases the slot of a run while it waits for its tool queue.
func (r *run) yield() {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	if r.pool.limit == 0 || r.slot != slotHeld {
		return
	}
	r.slot = slotYielded
	r.pool.used--
	r.pool.release()
}

// regain takes a slot again for a run that has yielded its own, unless it must not start
// any more.
func (r *run) regain() error {
	r.x.mu.Lock()
	if r.slot == slotHeld {
		r.x.mu.Unlock()
		return nil
	}
	var turn chan struct{}
	if p := r.pool; p.taken < p.limit {
		p.taken++
	} else {
		turn = make(chan struct{})
		p.wanted = append(p.wanted, turn)
		r.slot = slotWanted
	}
	r.x.mu.Unlock()
	if turn != nil {
		select {
		case <-turn:
		case <-r.ctx.Done():
		}
	}
	return r.regained(turn)
}

// regained records that the run has a slot, or that it ended before.
func (r *run) regained(turn chan struct{}) error {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	p := r.pool
	if i := slices.Index(p.wanted, turn); turn != nil && i >= 0 {
		p.wanted = slices.Delete(p.wanted, i, i+1)
		r.slot = slotYielded
		return context.Cause(r.ctx)
	}
	r.slot = slotHeld
	p.used++
	return context.Cause(r.ctx)
}

// queueGate admits calls to a tool queue in the order of their claims, and never more than
// the pool has slots: the tool queue's depth is for callers, and a task can wait outside.
type queueGate struct {
	inside  int  // calls in the tool queue
	joining bool // one of them is just entering
	waiting []queued
}

type queued struct {
	fence int64
	turn  chan struct{} // closed when it may enter
}

// admit admits the next call, if it may enter. Executor.mu is held.
func (d *queueGate) admit(most int) {
	if len(d.waiting) == 0 || d.joining || d.inside >= most {
		return
	}
	d.inside, d.joining = d.inside+1, true
	close(d.waiting[0].turn)
	d.waiting = d.waiting[1:]
}

// place is a call's position at the gate of its tool queue; nil if it has none.
type place struct {
	r      *run
	gate   *queueGate
	turn   chan struct{}
	joined bool
	left   bool
}

// enterQueue waits until the run may enter its tool queue.
func (r *run) enterQueue() (*place, error) {
	tool, _ := r.x.gateway.Tool(r.row().Tool)
	if r.pool.limit == 0 || tool.Queue == "" {
		return nil, nil
	}
	p := r.place(tool.Queue)
	select {
	case <-p.turn:
		return p, nil
	default:
	}
	r.yield()
	select {
	case <-p.turn:
		return p, nil
	case <-r.ctx.Done():
		p.leave()
		return nil, context.Cause(r.ctx)
	}
}

func (r *run) place(queue string) *place {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	d := r.x.gates[queue]
	if d == nil {
		d = &queueGate{}
		r.x.gates[queue] = d
	}
	p := &place{r: r, gate: d, turn: make(chan struct{})}
	at, _ := slices.BinarySearchFunc(d.waiting, r.Fence, func(o queued, fence int64) int { return cmp.Compare(o.fence, fence) })
	d.waiting = slices.Insert(d.waiting, at, queued{r.Fence, p.turn})
	d.admit(r.pool.limit)
	return p
}

// join records that the call has its place in the tool queue, or its slot.
func (p *place) join() {
	if p == nil {
		return
	}
	p.r.x.mu.Lock()
	defer p.r.x.mu.Unlock()
	p.joinLocked()
}

func (p *place) joinLocked() {
	if !p.joined {
		p.joined, p.gate.joining = true, false
		p.gate.admit(p.r.pool.limit)
	}
}

// leave records that the call has left the tool queue, or was never admitted.
func (p *place) leave() {
	if p == nil {
		return
	}
	p.r.x.mu.Lock()
	defer p.r.x.mu.Unlock()
	d := p.gate
	if i := slices.IndexFunc(d.waiting, func(o queued) bool { return o.turn == p.turn }); i >= 0 {
		d.waiting = slices.Delete(d.waiting, i, i+1)
		p.joined, p.left = true, true
	}
	if p.left {
		return
	}
	p.left = true
	d.inside--
	p.joinLocked()
	d.admit(p.r.pool.limit)
}

// begin is called when the run has its tool queue's slot; it makes the task working.
func (r *run) begin() error {
	waited := r.slotState() != slotHeld
	if err := r.regain(); err != nil {
		return err
	}
	if waited && r.x.paused(r.row().Queue) {
		return errDeferred
	}
	return r.accept()
}

func (r *run) slotState() slotState {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	return r.slot
}

// paused reports whether a queue is paused: then tasks that were claimed long ago and have
// not started are returned.
func (x *Executor) paused(queue string) bool {
	is, err := x.engine.Paused(x.claimCtx, queue)
	return err == nil && is
}

// deferWaiting has the runs that wait for their tool queue return their claims. Executor.mu
// is held, so that none of them starts meanwhile.
func (x *Executor) deferWaiting() {
	for _, r := range x.runs {
		if r.slot != slotHeld {
			r.stop(errDeferred)
		}
	}
}

// deferred reports whether a call that ended with err was only deferred.
func (r *run) deferred(err error) bool {
	return err != nil && r.begun.IsZero() && (errors.Is(err, errDeferred) || errors.Is(context.Cause(r.ctx), errDeferred))
}

// putBack returns the task of a deferred run to its place.
func (r *run) putBack() {
	r.persist("a tool task that has not begun not put back", func(ctx context.Context) error {
		_, err := r.x.engine.PutBack(ctx, r.row(), "its queue was paused, or the director stopped, before the call ran")
		return err
	})
}
