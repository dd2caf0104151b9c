package proc

import (
	"slices"
	"time"
)

const (
	// holdWait is how long outputs may take to end, once no known process of the
	// run is alive, before proc searches for processes that keep them open.
	holdWait = 100 * time.Millisecond
	// holdLook is the interval between two searches: a process that is just being
	// started has all files of this process for a moment.
	holdLook = 20 * time.Millisecond
)

// drainRest returns when both outputs have ended. An orphan of this process that
// keeps one open belongs to the run, even if it left its session and its parents
// and cleared its environment, and is ended with it. held reports that another
// process keeps one open: one that existed before the run, is not a descendant,
// or is invisible. That process is left alone, because a run may pass its output
// to any process, to get it killed. If a box knows the living processes, only
// those count.
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
	select { // usually both outputs have ended by now
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

// holders are processes that can write to the run's outputs, descend from
// this process, were started after the run and belong to no other run.
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

// take adds processes to those of the run.
func (k *kin) take(all []entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range all {
		k.known[e.pid] = e.start
	}
}
