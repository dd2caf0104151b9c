package peers

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	// beatLimit is the timeout of a beat: there is time for a second attempt within Safe.
	// leaveLimit is that of the last beat.
	beatLimit  = 5 * time.Second
	leaveLimit = 3 * time.Second
	// retryInterval is the delay after a failed beat, wantInterval that between beats while
	// another director still holds a wanted agent.
	retryInterval = 300 * time.Millisecond
	wantInterval  = 300 * time.Millisecond
	// recheckInterval is how often the agents held here are compared with the store.
	recheckInterval = time.Minute
)

// loop beats until ctx ends.
func (p *Peers) loop(ctx context.Context) {
	timer := time.NewTimer(Every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.beatNow:
		}
		timer.Reset(p.round(ctx))
	}
}

// round hands over agents that another director should hold, takes those that this one should hold, and
// returns the time until the next round.
func (p *Peers) round(ctx context.Context) time.Duration {
	take, drop := p.plan(ctx)
	err := p.beat(ctx, take, drop)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return time.Hour // no more beats
	case err != nil:
		return retryInterval
	}
	next := Every
	if p.wanting {
		next = wantInterval
	}
	if end, known := p.nextExpiry(); known {
		next = min(next, max(end.Sub(p.o.Monotonic())+time.Millisecond, 20*time.Millisecond))
	}
	return next
}

// plan decides what to take and what to drop with the next beat. Agents to hand over are
// released first, and dropped with a later beat.
func (p *Peers) plan(ctx context.Context) (take, drop []string) {
	agents := p.o.Agents()
	p.mu.Lock()
	able := p.eligible()
	mine := make(map[string]bool, len(agents))
	for _, a := range agents {
		if first(able, a) == p.me.ID {
			mine[a] = true
		}
	}
	var lose, want []string
	for a := range p.held {
		if !mine[a] {
			lose = append(lose, a)
		}
	}
	for a := range mine {
		if !p.held[a] && p.released[a] == 0 {
			want = append(want, a)
		}
	}
	for a, what := range p.released {
		if what == handedOver {
			drop = append(drop, a)
		}
	}
	now := p.o.Monotonic()
	look := len(want) > 0 || p.recheckHeld || now.Sub(p.recheckedAt) >= recheckInterval
	quiet := now.Before(p.noTakeBefore)
	p.wanting = len(want) > 0
	p.mu.Unlock()
	p.release(lose, handingOver)
	if look && !quiet {
		more, less := p.compareHolders(ctx, want, mine)
		take, drop = more, append(drop, less...)
	}
	slices.Sort(take)
	slices.Sort(drop)
	return take, drop
}

// compareHolders compares with the holders in the store: an agent is taken only if no director that may be
// alive holds it. An agent that is held here by the store, but not in memory, is dropped or taken again.
func (p *Peers) compareHolders(ctx context.Context, want []string, mine map[string]bool) (take, drop []string) {
	holders, err := p.store.Holders(ctx)
	if err == nil {
		err = p.addUnknownHolders(ctx, want, holders)
	}
	if err != nil {
		return nil, nil // the beat will fail, too
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recheckHeld, p.recheckedAt = false, p.o.Monotonic()
	for _, a := range want {
		if holder := holders[a]; holder == "" || holder == p.me.ID || p.gone(holder) {
			take = append(take, a)
		}
	}
	for a := range p.held {
		if holders[a] != p.me.ID { // our row was lost and restored
			take = append(take, a)
		}
	}
	for a, holder := range holders {
		if holder == p.me.ID && !p.held[a] && !mine[a] && p.released[a] == 0 {
			drop = append(drop, a)
		}
	}
	return take, drop
}

// beat sends a beat and processes the answer.
func (p *Peers) beat(ctx context.Context, take, drop []string) error {
	p.mu.Lock()
	ended, paused := p.ended, p.entered && !p.lapsed && !p.o.Monotonic().Before(p.until)
	p.mu.Unlock()
	if ended {
		return nil
	}
	if paused { // this process or its machine was paused
		p.expireLease()
	}
	return p.sendBeat(ctx, take, drop, false)
}

// sendBeat sends a beat. retake: the store has lost what is held here.
func (p *Peers) sendBeat(ctx context.Context, take, drop []string, retake bool) error {
	forgot := retake
	b, sent := p.newBeat(take, drop, &retake)
	asking, cancel := context.WithTimeout(ctx, beatLimit)
	answer, err := p.store.Beat(asking, b)
	cancel()
	if err != nil {
		p.beatFailed(ctx, err)
		if forgot {
			p.expireLease() // others may take what the store does not know as ours
		}
		return err
	}
	if answer.Lapsed && !retake && p.leaseValid() {
		return p.sendBeat(ctx, take, drop, true) // our row was lost
	}
	if retake && p.leaseValid() {
		p.log.Warn("the store's clock was set, or it lost the row of this director: what is held here was taken anew", "agents", len(answer.Taken))
		p.o.HoldingsLost()
	}
	p.leaseRenewed(&b, sent)
	p.applyHoldings(b.Take, answer.Taken, drop, answer.Lapsed)
	if p.o.News != nil && len(answer.Heard) > 0 {
		p.o.News(answer.Heard)
	}
	p.membershipChanged(ctx, answer.Directors)
	return nil
}

// newBeat builds a beat, and returns when by our own clock. If the lease is over by the
// server's clock and valid by ours, retake becomes true: what is held here is taken again
// with the same beat, before another can.
func (p *Peers) newBeat(take, drop []string, retake *bool) (b store.Beat, sent time.Time) {
	var heard []store.Heard
	if p.o.Heard != nil {
		heard = p.o.Heard()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b = store.Beat{Director: p.me, Take: take, Drop: drop, Heard: heard, Silent: p.silent(), Dead: p.dead(), Now: p.o.Now()}
	b.Director.Expires = b.Now.Add(Lease)
	*retake = *retake || (p.entered && !p.lapsed && !p.me.Alive(b.Now))
	if *retake {
		again := slices.Collect(maps.Keys(p.held))
		for a, what := range p.released {
			if what == handingOver { // still ours until Lost has returned
				again = append(again, a)
			}
		}
		slices.Sort(again)
		b.Take = append(again, take...)
	}
	return b, p.o.Monotonic()
}

// leaseValid reports whether the lease is valid by our own clock.
func (p *Peers) leaseValid() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entered && !p.lapsed && p.o.Monotonic().Before(p.until)
}

// beatFailed handles a beat that was refused or got no answer. It may have been stored anyway.
func (p *Peers) beatFailed(ctx context.Context, err error) {
	p.mu.Lock()
	p.recheckHeld = true
	refused := signalbox.CodeOf(err) == signalbox.CodeConflict && !p.ended
	p.ended = p.ended || refused
	entered := p.entered
	p.mu.Unlock()
	switch {
	case refused && entered:
		p.log.Error("this director may not go on", "error", err)
		p.expireLease()
		p.o.Superseded(err)
	case entered && ctx.Err() == nil:
		p.log.Warn("beat not stored, trying again", "error", err)
	}
}

// leaseRenewed records a successful beat.
func (p *Peers) leaseRenewed(b *store.Beat, sent time.Time) {
	p.mu.Lock()
	back := p.lapsed
	p.entered, p.lapsed = true, false
	p.me.Expires, p.until = b.Director.Expires, sent.Add(Safe)
	if p.watch != nil {
		p.watch.Stop()
	}
	p.watch = time.AfterFunc(p.until.Sub(p.o.Monotonic()), p.expire)
	p.mu.Unlock()
	if back {
		p.log.Info("the lease of this director is valid again")
		p.o.Lapse(false)
	}
}

// expire checks whether the lease is over by our own clock.
func (p *Peers) expire() {
	p.mu.Lock()
	live := p.o.Monotonic().Before(p.until) || p.ended
	p.mu.Unlock()
	if !live {
		p.expireLease()
	}
}

// expireLease releases everything: another director may take it soon.
func (p *Peers) expireLease() {
	p.mu.Lock()
	was := p.lapsed
	p.lapsed, p.recheckHeld, p.until = true, true, time.Time{}
	p.mu.Unlock()
	if was {
		return
	}
	held := p.all()
	p.log.Error("the lease of this director is over: nothing is dispatched from here until it is valid again", "agents", len(held))
	p.release(held, releasing)
	p.o.Lapse(true)
}

// membershipChanged handles directors that joined or died.
func (p *Peers) membershipChanged(ctx context.Context, living []store.Director) {
	came, missing := p.updatePeers(living)
	dead, err := p.confirmDead(ctx, missing)
	if err != nil && ctx.Err() == nil {
		p.log.Warn("directors not read, trying again", "error", err)
	}
	if len(dead) > 0 {
		p.log.Warn("directors are gone: their agents are redistributed", "directors", dead)
		p.o.Dead(dead)
	}
	if came || len(dead) > 0 {
		p.requestBeat() // the ranking has changed
	}
}
