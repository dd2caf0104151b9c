package peers

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// peer is this director's view of another one.
//
// It is dead when its lease is over by the server's clock and no beat of it was seen for
// Safe by our own clock: a jump of the server's clock ends no lease early. If that clock
// was set back, so that the lease is valid for long, it is dead when no beat of it was seen
// for Lease.
type peer struct {
	row     store.Director
	changed time.Time // when a beat of it was last seen, monotonic
	missing bool      // its lease is over by the server's clock
	dead    bool
}

// updatePeers records which directors are alive by the server's clock. It reports whether
// one joined or started to drain, and which ones are newly or still missing.
func (p *Peers) updatePeers(living []store.Director) (joined bool, missing []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.o.Monotonic()
	seen := map[string]bool{}
	for _, d := range living {
		if d.ID == p.me.ID {
			continue
		}
		seen[d.ID] = true
		s := p.peers[d.ID]
		if s == nil || s.dead {
			s = &peer{changed: now}
			p.peers[d.ID] = s
			joined = true
		}
		joined = joined || s.row.Draining != d.Draining
		if !s.row.Expires.Equal(d.Expires) || s.row.Run != d.Run {
			s.changed = now
		}
		s.row, s.missing = d, false
	}
	for id, s := range p.peers {
		if !seen[id] && !s.dead {
			s.missing = true
			missing = append(missing, id)
		}
	}
	return joined, missing
}

// addUnknownHolders adds directors that hold wanted agents and were not seen yet: one that
// joined while the server's clock was set is not dead just because its lease is over by
// that clock.
func (p *Peers) addUnknownHolders(ctx context.Context, want []string, holders map[string]string) error {
	p.mu.Lock()
	stranger := slices.ContainsFunc(want, func(a string) bool {
		h := holders[a]
		return h != "" && h != p.me.ID && p.peers[h] == nil
	})
	p.mu.Unlock()
	if !stranger {
		return nil
	}
	rows, err := p.store.Directors(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range rows {
		if d.ID != p.me.ID && p.peers[d.ID] == nil {
			p.peers[d.ID] = &peer{row: d, changed: p.o.Monotonic(), missing: !d.Alive(p.o.Now())}
		}
	}
	return nil
}

// confirmDead returns which of the missing directors are dead.
func (p *Peers) confirmDead(ctx context.Context, missing []string) (dead []string, err error) {
	if len(missing) == 0 {
		return nil, nil
	}
	rows, err := p.store.Directors(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.o.Monotonic()
	for _, id := range missing {
		s := p.peers[id]
		at := slices.IndexFunc(rows, func(d store.Director) bool { return d.ID == id })
		left := at < 0 // its row is gone: it left, and had given up everything before
		if at >= 0 && (!rows[at].Expires.Equal(s.row.Expires) || rows[at].Run != s.row.Run) {
			s.row, s.changed = rows[at], now // it sent a beat in between
		}
		if left || now.Sub(s.changed) >= Safe {
			s.dead = true
			dead = append(dead, id)
		}
	}
	slices.Sort(dead)
	return dead, nil
}

// silent lists the directors without a beat for Lease by our own clock, whatever the
// server's clock says. p.mu is held.
func (p *Peers) silent() (list []store.Director) {
	now := p.o.Monotonic()
	for _, s := range p.peers {
		if !s.dead && now.Sub(s.changed) >= Lease {
			list = append(list, s.row)
		}
	}
	return list
}

// dead lists the directors that are known to be dead. p.mu is held.
func (p *Peers) dead() (list []store.Director) {
	for _, s := range p.peers {
		if s.dead {
			list = append(list, s.row)
		}
	}
	return list
}

// eligible are the directors that may hold agents: this one and all others that are not
// known to be dead, unless draining. p.mu is held.
func (p *Peers) eligible() (list []store.Director) {
	if !p.me.Draining {
		list = append(list, p.me)
	}
	for _, s := range p.peers {
		if !s.dead && !s.row.Draining {
			list = append(list, s.row)
		}
	}
	return list
}

// gone reports whether what a director holds is free. p.mu is held.
func (p *Peers) gone(id string) bool {
	s := p.peers[id]
	return id != p.me.ID && (s == nil || s.dead)
}

// Others lists the other live directors, by ID.
func (p *Peers) Others() []store.Director {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []store.Director
	for _, s := range p.peers {
		if !s.dead && !s.missing {
			list = append(list, s.row)
		}
	}
	slices.SortFunc(list, func(a, b store.Director) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// Gone reports whether no director of that ID is alive, as far as is known here. It is
// false until the directors have been read once.
func (p *Peers) Gone(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entered && p.gone(id)
}

// ConfirmGone is Gone, checked against the store now: a director that has just started, or
// come back, was not seen yet, and its tasks must not be recovered.
func (p *Peers) ConfirmGone(ctx context.Context, id string) bool {
	if !p.Gone(id) {
		return false
	}
	rows, err := p.store.Directors(ctx)
	if err != nil {
		return false
	}
	now := p.o.Now()
	if slices.ContainsFunc(rows, func(d store.Director) bool { return d.ID == id && d.Alive(now) }) {
		p.requestBeat()
		return false
	}
	return true
}

// First reports whether this one of all live directors is responsible for what belongs to name and has no
// holder.
func (p *Peers) First(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entered && p.o.Monotonic().Before(p.until) && first(p.eligible(), name) == p.me.ID
}

// Alone reports whether no other director is alive.
func (p *Peers) Alone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.peers {
		if !s.dead {
			return false
		}
	}
	return true
}

// nextExpiry is when the next peer would be dead without another beat, by our own clock.
// p.mu is held.
func (p *Peers) nextExpiry() (at time.Time, known bool) {
	now, server := p.o.Monotonic(), p.o.Now()
	for _, s := range p.peers {
		if s.dead {
			continue
		}
		end := s.changed.Add(Safe)
		if over := now.Add(s.row.Expires.Sub(server)); over.After(end) {
			end = over
		}
		if silent := s.changed.Add(Lease); silent.Before(end) {
			end = silent
		}
		if !known || end.Before(at) {
			at, known = end, true
		}
	}
	return at, known
}
