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
	maxTicketsOf      = 4   // of one principal, so that none takes up those of all
	maxUnproved       = 64  // connections that have not shown a ticket yet; older ones give way
	maxOpen           = 500 // open at once
	ticketRandomBytes = 32
)

// table is what a director knows of terminals: tickets that were not used
// yet, and the open ones. It is lost with the process, as they are.
type table struct {
	limits limits
	now    func() time.Time
	news   func(agent string) // a terminal of the agent was opened or closed
	random io.Reader

	mu       sync.Mutex
	tickets  map[[sha256.Size]byte]ticket
	open     map[key]*open
	unproved []*context.CancelCauseFunc // of connections, the oldest first
	serving  sync.WaitGroup
}

// ticket is kept under the hash of its secret.
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
	stop  context.CancelCauseFunc // its cause is told to the client
}

func (t *table) init(now func() time.Time, news func(agent string)) {
	t.limits, t.now, t.news, t.random = defaultLimits, now, news, rand.Reader
	t.tickets, t.open = map[[sha256.Size]byte]ticket{}, map[key]*open{}
}

// issue makes a ticket.
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

// tooMany refuses one more ticket, also to one that has own ones unused. The
// caller has the lock.
func (t *table) tooMany(own int) error {
	wait := int(t.limits.ticket/time.Second) + 1 // by then they have expired
	switch {
	case own >= maxTicketsOf:
		return &httpio.Refusal{
			Err:        signalbox.Errorf(signalbox.CodeRateLimited, "you have %d tickets for terminals that were not used, the most there can be", own),
			Hint:       fmt.Sprintf("open terminals with them, or ask again in %d s, when they have expired", wait),
			RetryAfter: wait,
		}
	case len(t.tickets) >= maxTickets:
		return &httpio.Refusal{
			Err:        signalbox.Errorf(signalbox.CodeUnavailable, "too many tickets for terminals wait to be used"),
			Hint:       fmt.Sprintf("ask again in %d s, when they have expired", wait),
			RetryAfter: wait,
		}
	}
	return nil
}

// redeem takes a ticket. Whatever is wrong with it, it is used up.
func (t *table) redeem(secret, agent string) (who signalbox.Principal, ok bool) {
	key := sha256.Sum256([]byte(secret))
	t.mu.Lock()
	defer t.mu.Unlock()
	got, ok := t.tickets[key]
	delete(t.tickets, key)
	return got.who, ok && t.now().Before(got.ends) && got.agent == agent
}

// enter counts a connection of which no ticket is known yet. Where there are
// too many, the one that has waited longest gives way, by the end of its ctx:
// who connects and shows nothing keeps nobody out. proved says that the ticket
// has come, or none in time, and leave that the connection is over.
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

// claim makes a terminal the one of its principal and agent.
func (t *table) claim(o *open) error {
	key := key{o.who.Key(), o.agent}
	t.mu.Lock()
	defer t.mu.Unlock()
	if other := t.open[key]; other != nil {
		return alreadyOpen(o.agent, other.since)
	}
	if len(t.open) >= maxOpen {
		return signalbox.Errorf(signalbox.CodeUnavailable, "%d terminals are open, the most there can be", maxOpen)
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

// Of lists the open terminals of an agent, the oldest first.
func (t *table) Of(agent string) []api.AgentTerminal {
	var list []api.AgentTerminal
	for _, o := range t.all() {
		if o.agent == agent {
			list = append(list, api.AgentTerminal{By: o.who.String(), Since: o.since})
		}
	}
	return list
}

// Wait returns when none is served any more, or after most: their ends are
// written to the audit log before the store closes.
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
