package local

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// A call that waits for its tool queue leaves its slot of commands to others,
// and takes one again when the tool queue's slot is its own:
//
//	claimed ─▶ its slot ─▶ in line of the tool queue, without it ─▶ a slot again ─▶ runs
//
// So calls of one narrow tool queue keep no others from running.

// maxYielded is how many calls may have left their slots at a time.
const maxYielded = 1000

// errAside is why a call that has not begun gives its claim back.
var errDeferred = errors.New("the call has not begun, and is not to begin now")

// holding says what a run has of its pool.
type slotState int

const (
	slotHeld    slotState = iota // a slot
	slotYielded                  // none: it waits for its tool queue
	slotWanted                   // none: it has its tool queue's slot and waits for one
)

// take takes a slot of the pool for a claim. It needs Executor.mu.
func (p *pool) acquire() bool {
	if p.limit > 0 && p.taken >= p.limit {
		p.refused = true
		return false
	}
	p.taken++
	return true
}

// give gives a slot back: to the first of those that want one again, else to
// whoever claims. It needs Executor.mu.
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

// yield leaves the slot of a run to others while it waits for its tool queue.
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

// regain takes a slot again for a run that has yielded its own, unless it is not
// to begin now.
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

// regained takes in that the run has a slot, or that it ended before.
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

// door lets calls into the line of a tool queue, in the order of their claims and
// never more of the pool than it has slots: the bounds of that line are for
// callers, and a task can wait outside.
type queueGate struct {
	inside  int  // calls in the line
	joining bool // one of them is on its way to its place there
	waiting []queued
}

type queued struct {
	fence int64
	turn  chan struct{} // closed when it may go in
}

// next lets the next call in, if it may. It needs Executor.mu.
func (d *queueGate) admit(most int) {
	if len(d.waiting) == 0 || d.joining || d.inside >= most {
		return
	}
	d.inside, d.joining = d.inside+1, true
	close(d.waiting[0].turn)
	d.waiting = d.waiting[1:]
}

// place is what a call has of the door of its tool queue; nil where there is none.
type place struct {
	r      *run
	gate   *queueGate
	turn   chan struct{}
	joined bool
	left   bool
}

// lineUp waits until the run may stand in the line of its tool queue.
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

// join takes in that the call has its place in the line, or its slot.
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

// leave takes in that the call has left the line, or never was let into it.
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

// begin takes in that the run has its tool queue's slot, and makes it working.
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

// paused reports whether a queue is paused: what was claimed long ago and has
// not begun goes back to its place.
func (x *Executor) paused(queue string) bool {
	is, err := x.engine.Paused(x.claimCtx, queue)
	return err == nil && is
}

// setAside has the runs that wait for their tool queue give their claims back.
// It needs Executor.mu, so that none of them begins meanwhile.
func (x *Executor) deferWaiting() {
	for _, r := range x.runs {
		if r.slot != slotHeld {
			r.stop(errDeferred)
		}
	}
}

// aside reports whether a call that ended with err has only been set aside.
func (r *run) deferred(err error) bool {
	return err != nil && r.begun.IsZero() && (errors.Is(err, errDeferred) || errors.Is(context.Cause(r.ctx), errDeferred))
}

// putBack puts the task of a run that was set aside back in its place.
func (r *run) putBack() {
	r.persist("a tool task that has not begun not put back", func(ctx context.Context) error {
		_, err := r.x.engine.PutBack(ctx, r.row(), "its queue was paused, or the director stopped, before the call ran")
		return err
	})
}
