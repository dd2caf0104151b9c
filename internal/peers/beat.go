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
	// beatLimit bounds one beat: a store that is slow is given the time that
	// there is, and there is a second try within Safe. leaveLimit bounds the
	// last one.
	beatLimit  = 5 * time.Second
	leaveLimit = 3 * time.Second
	// again is the pause after a beat that failed, wants that between two
	// while another director still holds what this one is to take.
	again = 300 * time.Millisecond
	wants = 300 * time.Millisecond
	// sureFor is how long what the store thinks is held here is taken to be
	// what is held.
	sureFor = time.Minute
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
		case <-p.soon:
		}
		timer.Reset(p.round(ctx))
	}
}

// round gives up what should be another's, takes what should be ours, and
// says when the next one is due.
func (p *Peers) round(ctx context.Context) time.Duration {
	take, drop := p.plan(ctx)
	err := p.beat(ctx, take, drop)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return time.Hour // nothing is beaten any more
	case err != nil:
		return again
	}
	next := Every
	if p.wanting {
		next = wants
	}
	if end, known := p.soonestEnd(); known {
		next = min(next, max(end.Sub(p.o.Monotonic())+time.Millisecond, 20*time.Millisecond))
	}
	return next
}

// plan decides what to take and what to give up with the next beat. What is
// handed over is left first, and goes with a later beat.
func (p *Peers) plan(ctx context.Context) (take, drop []string) {
	agents := p.o.Agents()
	p.mu.Lock()
	able := p.able()
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
	look := len(want) > 0 || p.unsure || now.Sub(p.looked) >= sureFor
	quiet := now.Before(p.quiet)
	p.wanting = len(want) > 0
	p.mu.Unlock()
	p.release(lose, handingOver)
	if look && !quiet {
		more, less := p.compare(ctx, want, mine)
		take, drop = more, append(drop, less...)
	}
	slices.Sort(take)
	slices.Sort(drop)
	return take, drop
}

// compare reads who holds what in the store: only what nobody holds that may
// live is taken, and what the store thinks is held here and is not is handed over
// or taken again.
func (p *Peers) compare(ctx context.Context, want []string, mine map[string]bool) (take, drop []string) {
	holders, err := p.store.Holders(ctx)
	if err == nil {
		err = p.meet(ctx, want, holders)
	}
	if err != nil {
		return nil, nil // the beat says why
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unsure, p.looked = false, p.o.Monotonic()
	for _, a := range want {
		if holder := holders[a]; holder == "" || holder == p.me.ID || p.gone(holder) {
			take = append(take, a)
		}
	}
	for a := range p.held {
		if holders[a] != p.me.ID { // its row went, and came back
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

// beat says that this director lives, and takes in the answer.
func (p *Peers) beat(ctx context.Context, take, drop []string) error {
	p.mu.Lock()
	ended, stood := p.ended, p.entered && !p.lapsed && !p.o.Monotonic().Before(p.until)
	p.mu.Unlock()
	if ended {
		return nil
	}
	if stood { // this process, or its machine, stood still
		p.over()
	}
	return p.tell(ctx, take, drop, false)
}

// tell sends a beat. anew says that the store has forgotten what is held here.
func (p *Peers) tell(ctx context.Context, take, drop []string, anew bool) error {
	forgot := anew
	b, sent := p.word(take, drop, &anew)
	asking, cancel := context.WithTimeout(ctx, beatLimit)
	answer, err := p.store.Beat(asking, b)
	cancel()
	if err != nil {
		p.unheard(ctx, err)
		if forgot {
			p.over() // others may take what the store does not know to be ours
		}
		return err
	}
	if answer.Lapsed && !anew && p.goesOn() {
		return p.tell(ctx, take, drop, true) // our row went
	}
	if anew && p.goesOn() {
		p.log.Warn("the store's clock was set, or it lost the row of this director: what is held here was taken anew", "agents", len(answer.Taken))
		p.o.Doubt()
	}
	p.lives(&b, sent)
	p.take(b.Take, answer.Taken, drop, answer.Lapsed)
	if p.o.News != nil && len(answer.Heard) > 0 {
		p.o.News(answer.Heard)
	}
	p.membershipChanged(ctx, answer.Directors)
	return nil
}

// word is what a beat says, and when it was said by our own clock. Where the
// lease is over by the server's clock, and holds by ours, anew becomes true:
// what is held here is taken again with the same beat, before any other can.
func (p *Peers) word(take, drop []string, anew *bool) (b store.Beat, sent time.Time) {
	var heard []store.Heard
	if p.o.Heard != nil {
		heard = p.o.Heard()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b = store.Beat{Director: p.me, Take: take, Drop: drop, Heard: heard, Silent: p.silent(), Dead: p.dead(), Now: p.o.Now()}
	b.Director.Expires = b.Now.Add(Lease)
	*anew = *anew || (p.entered && !p.lapsed && !p.me.Alive(b.Now))
	if *anew {
		again := slices.Collect(maps.Keys(p.held))
		for a, what := range p.released {
			if what == handingOver { // nobody else's before Lost is done
				again = append(again, a)
			}
		}
		slices.Sort(again)
		b.Take = append(again, take...)
	}
	return b, p.o.Monotonic()
}

// goesOn reports whether the lease holds by our own clock.
func (p *Peers) goesOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entered && !p.lapsed && p.o.Monotonic().Before(p.until)
}

// unheard takes in that a beat was refused, or had no answer: it may have been
// stored all the same.
func (p *Peers) unheard(ctx context.Context, err error) {
	p.mu.Lock()
	p.unsure = true
	refused := signalbox.CodeOf(err) == signalbox.CodeConflict && !p.ended
	p.ended = p.ended || refused
	entered := p.entered
	p.mu.Unlock()
	switch {
	case refused && entered:
		p.log.Error("this director may not go on", "error", err)
		p.over()
		p.o.Superseded(err)
	case entered && ctx.Err() == nil:
		p.log.Warn("beat not stored, trying again", "error", err)
	}
}

// lives takes in that the lease holds.
func (p *Peers) lives(b *store.Beat, sent time.Time) {
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
		p.log.Info("the lease of this director holds again")
		p.o.Lapse(false)
	}
}

// expire looks whether the lease is over by our own clock.
func (p *Peers) expire() {
	p.mu.Lock()
	live := p.o.Monotonic().Before(p.until) || p.ended
	p.mu.Unlock()
	if !live {
		p.over()
	}
}

// over lets go of everything: another director may take it soon.
func (p *Peers) over() {
	p.mu.Lock()
	was := p.lapsed
	p.lapsed, p.unsure, p.until = true, true, time.Time{}
	p.mu.Unlock()
	if was {
		return
	}
	held := p.all()
	p.log.Error("the lease of this director is over: nothing is dispatched from here until it holds again", "agents", len(held))
	p.release(held, forGood)
	p.o.Lapse(true)
}

// membershipChanged takes in which directors joined and which died.
func (p *Peers) membershipChanged(ctx context.Context, living []store.Director) {
	came, missing := p.see(living)
	dead, err := p.confirmDead(ctx, missing)
	if err != nil && ctx.Err() == nil {
		p.log.Warn("directors not looked at, trying again", "error", err)
	}
	if len(dead) > 0 {
		p.log.Warn("directors are gone: their agents are shared out", "directors", dead)
		p.o.Dead(dead)
	}
	if came || len(dead) > 0 {
		p.poke() // who is to hold what has changed
	}
}
