package postgres

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// listener receives notifications of other processes' batches, on its own connection. They are
// hints; missed ones are found by polling.
type listener struct {
	backend *Backend
	changed chan struct{}
	ownName string // to ignore its own notifications
	stop    context.CancelFunc
	done    chan struct{}
}

func (e *listener) init(g *Backend) {
	ctx, stop := context.WithCancel(context.Background())
	e.backend, e.changed, e.ownName, e.stop, e.done = g, make(chan struct{}, 1), rand.Text(), stop, make(chan struct{})
	go e.loop(ctx)
}

func (e *listener) close() {
	e.stop()
	<-e.done
}

// channel is the channel that a process notifies after a write.
func (e *listener) channel() string { return "signalbox " + e.backend.params.schema }

// Delays between attempts to connect.
const (
	minReconnectDelay = 100 * time.Millisecond
	maxReconnectDelay = 5 * time.Second
)

func (e *listener) loop(ctx context.Context) {
	defer close(e.done)
	pause := minReconnectDelay
	for ctx.Err() == nil {
		if e.listen(ctx) {
			pause = minReconnectDelay
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, maxReconnectDelay)
	}
}

// listen listens until the connection breaks, and reports whether there was one.
func (e *listener) listen(ctx context.Context) bool {
	conn, err := e.backend.params.dial(ctx, func(c *pgconn.Config) {
		c.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
			if n.Payload != e.ownName {
				e.signal()
			}
		}
		c.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {}
	})
	if err != nil {
		return false
	}
	// Close tells the server, which need not succeed.
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `SET tcp_keepalives_idle = 10; LISTEN "`+e.channel()+`"`).ReadAll(); err != nil {
		return false
	}
	e.signal() // for what happened while nothing listened
	for {
		if err := conn.WaitForNotification(ctx); err != nil {
			return true
		}
	}
}

func (e *listener) signal() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}
