package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) triggerScheduleCmd() *cobra.Command {
	var w waitFlags
	cmd := &cobra.Command{
		Use:   "trigger NAME",
		Short: "Fire a schedule now, beside its instants",
		Long: "Fire a schedule now, beside its instants. Where the task before has not ended and it waits for it, the firing\n" +
			"is held until then.",
		RunE: run(func(ctx context.Context, args []string) error {
			if w.limit != 0 && !w.on {
				return usage("--wait-timeout bounds a wait: it goes with --wait")
			}
			c, err := a.following()
			if err != nil {
				return err
			}
			return a.trigger(ctx, c, args[0], &w)
		}),
		ValidArgsFunction: a.offer(scheduleNames),
	}
	w.register(cmd)
	return cmd
}

func (a *app) trigger(ctx context.Context, c *client.Client, name string, w *waitFlags) error {
	got, err := c.TriggerSchedule(ctx, name)
	if client.IsUnreachable(err) {
		return toFault(err).hinted("signalbox schedules executions %s says whether it fired", name)
	}
	if err != nil {
		return err
	}
	line := "Queued: " + clean(got.QueueID)
	if got.QueueID == "" {
		line = fmt.Sprintf("Held: %s (until the task before has ended)", clean(name))
	}
	if !w.on {
		return a.print(got, func() error { return a.say("%s", line) })
	}
	a.note("%s", line)
	wait, cancel := w.bound(ctx)
	defer cancel()
	id, err := a.heldTask(ctx, wait, c, name, got)
	if err != nil {
		return err
	}
	return a.wait(ctx, wait, c, api.SubmitResponse{QueueID: id, State: "pending"})
}

// heldTask waits until a firing that is held has its task.
func (a *app) heldTask(ctx, wait context.Context, c *client.Client, name string, got api.Triggered) (string, error) {
	for got.QueueID == "" {
		select {
		case <-a.io.After(time.Second):
		case <-wait.Done():
			back := "signalbox schedules executions " + name
			if ctx.Err() != nil {
				return "", (&fault{exit: exitDetached, code: "interrupted", message: "interrupted; the firing is held"}).hinted("%s shows it", back)
			}
			return "", (&fault{exit: exitWaitOver, code: "wait_over", message: "the wait is over; the firing is held"}).hinted("%s shows it", back)
		}
		list, err := c.Executions(wait, name, 100)
		if err != nil && wait.Err() == nil {
			return "", err
		}
		for _, e := range list.Executions {
			switch {
			case e.ID != got.Execution.ID:
			case e.QueueID != "":
				got.QueueID = e.QueueID
			case e.Status != "held" && e.Status != "firing":
				return "", &fault{exit: exitConflict, code: "conflict", message: fmt.Sprintf("%s made no task: %s", name, executionNote(&e))}
			}
		}
	}
	return got.QueueID, nil
}
