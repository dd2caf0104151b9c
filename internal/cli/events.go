package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) eventsCmd() *cobra.Command {
	opts := client.EventsOptions{}
	var task string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what happens, as it happens",
		Long: "Print what happens, as it happens, until Ctrl-C. A broken stream is taken up again where it stopped; an\n" +
			"event of kind reset says that others between it and the one before are not available.",
		RunE: run(func(ctx context.Context, _ []string) error {
			if opts.After < client.Now {
				return usage("--after: want the seq of an event, 0 for the oldest, or -1 for now, got %d", opts.After)
			}
			return a.events(ctx, opts, task)
		}),
	}
	cmd.Flags().Int64Var(&opts.After, "after", client.Now, "begin after the event with this `seq`; 0: with the oldest; -1: now")
	cmd.Flags().StringVar(&task, "task", "", "only events of the task with this `id`")
	cmd.Flags().StringVar(&opts.Agent, "agent", "", "only events of this `agent` and its queue")
	cmd.Flags().StringSliceVar(&opts.Include, "include", nil, "`events` of the moment besides: position, output, or both with a comma")
	return cmd
}

func (a *app) events(ctx context.Context, opts client.EventsOptions, task string) error {
	c, err := a.following()
	if err != nil {
		return err
	}
	if _, err := c.Health(ctx); client.IsUnreachable(err) {
		return err // see followLog
	}
	if task != "" {
		if opts.QueueID, err = resolve(ctx, c, task); err != nil {
			return err
		}
	}
	for event, err := range c.Events(ctx, opts) {
		if err == nil && a.json {
			err = writeLine(a.io.Out, event)
		} else if err == nil {
			err = a.say("%s", a.eventLine(event))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) eventLine(e api.Event) string {
	line := a.paint(dim, a.clock(e.At)) + " " + clean(e.Kind)
	if e.Seq == 0 && e.At.IsZero() { // of the moment
		line = clean(e.Kind)
	}
	if e.QueueID != "" {
		line += " " + clean(e.QueueID)
	} else if e.Queue != "" {
		line += " " + clean(e.Queue)
	}
	if e.State != "" {
		line += " [" + a.state(e.State) + "]"
	}
	if e.Agent != "" {
		line += " " + clean(e.Agent)
	}
	if e.By != "" {
		line += " by " + clean(e.By)
	}
	if e.Position > 0 {
		line += fmt.Sprintf(" position %d", e.Position)
	}
	if e.Message != "" {
		line += ": " + clean(e.Message)
	}
	if e.Text != "" {
		line += ": " + clean(strings.TrimRight(e.Text, "\n"))
	}
	return line
}
