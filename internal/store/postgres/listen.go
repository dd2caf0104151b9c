package postgres

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ears listen for the batches of other processes, on a connection of their
// own. What they hear is a hint; what they miss is found by who looks.
type ears struct {
	backend *Backend
	changed chan struct{}
	own     string // what this process says, so that it does not hear itself
	stop    context.CancelFunc
	done    chan struct{}
}

func (e *ears) init(g *Backend) {
	ctx, stop := context.WithCancel(context.Background())
	e.backend, e.changed, e.own, e.stop, e.done = g, make(chan struct{}, 1), rand.Text(), stop, make(chan struct{})
	go e.loop(ctx)
}

func (e *ears) close() {
	e.stop()
	<-e.done
}

// channel is what a process notifies when it wrote.
func (e *ears) channel() string { return "signalbox " + e.backend.params.schema }

// Pauses between two tries to connect.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
)

func (e *ears) loop(ctx context.Context) {
	defer close(e.done)
	pause := firstPause
	for ctx.Err() == nil {
		if e.listen(ctx) {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longPause)
	}
}

// listen listens until the connection breaks, and reports whether there was
// one.
func (e *ears) listen(ctx context.Context) bool {
	conn, err := e.backend.params.dial(ctx, func(c *pgconn.Config) {
		c.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
			if n.Payload != e.own {
				e.sign()
			}
		}
		c.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {}
	})
	if err != nil {
		return false
	}
	// Closing says goodbye to the server, which it does not need to hear.
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `SET tcp_keepalives_idle = 10; LISTEN "`+e.channel()+`"`).ReadAll(); err != nil {
		return false
	}
	e.sign() // for what nobody listened to
	for {
		if err := conn.WaitForNotification(ctx); err != nil {
			return true
		}
	}
}

func (e *ears) sign() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}
