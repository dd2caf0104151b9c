package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/top"
)

// topPatience is how long the view waits for a director that is gone: the user
// decides when to give up.
const topPatience = 7 * 24 * time.Hour

func (a *app) topCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "top",
		Short: "Watch agents, tool queues and tasks in the terminal",
		Long: "Watch agents, tool queues and tasks in the terminal, as they change: who runs what, who waits behind whom, who\n" +
			"holds which capacity, why a task does not run, and what it prints. Keys cancel, retry, pause, release and search;\n" +
			"? shows them all. Data that is older than 5 s is called so; after 15 s it is grey, and nothing can be changed until\n" +
			"the director answers again.",
		RunE: run(func(ctx context.Context, _ []string) error { return a.top(ctx) }),
	}
}

func (a *app) top(ctx context.Context) error {
	switch {
	case a.json:
		return usage("top is for people: it has no JSON").withHint("signalbox status --json")
	case a.io.TTY == nil:
		return usage("standard input and output are not a terminal").withHint("signalbox status --json says the same to a program, signalbox events what changes")
	case a.dumb():
		return usage("this terminal (TERM=dumb) cannot move its cursor").withHint("signalbox status, signalbox agents and signalbox tools queues say the same in lines")
	}
	c, err := a.client(client.Options{Patience: topPatience})
	if err != nil {
		return err
	}
	if _, err := c.Status(ctx); err != nil {
		return err // an outage is waited for only once the view has begun
	}
	return top.Run(ctx, top.Options{URL: c.URL(), Director: c, In: a.io.In, Out: a.io.Out, NoColours: !a.colours(), Now: a.io.Now})
}
