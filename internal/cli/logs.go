package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) logsCmd() *cobra.Command {
	var after int64
	var whole bool
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print the log of a task",
		Long: "Print the log of a task, as far as it is kept: the director keeps the last 128 KiB. With --whole the log comes from\n" +
			"the agent, which keeps up to 64 MiB of the last attempt. On a terminal all escape sequences except colours are removed.",
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if whole && cmd.Flags().Changed("follow") {
				return usage("--whole prints the log up to now: leave out --follow")
			}
			if after < 0 {
				return usage("--after: want 0 or more bytes, got %d", after)
			}
			return nil
		},
		RunE: a.ask(func(ctx context.Context, c *client.Client, args []string) error {
			read := c.Output
			if whole {
				read = c.WholeLog
			}
			return a.readLog(ctx, c, args[0], after, read)
		}),
		ValidArgsFunction: a.completeIDs(anyTask),
	}
	follow := cmd.Flags().BoolP("follow", "f", false, "continue as the log is written, until the task has ended; with --json one document per line")
	cmd.Flags().BoolVar(&whole, "whole", false, "print the whole log, from the agent")
	cmd.Flags().Int64Var(&after, "after", 0, "skip this many `bytes` at the beginning")
	return a.follow(cmd, follow, func(ctx context.Context, c *client.Client, args []string) error {
		return a.followLog(ctx, c, args[0], after)
	})
}

// readLog prints the log up to now. A long log needs several requests.
func (a *app) readLog(ctx context.Context, c *client.Client, part string, after int64, read func(ctx context.Context, id string, after int64) (api.Output, error)) error {
	id, err := resolve(ctx, c, part)
	if err != nil {
		return err
	}
	first, err := read(ctx, id, after)
	if err != nil {
		return err
	}
	var message string
	var text strings.Builder
	out := a.outWriter()
	for part := first; ; {
		a.logNotes(part, after, &message)
		to := out
		if a.json {
			to = &text
		}
		if _, err := io.WriteString(to, part.Text); err != nil {
			return err
		}
		first.Next, first.Done, first.State = part.Next, part.Done, part.State
		if part.Done || part.Next <= after {
			break
		}
		after = part.Next
		if part, err = read(ctx, id, after); err != nil {
			return err
		}
	}
	first.Text = text.String()
	return a.print(first, func() {})
}

// logNotes reports a gap in a log, and each new message about it once.
func (a *app) logNotes(o api.Output, after int64, last *string) {
	if o.Truncated {
		a.note("(%d bytes of the log are no longer kept)", o.Seq-after)
	}
	if o.Message != "" && o.Message != *last && !a.json {
		a.note("%s", clean(o.Message))
	}
	*last = o.Message
}

func (a *app) followLog(ctx context.Context, c *client.Client, part string, after int64) error {
	id, err := resolve(ctx, c, part)
	if err != nil {
		return err
	}
	out, message := a.outWriter(), ""
	return c.FollowOutput(ctx, id, after, func(o api.Output) error {
		a.logNotes(o, after, &message)
		after = o.Next
		if a.json {
			return writeLine(a.io.Out, o)
		}
		_, err := io.WriteString(out, o.Text)
		return err
	})
}

// tailBytes is how much of the printed log is remembered: the maximum size of a result.
const tailBytes = 1 << 20

// liveLog prints a task's log while it runs.
type liveLog struct {
	done chan struct{}
	tail tail
}

// startLiveLog starts the live log of w's task.
func (w *waiter) startLiveLog(ctx context.Context) *liveLog {
	l := &liveLog{done: make(chan struct{})}
	out := w.outWriter()
	go func() {
		defer close(l.done)
		// Errors are ignored: the wait goes on, and prints the result at the end.
		_ = w.c.FollowOutput(ctx, w.id, 0, func(o api.Output) error {
			l.tail.add(o.Text)
			_, err := io.WriteString(out, o.Text)
			return err
		})
	}()
	return l
}

// finish waits for the rest of the log and returns the end of it.
func (l *liveLog) finish(ctx context.Context) string {
	if l == nil {
		return ""
	}
	select {
	case <-l.done:
		return string(l.tail)
	case <-ctx.Done():
	case <-time.After(grace):
	}
	return ""
}

// tail keeps the last bytes of a text.
type tail []byte

func (t *tail) add(text string) {
	*t = append(*t, text...)
	if over := len(*t) - tailBytes; over > tailBytes {
		*t = append((*t)[:0], (*t)[over:]...)
	}
}

// outWriter is standard output for untrusted text: sanitized on a terminal,
// unchanged otherwise.
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
