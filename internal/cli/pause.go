package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

const queueArg = "QUEUE is work, pool:KIND, agent:NAME, or commands or calls for tools' tasks; without it all queues are meant."

func (a *app) pauseCmd() *cobra.Command {
	var req api.PauseRequest
	var length span
	var yes bool
	cmd := &cobra.Command{
		Use:   "pause [QUEUE]",
		Short: "Let a queue, or all, hand out nothing",
		Long: "Let a queue hand out nothing. What runs goes on, and tasks can still be submitted.\n" +
			"A pause of agent:NAME drains that agent: it takes from no queue, its isolated executions apart.\n" + queueArg,
		RunE: query(a, func(ctx context.Context, c *client.Client, args []string) (none api.Paused, err error) {
			req.Queue, req.Seconds = first(args), length.seconds()
			if err := a.knownQueue(ctx, c, req.Queue); err != nil {
				return none, err
			}
			if req.Queue == "" {
				if err := a.sure(ctx, yes, "Every queue is paused. Pause?"); err != nil {
					return none, err
				}
			}
			return c.Pause(ctx, req)
		}, a.pauses),
		ValidArgsFunction: a.offer(queueNames),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask, at a terminal, before all queues are paused")
	cmd.Flags().StringVar(&req.Reason, "reason", "", "`text` that others see")
	cmd.Flags().Var(&length, "for", "resume by itself after this long (default: when someone says so)")
	return cmd
}

func (a *app) resumeCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "resume [QUEUE]",
		Short: "Let a queue, or all, go on",
		Long:  "Let a queue go on that was paused, or with no queue all that are.\n" + queueArg,
		RunE: query(a, func(ctx context.Context, c *client.Client, args []string) (api.Paused, error) {
			got, err := c.Resume(ctx, first(args))
			if err == nil && len(args) == 0 {
				return resumeEach(ctx, c, got)
			}
			return got, err
		}, a.pauses),
		ValidArgsFunction: a.offer(queueNames),
	}
}

// resumeEach resumes the single queues that are still paused.
func resumeEach(ctx context.Context, c *client.Client, left api.Paused) (api.Paused, error) {
	for _, p := range left.Paused {
		if p.Queue == "" {
			continue
		}
		var err error
		if left, err = c.Resume(ctx, p.Queue); err != nil {
			return left, err
		}
	}
	return left, nil
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// pauses lists the pauses that are in force.
func (a *app) pauses(got api.Paused) error {
	if len(got.Paused) == 0 {
		return a.say("Nothing is paused.")
	}
	for _, p := range got.Paused {
		if err := a.say("%s", a.pauseLine(p)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) pauseLine(p api.Pause) string {
	line := "Paused: all queues"
	if p.Queue != "" {
		line = "Paused: " + clean(p.Queue)
	}
	line += " since " + a.clock(p.Since)
	if p.Until != nil {
		line += " until " + a.clock(*p.Until)
	}
	if p.Reason != "" {
		line += " (" + clean(p.Reason) + ")"
	}
	return line
}
