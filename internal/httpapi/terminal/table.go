package terminal

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

const (
	maxTickets        = 1000
	maxTicketsOf      = 4   // per principal, so that none can use up all
	maxUnproved       = 64  // connections without a ticket yet; new ones replace the oldest
	maxOpen           = 500 // open at once
	ticketRandomBytes = 32
)

// table has the unused tickets and the open terminals of a director. It ends with the
// process, and so do they.
type table struct {
	limits limits
	now    func() time.Time
	news   func(agent string) // a terminal of the agent was opened or closed
	random io.Reader

	mu       sync.Mutex
	tickets  map[[sha256.Size]byte]ticket
	open     map[key]*open
	unproved []*context.CancelCauseFunc // end connections without a ticket, oldest first
	serving  sync.WaitGroup
}

// ticket is stored by the hash of its secret.
type ticket struct {
	who   signalbox.Principal
	agent string
	ends  time.Time
}

type key struct{ principal, agent string }

// open is an open terminal.
type open struct {
	who   signalbox.Principal
	agent string
	since time.Time
	stop  context.CancelCauseFunc // the client gets the cause
}

func (t *table) init(now func() time.Time, news func(agent string)) {
	t.limits, t.now, t.news, t.random = defaultLimits, now, news, rand.Reader
	t.tickets, t.open = map[[sha256.Size]byte]ticket{}, map[key]*open{}
}

// issue creates a ticket.
func (t *table) issue(who signalbox.Principal, agent string) (secret string, ends time.Time, err error) {
	var b [ticketRandomBytes]byte
	if _, err := io.ReadFull(t.random, b[:]); err != nil {
		return "", ends, err
	}
	secret = base64.RawURLEncoding.EncodeToString(b[:])
	t.mu.Lock()
	defer t.mu.Unlock()
	now, own := t.now(), 0
	for k, old := range t.tickets {
		switch {
		case !now.Before(old.ends):
			delete(t.tickets, k)
		case old.who.Key() == who.Key():
			own++
		}
	}
	if err := t.tooMany(own); err != nil {
		return "", ends, err
	}
	ends = now.Add(t.limits.ticket)
	t.tickets[sha256.Sum256([]byte(secret))] = ticket{who: who, agent: agent, ends: ends}
	return secret, ends, nil
}

// tooMany returns an error if there are too many unused tickets, of the principal, own, or
// of all. The caller holds mu.
func (t *table) tooMany(own int) error {
	wait := int(t.limits.ticket/time.Second) + 1 // until all have expired
	switch {
	case own >= maxTicketsOf:
		return &httpio.Refusal{
			Err:        signalbox.Errorf(signalbox.CodeRateLimited, "you have %d unused tickets for terminals, the maximum", own),
			Hint:       fmt.Sprintf("open terminals with them, or try again in %d s, when they have expired", wait),
			RetryAfter: wait,
		}
	case len(t.tickets) >= maxTickets:
		return &httpio.Refusal{
			Err:        signalbox.Errorf(signalbox.CodeUnavailable, "there are too many unused tickets for terminals"),
			Hint:       fmt.Sprintf("try again in %d s, when they have expired", wait),
			RetryAfter: wait,
		}
	}
	return nil
}

// redeem uses up a ticket, even if it is not valid for this agent.
func (t *table) redeem(secret, agent string) (who signalbox.Principal, ok bool) {
	key := sha256.Sum256([]byte(secret))
	t.mu.Lock()
	defer t.mu.Unlock()
	got, ok := t.tickets[key]
	delete(t.tickets, key)
	return got.who, ok && t.now().Before(got.ends) && got.agent == agent
}

// enter counts a connection without a ticket yet. If there are too many, it ends the ctx of
// the oldest one, so that connections without a ticket lock nobody out. Call proved when the
// ticket has arrived or is overdue, and leave when the connection has ended.
func (t *table) enter(life context.Context) (ctx context.Context, proved, leave func()) {
	ctx, cut := context.WithCancelCause(life)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.unproved) >= maxUnproved {
		(*t.unproved[0])(errCrowded)
		t.unproved = slices.Delete(t.unproved, 0, 1)
	}
	t.unproved = append(t.unproved, &cut)
	t.serving.Add(1)
	proved = sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		cut(nil)
		t.unproved = slices.DeleteFunc(t.unproved, func(c *context.CancelCauseFunc) bool { return c == &cut })
	})
	return ctx, proved, func() { proved(); t.serving.Done() }
}

// claim registers a terminal as the only one of its principal and agent.
func (t *table) claim(o *open) error {
	key := key{o.who.Key(), o.agent}
	t.mu.Lock()
	defer t.mu.Unlock()
	if other := t.open[key]; other != nil {
		return alreadyOpen(o.agent, other.since)
	}
	if len(t.open) >= maxOpen {
		return signalbox.Errorf(signalbox.CodeUnavailable, "%d terminals are open, which is the maximum", maxOpen)
	}
	t.open[key] = o
	t.news(o.agent)
	return nil
}

func (t *table) release(o *open) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if key := (key{o.who.Key(), o.agent}); t.open[key] == o {
		delete(t.open, key)
		t.news(o.agent)
	}
}

func (t *table) isOpen(who signalbox.Principal, agent string) (since time.Time, is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.open[key{who.Key(), agent}]
	if o == nil {
		return since, false
	}
	return o.since, true
}

func (t *table) all() []*open {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*open, 0, len(t.open))
	for _, o := range t.open {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *open) int { return a.since.Compare(b.since) })
	return list
}

// Of lists the open terminals of an agent, oldest first.
func (t *table) Of(agent string) []api.AgentTerminal {
	var list []api.AgentTerminal
	for _, o := range t.all() {
		if o.agent == agent {
			list = append(list, api.AgentTerminal{By: o.who.String(), Since: o.since})
		}
	}
	return list
}

// Wait waits until no terminal is served any more, at most for most, so that their ends are
// in the audit log before the store closes.
func (t *table) Wait(most time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.serving.Wait()
	}()
	select {
	case <-done:
	case <-time.After(most):
	}
}
