package cli

import (
	"context"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/top"
)

// topPatience is how long the view waits for a director that is gone. It is long: the
// user decides when to give up.
const topPatience = 7 * 24 * time.Hour

func (a *app) topCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "top",
		Short: "Watch agents, tool queues and tasks in the terminal",
		Long: "Watch agents, tool queues and tasks in the terminal as they change: who runs what, who waits behind whom, who\n" +
			"holds which capacity, why a task does not run, and what it prints. There are keys to submit, chat, cancel, retry,\n" +
			"pause, release and search; ? shows them all. The view reports a closed connection at once; after 15 s without an\n" +
			"answer the data turns grey, and nothing can be changed until the director answers again.",
		RunE: run(func(ctx context.Context, _ []string) error { return a.top(ctx) }),
	}
}

// topDirector tells the view when the live stream has failed, but not when another
// request has.
type topDirector struct {
	*client.Client
	stream *client.Client
	closed func()
}

func (d *topDirector) Live(ctx context.Context, closed func()) iter.Seq2[client.LiveEvent, error] {
	d.closed = closed
	return d.stream.Live(ctx)
}

func (a *app) top(ctx context.Context) error {
	switch {
	case a.json:
		return usage("top is for people: it has no JSON output").withHint("use signalbox status --json")
	case a.io.TTY == nil:
		return usage("standard input and output are not a terminal").withHint("for programs use signalbox status --json and signalbox events")
	case a.dumb():
		return usage("this terminal (TERM=dumb) cannot move its cursor").withHint("signalbox status, signalbox agents and signalbox tools queues print the same as lines")
	}
	c, err := a.client(client.Options{Patience: topPatience})
	if err != nil {
		return err
	}
	d := &topDirector{Client: c}
	if d.stream, err = a.client(client.Options{Patience: topPatience, OnRetry: func(error, time.Duration) { d.closed() }}); err != nil {
		return err
	}
	if _, err := c.Status(ctx); err != nil {
		return err // outages are waited out only after the view has started
	}
	return top.Run(ctx, top.Options{URL: c.URL(), Director: d, In: a.io.In, Out: a.io.Out, NoColours: !a.colours(), Now: a.io.Now})
}
