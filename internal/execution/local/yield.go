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
var errAside = errors.New("the call has not begun, and is not to begin now")

// holding says what a run has of its pool.
type holding int

const (
	holds   holding = iota // a slot
	yielded                // none: it waits for its tool queue
	wants                  // none: it has its tool queue's slot and waits for one
)

// take takes a slot of the pool for a claim. It needs Executor.mu.
func (p *pool) take() bool {
	if p.limit > 0 && p.taken >= p.limit {
		p.refused = true
		return false
	}
	p.taken++
	return true
}

// give gives a slot back: to the first of those that want one again, else to
// whoever claims. It needs Executor.mu.
func (p *pool) give() {
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
	if r.pool.limit == 0 || r.has != holds {
		return
	}
	r.has = yielded
	r.pool.used--
	r.pool.give()
}

// regain takes a slot again for a run that has yielded its own, unless it is not
// to begin now.
func (r *run) regain() error {
	r.x.mu.Lock()
	if r.has == holds {
		r.x.mu.Unlock()
		return nil
	}
	var turn chan struct{}
	if p := r.pool; p.taken < p.limit {
		p.taken++
	} else {
		turn = make(chan struct{})
		p.wanted = append(p.wanted, turn)
		r.has = wants
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
		r.has = yielded
		return context.Cause(r.ctx)
	}
	r.has = holds
	p.used++
	return context.Cause(r.ctx)
}

// door lets calls into the line of a tool queue, in the order of their claims and
// never more of the pool than it has slots: the bounds of that line are for
// callers, and a task can wait outside.
type door struct {
	in      int  // calls in the line
	joining bool // one of them is on its way to its place there
	outside []outside
}

type outside struct {
	fence int64
	turn  chan struct{} // closed when it may go in
}

// next lets the next call in, if it may. It needs Executor.mu.
func (d *door) next(most int) {
	if len(d.outside) == 0 || d.joining || d.in >= most {
		return
	}
	d.in, d.joining = d.in+1, true
	close(d.outside[0].turn)
	d.outside = d.outside[1:]
}

// place is what a call has of the door of its tool queue; nil where there is none.
type place struct {
	r      *run
	door   *door
	turn   chan struct{}
	joined bool
	left   bool
}

// lineUp waits until the run may stand in the line of its tool queue.
func (r *run) lineUp() (*place, error) {
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
	d := r.x.doors[queue]
	if d == nil {
		d = &door{}
		r.x.doors[queue] = d
	}
	p := &place{r: r, door: d, turn: make(chan struct{})}
	at, _ := slices.BinarySearchFunc(d.outside, r.Fence, func(o outside, fence int64) int { return cmp.Compare(o.fence, fence) })
	d.outside = slices.Insert(d.outside, at, outside{r.Fence, p.turn})
	d.next(r.pool.limit)
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
		p.joined, p.door.joining = true, false
		p.door.next(p.r.pool.limit)
	}
}

// leave takes in that the call has left the line, or never was let into it.
func (p *place) leave() {
	if p == nil {
		return
	}
	p.r.x.mu.Lock()
	defer p.r.x.mu.Unlock()
	d := p.door
	if i := slices.IndexFunc(d.outside, func(o outside) bool { return o.turn == p.turn }); i >= 0 {
		d.outside = slices.Delete(d.outside, i, i+1)
		p.joined, p.left = true, true
	}
	if p.left {
		return
	}
	p.left = true
	d.in--
	p.joinLocked()
	d.next(p.r.pool.limit)
}

// begin takes in that the run has its tool queue's slot, and makes it working.
func (r *run) begin() error {
	waited := r.holding() != holds
	if err := r.regain(); err != nil {
		return err
	}
	if waited && r.x.paused(r.row().Queue) {
		return errAside
	}
	return r.accept()
}

func (r *run) holding() holding {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	return r.has
}

// paused reports whether a queue is paused: what was claimed long ago and has
// not begun goes back to its place.
func (x *Executor) paused(queue string) bool {
	is, err := x.engine.Paused(x.working, queue)
	return err == nil && is
}

// setAside has the runs that wait for their tool queue give their claims back.
// It needs Executor.mu, so that none of them begins meanwhile.
func (x *Executor) setAside() {
	for _, r := range x.runs {
		if r.has != holds {
			r.stop(errAside)
		}
	}
}

// aside reports whether a call that ended with err has only been set aside.
func (r *run) aside(err error) bool {
	return err != nil && r.begun.IsZero() && (errors.Is(err, errAside) || errors.Is(context.Cause(r.ctx), errAside))
}

// putBack puts the task of a run that was set aside back in its place.
func (r *run) putBack() {
	r.write("a tool task that has not begun not put back", func(ctx context.Context) error {
		_, err := r.x.engine.PutBack(ctx, r.row(), "its queue was paused, or the director stopped, before the call ran")
		return err
	})
}
