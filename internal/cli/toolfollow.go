package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// alone reports whether a gateway alone answers, which has calls of tools that
// are tasks and no queue: no logs, no retry.
func (a *app) alone(ctx context.Context, c *client.Client) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second) // also of a wait that was given up
	defer cancel()
	_, err := c.Status(ctx)
	return client.Code(err) == "not_found"
}

// followTool says how a call that is a task is followed.
func (a *app) followTool(ctx context.Context, c *client.Client, id string) string {
	if a.alone(ctx, c) {
		return fmt.Sprintf("signalbox tools tasks %s shows how it is, and what it answers.", id)
	}
	return fmt.Sprintf("signalbox logs -f %s follows it, signalbox tools tasks %s shows what it answers.", id, id)
}

// comeBackTo says how to come back to a task, of whichever kind.
func (a *app) comeBackTo(ctx context.Context, c *client.Client, id string) string {
	if a.alone(ctx, c) {
		return fmt.Sprintf("come back with signalbox tools tasks %s, stop it with signalbox cancel %s", id, id)
	}
	return comeBack(id)
}

// cancelTask cancels a task. Where the queue does not have it, or is not the
// caller's to touch, it may be a call of a tool that the caller made.
func cancelTask(ctx context.Context, c *client.Client, id string) (api.Cancelled, error) {
	got, err := c.Cancel(ctx, id)
	if code := client.Code(err); code != "not_found" && code != "forbidden" {
		return got, err
	}
	t, toolErr := c.CancelToolTask(ctx, id)
	if toolErr != nil && client.Code(toolErr) != "already_ended" {
		return got, err
	}
	return api.Cancelled{QueueID: id, State: t.State, WasDispatched: !client.Ended(t.State), Message: t.Message}, toolErr
}
