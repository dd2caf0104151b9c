package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// tailBytes is how much of a shown log is remembered, in bytes: as much as
// an answer can be long.
const tailBytes = 1 << 20

// liveLog writes a task's log to standard output while it runs.
type liveLog struct {
	done chan struct{}
	tail tail
}

// follower starts the live log of w's task.
func (w *waiter) follower(ctx context.Context) *liveLog {
	l := &liveLog{done: make(chan struct{})}
	out := w.outWriter()
	go func() {
		defer close(l.done)
		// Its error is no matter: the wait goes on, and the task's answer is
		// written at the end.
		_ = w.c.FollowOutput(ctx, w.id, 0, func(o api.Output) error {
			_, _ = l.tail.Write([]byte(o.Text))
			_, err := io.WriteString(out, o.Text)
			return err
		})
	}()
	return l
}

// finish waits for the rest of the log and returns its end.
func (l *liveLog) finish(ctx context.Context) string {
	if l == nil {
		return ""
	}
	limit := time.NewTimer(grace)
	defer limit.Stop()
	select {
	case <-l.done:
		return string(l.tail)
	case <-ctx.Done():
	case <-limit.C:
	}
	return ""
}

// tail keeps the last bytes of what was written.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if over := len(*t) - tailBytes; over > tailBytes {
		*t = append((*t)[:0], (*t)[over:]...)
	}
	return len(p), nil
}

// outWriter is standard output for foreign text: made safe where it is a
// terminal, as it is where a program reads it.
func (a *app) outWriter() io.Writer {
	if !a.io.OutTTY {
		return a.io.Out
	}
	return &safeWriter{w: a.io.Out}
}

func (a *app) forOut(text string) string {
	if !a.io.OutTTY {
		return text
	}
	return neutralise(text)
}

// notKept tells of a gap in a log.
func (a *app) notKept(o api.Output, after int64) {
	if o.Truncated {
		a.note("(%s of the log are no longer kept)", fmt.Sprintf("%d bytes", o.Seq-after))
	}
}
