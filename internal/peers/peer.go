package peers

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// peer is another director, as far as this one knows.
//
// It is dead when the server's clock says that its lease is over, and no beat
// of it was seen for as long as it itself holds on to what it holds (Safe) by
// our own clock, too: a server whose clock jumps ends no lease before its time.
// Where that clock went back, so that the lease is not over for long, it is dead
// when no beat of it was seen for Lease.
type peer struct {
	row     store.Director
	changed time.Time // when a beat of it was last seen, by our own clock
	missing bool      // the server's clock says that its lease is over
	dead    bool
}

// see takes in who lives by the server's clock. It reports whether someone
// came or begins to drain, and who is missing that lived until now.
func (p *Peers) see(living []store.Director) (came bool, missing []string) {
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
			came = true
		}
		came = came || s.row.Draining != d.Draining
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
	return came, missing
}

// meet takes note of those who hold what this director wants and were not seen
// yet: one that joined as the server's clock was set is not dead because its
// lease is over by that clock.
func (p *Peers) meet(ctx context.Context, want []string, holders map[string]string) error {
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

// confirmDead finds out which of those that are missing are dead. It returns them.
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
		left := at < 0 // its row went: it said itself that it leaves, and let go of everything before
		if at >= 0 && (!rows[at].Expires.Equal(s.row.Expires) || rows[at].Run != s.row.Run) {
			s.row, s.changed = rows[at], now // a beat came in between
		}
		if left || now.Sub(s.changed) >= Safe {
			s.dead = true
			dead = append(dead, id)
		}
	}
	slices.Sort(dead)
	return dead, nil
}

// silent lists the directors of which no beat was seen for a whole lease by our
// own clock, whatever the server's says. p.mu is held.
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

// able are the directors that an agent may belong to: all that are not known
// to be dead, this one among them, and take agents. p.mu is held.
func (p *Peers) able() (list []store.Director) {
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

// gone reports whether what a director holds is free to take. p.mu is held.
func (p *Peers) gone(id string) bool {
	s := p.peers[id]
	return id != p.me.ID && (s == nil || s.dead)
}

// Others lists the directors that live, this one apart, by ID.
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

// Gone reports whether no director of that ID lives, as far as is known here.
// It is false until the directors were looked at for the first time.
func (p *Peers) Gone(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entered && p.gone(id)
}

// ConfirmGone is Gone, by what the store says now: one that has just started, or
// come back, was not seen yet. What it looks after must not be put away.
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
		p.poke()
		return false
	}
	return true
}

// First reports whether this director is the one of those that live whose turn
// it is to look after what bears that name and nobody holds.
func (p *Peers) First(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entered && p.o.Monotonic().Before(p.until) && first(p.able(), name) == p.me.ID
}

// Alone reports whether no other director lives.
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

// soonestEnd is when the next lease of another is over, if no beat comes, by
// our own clock. p.mu is held.
func (p *Peers) soonestEnd() (at time.Time, known bool) {
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
