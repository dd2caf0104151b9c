package local

import (
	"context"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	maxPage  = 1000   // tasks of a page; also how many are read from a queue at a time
	listRows = 10_000 // most rows searched for one page
)

// statuses are the words of gateway.SeedStatus.
var statuses = []string{"pending", "running", "completed", "failed", "cancelled"}

// List implements gateway.Tasks.
func (x *Executor) List(ctx context.Context, q gateway.TaskQuery) (page gateway.TaskPage, err error) {
	if q.Limit < 1 || q.Limit > maxPage {
		return page, signalbox.Invalid("limit", "the limit of a page is 1 to %d, not %d", maxPage, q.Limit)
	}
	if q.Status != "" && !slices.Contains(statuses, q.Status) {
		return page, signalbox.Invalid("status", "status must be one of %s, not %q", strings.Join(statuses, ", "), clipText(q.Status, 64))
	}
	queues := []string{signalbox.QueueCommands, signalbox.QueueCalls}
	from, ok := store.ParseScanCursor(q.Before, queues...)
	if !ok {
		return page, signalbox.Invalid("before", "%q is not the cursor of an earlier page", clipText(q.Before, 64))
	}
	could := func(s signalbox.State) bool { return q.Status == "" || gateway.SeedStatus(s) == q.Status }
	s := store.Scan{
		Match: func(t *signalbox.Task) bool {
			return t.Mode == signalbox.ModeTool && (q.Tool == "" || t.Tool == q.Tool) && could(t.State) && (q.Sees == nil || q.Sees(t))
		},
		MayMatch: could, Queues: queues, Ended: store.HistoryQuery{Mode: signalbox.ModeTool, Tool: q.Tool},
		Budget: listRows, PageSize: func() int { return q.Limit - len(page.Tasks) },
	}
	switch q.Status {
	case "completed":
		s.Ended.State = signalbox.Completed
	case "cancelled":
		s.Ended.State = signalbox.Cancelled
	}
	var last store.ScanCursor
	var viewErr error
	err = s.Run(ctx, x.engine.Read(), from, func(t *signalbox.Task, at store.ScanCursor) bool {
		if len(page.Tasks) == q.Limit {
			page.Next = last.String()
			return false
		}
		var pos *store.Position
		if t.State == signalbox.Pending {
			pos = &store.Position{N: at.N}
		}
		var v gateway.ToolTask
		v, viewErr = x.view(ctx, t, pos)
		page.Tasks, last = append(page.Tasks, v), at
		return viewErr == nil
	})
	if err == nil {
		err = viewErr
	}
	if s.Truncated && page.Next == "" {
		page.Next = s.At.String()
	}
	return page, err
}
