package proc

import (
	"slices"
	"time"
)

const (
	// holdWait is how long outputs get to come to their ends, once nothing that is
	// known of the run lives, before it is looked who keeps them open.
	holdWait = 100 * time.Millisecond
	// holdLook is the time between two looks: one who is just being started has
	// all files of this process for a moment.
	holdLook = 20 * time.Millisecond
)

// drainRest returns when both outputs are at their ends. An orphan of ours that
// keeps one open is of the run, though it has left its session and its parents
// and cleared its environment, and is ended with it. held tells that somebody
// else does: who was there before the run, who is not ours, or who cannot be
// seen. That one is left alone, for a run may have handed its output to anybody,
// lest he be killed. What a box says lives is all that lives.
func (p *Process) drainRest() (held bool, err error) {
	deadline := time.Now().Add(drainWait)
	if p.drainedWithin(holdWait) {
		return false, nil
	}
	for before := p.holders(); ; {
		if p.drainedWithin(holdLook) {
			return false, nil
		}
		now := p.holders()
		if both := inBoth(before, now); len(both) > 0 {
			p.kin.take(both)
			if err := p.kin.ending().end(0); err != nil {
				return true, err
			}
			p.kin.reap()
		}
		if before = now; time.Now().After(deadline) {
			return true, nil
		}
	}
}

func (p *Process) drainedWithin(d time.Duration) bool {
	select { // mostly both outputs are at their ends by now
	case <-p.drained:
		return true
	default:
	}
	select {
	case <-p.drained:
		return true
	case <-time.After(d):
		return false
	}
}

// holders are those who can write to the run's outputs, descend from us, were
// started after it and are of no other run.
func (p *Process) holders() []entry {
	if p.tty != nil || p.boxed {
		return nil
	}
	var outputs []uint64
	for _, pipe := range p.pipes {
		if n := inode(pipe.f); n != 0 {
			outputs = append(outputs, n)
		}
	}
	return writers(outputs, p.id)
}

func inBoth(a, b []entry) []entry {
	return slices.DeleteFunc(slices.Clone(b), func(e entry) bool {
		return !slices.ContainsFunc(a, func(o entry) bool { return o.pid == e.pid && o.start == e.start })
	})
}

// take adds processes to those that belong to the run.
func (k *kin) take(all []entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range all {
		k.known[e.pid] = e.start
	}
}
