package director

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// plainToolTask is a task of a tool as lists show it: its keys are the seed's,
// and what its row knows besides.
func plainToolTask(t *gateway.ToolTask) api.ToolTask {
	row := &t.Task
	v := api.ToolTask{
		ID: row.ID, ToolName: row.Tool, Status: gateway.SeedStatus(row.State), CreatedAt: row.CreatedAt, UpdatedAt: t.UpdatedAt(),
		State: string(row.State), Reason: string(row.Reason), Message: row.Message, Owner: row.Owner,
	}
	switch {
	case !row.State.Terminal():
		v.Message, v.Position, v.PollIntervalMS = t.Wait, t.Position, t.Poll.Milliseconds()
	case v.Status == "failed":
		why := row.Message
		v.Error = &why
	case v.Status == "completed" && t.Result != nil:
		result := toolResultView(*t.Result)
		v.Result = &result
	}
	return v
}

// toolTaskView adds what lists leave out.
func (d *Director) toolTaskView(ctx context.Context, t *gateway.ToolTask) (api.ToolTask, error) {
	v := plainToolTask(t)
	got, err := d.engine.Read().Whole(ctx, v.ID)
	if err != nil {
		return v, err
	}
	v.TimeoutMS = got.Request.TimeoutMS
	if !t.Task.State.Terminal() {
		return v, nil
	}
	res := &got.Result
	v.ExitCode, v.Tail, v.TailSeq, v.Truncated = res.ExitCode, res.Tail, res.TailSeq, v.Result.Truncated()
	return v, nil
}

// isTool reports whether a task is a call of a tool.
func isTool(t *signalbox.Task) bool { return t.Mode == signalbox.ModeTool }
