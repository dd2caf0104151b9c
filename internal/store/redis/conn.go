package redis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// clients are the connections. Reads share a few pipelined ones. The writer has its own, so
// that batches do not delay reads.
type clients struct {
	reader, writer rueidis.Client
}

// clientRole selects a client.
type clientRole func(c *clients) rueidis.Client

func (g *backend) reader(c *clients) rueidis.Client { return c.reader }
func (g *backend) writer(c *clients) rueidis.Client { return c.writer }

func (c *clients) close() {
	c.reader.Close()
	c.writer.Close()
}

// dial opens both. The library must not retry: safe retries are done in run.
func dial(o rueidis.ClientOption) (*clients, error) {
	o.DisableRetry, o.DisableCache = true, true
	reader, err := rueidis.NewClient(o)
	if err != nil {
		return nil, err
	}
	o.DisableAutoPipelining, o.BlockingPoolSize = true, 2
	writer, err := rueidis.NewClient(o)
	if err != nil {
		reader.Close()
		return nil, err
	}
	return &clients{reader: reader, writer: writer}, nil
}

const (
	answerTime = 10 * time.Second
	dialTime   = 5 * time.Second
)

// run runs a script that may be repeated, and retries while the server restarts.
func (g *backend) run(ctx context.Context, by clientRole, script *rueidis.Lua, args []string) (rueidis.RedisMessage, error) {
	for try := 0; ; try++ {
		c := g.clients.Load()
		m, err := g.once(ctx, by(c), script, args)
		if err == nil {
			return m, nil
		}
		if !g.isRetryable(ctx, c, err, try) {
			return m, g.convertError(ctx, err)
		}
	}
}

func (g *backend) once(ctx context.Context, c rueidis.Client, script *rueidis.Lua, args []string) (rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return script.Exec(ctx, c, []string{g.prefix}, args).ToMessage()
}

// commit runs a script that writes a batch. It is retried only if the server certainly did not run it.
func (g *backend) commit(ctx context.Context, script *rueidis.Lua, args []string) (rueidis.RedisMessage, error) {
	for try := 0; ; try++ {
		c := g.clients.Load()
		m, err := g.once(ctx, c.writer, script, args)
		switch {
		case err == nil:
			return m, nil
		case !neverSent(err):
			return m, errors.Join(verbs.ErrUnknown, g.convertError(ctx, err))
		case !g.isRetryable(ctx, c, err, try):
			return m, g.convertError(ctx, err)
		}
	}
}

// isRetryable reports whether an exchange is worth an immediate retry: idle connections broke
// in a restart, or another server took over. The caller decides whether to wait longer.
func (g *backend) isRetryable(ctx context.Context, c *clients, err error, try int) bool {
	const tries, first = 3, 10 * time.Millisecond
	if try >= tries || ctx.Err() != nil || g.closing.Err() != nil || !isTransient(err) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	pause := time.NewTimer(first << try)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return false
	case <-g.closing.Done():
		return false
	}
	if readOnly(err) {
		g.reconnect(c)
	}
	return true
}

// reconnect resolves the server again: the connected one has become a replica, and its name may
// lead to another now.
func (g *backend) reconnect(old *clients) {
	g.dialing.Lock()
	defer g.dialing.Unlock()
	if g.closing.Err() != nil || g.clients.Load() != old {
		return // another goroutine did
	}
	fresh, err := dial(g.option)
	if err != nil {
		g.log.Warn("Redis cannot be reached again", "server", g.address, "error", err)
		return
	}
	g.clients.Store(fresh)
	g.log.Warn("reconnected to Redis: the server had become a replica", "server", g.address)
	g.background.Go(old.close)
}

// rememberName stores the name of the process, to recognize its own signals.
func (g *backend) rememberName(writer string) {
	if known := g.name.Load(); known == nil || *known != writer {
		g.name.Store(&writer)
	}
}

// Close closes the connections.
func (g *backend) Close() error {
	g.stop()
	g.dialing.Lock()
	defer g.dialing.Unlock()
	g.closed.Do(func() {
		g.clients.Load().close()
		g.background.Wait()
	})
	return nil
}

// Time is the time by the server's clock.
func (g *backend) Time(ctx context.Context) (now time.Time, err error) {
	var q questions
	q.ask(func(m rueidis.RedisMessage) error {
		list, err := texts(m)
		if err != nil || len(list) != 2 {
			return errors.Join(err, errAnswer)
		}
		now = time.UnixMilli(integer(list[0])*1000 + integer(list[1])/1000).UTC()
		return nil
	}, "time", "")
	return now, g.answers(ctx, g.reader, &q)
}

// Info describes the server as of Open.
func (g *backend) Info() store.Info { return g.info }

// Changed signals that another process has committed.
func (g *backend) Changed() <-chan struct{} { return g.changed }

// signal is a channel of coalescing signals.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
