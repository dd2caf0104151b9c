package redis

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Lock waits for the lock, and loads in the step that takes it.
func (g *backend) Lock(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	g.rememberName(w.Writer)
	q, l := wanted(w)
	args := append([]string{w.Writer}, q.args...)
	for {
		m, err := g.run(ctx, g.writer, lockScript, args)
		if err != nil {
			return nil, err
		}
		left, err := m.AsInt64() // for how long another process has it
		if err != nil {
			return l, q.take(m)
		}
		if err := g.waitTurn(ctx, time.Duration(left)*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// waitTurn waits until another process commits, or for a short time, since signals may be missed.
func (g *backend) waitTurn(ctx context.Context, left time.Duration) error {
	const most = 20 * time.Millisecond
	pause := time.NewTimer(max(time.Millisecond, min(left, most)))
	defer pause.Stop()
	select {
	case <-g.moved:
	case <-pause.C:
	case <-ctx.Done():
		return g.convertError(ctx, ctx.Err())
	case <-g.closing.Done():
		return g.convertError(ctx, rueidis.ErrClosing)
	}
	return nil
}

// Unlock releases the lock. If that fails, the lock expires.
func (g *backend) Unlock(ctx context.Context) {
	name := g.name.Load()
	if name == nil {
		return
	}
	if _, err := g.once(ctx, g.clients.Load().writer, unlockScript, []string{*name}); err != nil {
		g.log.Debug("the lock was not released", "error", err)
	}
}

// Committed queries the outcome of a batch whose answer was lost. A batch that is not stored
// may still arrive: the query ensures that it is refused then (settle.lua).
func (g *backend) Committed(ctx context.Context, writer string, number int64) (bool, error) {
	g.rememberName(writer)
	m, err := g.run(ctx, g.writer, settleScript, []string{writer, decimal(number)})
	if err != nil {
		return false, err
	}
	stored, err := m.AsInt64()
	if err != nil {
		return false, g.convertError(ctx, err)
	}
	return stored == 1, nil
}

// watch forwards the signals of other processes until the store is closed.
func (g *backend) watch() {
	const pause = 200 * time.Millisecond
	listening := rueidis.WithOnSubscriptionHook(g.closing, func(s rueidis.PubSubSubscription) {
		g.listens.Store(s.Kind == "ssubscribe")
		signal(g.changed) // signals may have been missed until now
	})
	for told := false; g.closing.Err() == nil; {
		c := g.clients.Load().reader
		err := c.Receive(listening, c.B().Ssubscribe().Channel(g.prefix+"moved").Build(), func(m rueidis.PubSubMessage) {
			what, writer, _ := strings.Cut(m.Message, " ")
			if name := g.name.Load(); name != nil && *name == writer {
				return
			}
			if signal(g.moved); what == "batch" {
				signal(g.changed)
			}
		})
		g.listens.Store(false)
		if refused, ok := rueidis.IsRedisErr(err); ok && denied(refused.Error()) && !told {
			told = true
			g.log.Warn("Redis does not allow the user of the store's URL to listen: changes of other directors are seen later", "grant", "ACL SETUSER USER &"+g.prefix+"*")
		}
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-g.closing.Done():
		}
		wait.Stop()
	}
}
