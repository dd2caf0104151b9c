package local

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// maxPage bounds a page, and what is read of a queue at a time.
const maxPage = 1000

// maxPages bounds the pages of a store that are looked through for one of ours.
const maxPages = 10

// A cursor names the part of the list and the place in it: what runs, what
// waits, what has ended.
const (
	partFlying = "f" // behind a fence
	partWaits  = "w" // behind a place in one of the queues
	partEnded  = "h" // the store's own cursor
)

// List implements gateway.Tasks.
func (x *Executor) List(ctx context.Context, q gateway.TaskQuery) (gateway.TaskPage, error) {
	if q.Limit < 1 || q.Limit > maxPage {
		return gateway.TaskPage{}, signalbox.Invalid("limit", "the limit of a page is 1 to %d, not %d", maxPage, q.Limit)
	}
	if q.Status != "" && !slices.Contains(statuses, q.Status) {
		return gateway.TaskPage{}, signalbox.Invalid("status", "status must be one of %s, not %q", strings.Join(statuses, ", "), clipText(q.Status, 64))
	}
	part, place, _ := strings.Cut(q.Before, ":")
	l := lister{x: x, q: q}
	var err error
	switch part {
	case "", partFlying:
		err = l.flying(ctx, place)
	case partWaits:
		err = l.waiting(ctx, place)
	case partEnded:
		err = l.ended(ctx, place)
	default:
		err = badCursor(q.Before)
	}
	return l.page, err
}

// statuses are the words of gateway.SeedStatus.
var statuses = []string{"pending", "running", "completed", "failed", "cancelled"}

func badCursor(cursor string) error {
	return signalbox.Invalid("before", "%q is not the cursor of an earlier page", clipText(cursor, 64))
}

// lister fills one page.
type lister struct {
	x    *Executor
	q    gateway.TaskQuery
	page gateway.TaskPage
}

// takes reports whether a task is asked for.
func (l *lister) takes(t *signalbox.Task) bool {
	return t.Mode == signalbox.ModeTool && (l.q.Tool == "" || t.Tool == l.q.Tool) &&
		(l.q.Status == "" || gateway.SeedStatus(t.State) == l.q.Status) && (l.q.Sees == nil || l.q.Sees(t))
}

func (l *lister) full() bool { return len(l.page.Tasks) >= l.q.Limit }

// add puts a task on the page; pos is its place in its queue where it waits.
func (l *lister) add(ctx context.Context, t *signalbox.Task, pos *store.Position) error {
	v, err := l.x.view(ctx, t, pos)
	if err == nil {
		l.page.Tasks = append(l.page.Tasks, v)
	}
	return err
}

// wants reports whether tasks of any of these states can be asked for.
func (l *lister) wants(words ...string) bool {
	return l.q.Status == "" || slices.Contains(words, l.q.Status)
}

// flying lists what has a slot, in the order of the claims.
func (l *lister) flying(ctx context.Context, place string) error {
	if !l.wants("pending", "running") {
		return l.ended(ctx, "")
	}
	after := int64(0)
	if place != "" {
		var err error
		if after, err = strconv.ParseInt(place, 10, 64); err != nil {
			return badCursor(l.q.Before)
		}
	}
	tasks, err := l.x.engine.Read().InFlight(ctx)
	if err != nil {
		return err
	}
	for i := range tasks {
		t := &tasks[i]
		if t.Fence <= after || !l.takes(t) {
			continue
		}
		if l.full() {
			l.page.Next = fmt.Sprintf("%s:%d", partFlying, l.page.Tasks[len(l.page.Tasks)-1].Task.Fence)
			return nil
		}
		if err := l.add(ctx, t, nil); err != nil {
			return err
		}
	}
	return l.waiting(ctx, "")
}

// waiting lists what waits, queue by queue, in order. place is a queue with a
// store.Cursor and the position there.
func (l *lister) waiting(ctx context.Context, place string) error {
	if !l.wants("pending") {
		return l.ended(ctx, "")
	}
	queue, after, n, err := parsePlace(place)
	if err != nil {
		return badCursor(l.q.Before)
	}
	for pages := 0; ; {
		list, err := l.x.engine.Read().Waiting(ctx, queue, after, maxPage)
		if err != nil {
			return err
		}
		for i := range list {
			t := &list[i]
			if l.takes(t) {
				if l.full() {
					l.page.Next = placeOf(queue, after, n)
					return nil
				}
				if err := l.add(ctx, t, &store.Position{N: n + 1}); err != nil {
					return err
				}
			}
			n++
			after = store.CursorOf(t)
		}
		switch pages++; {
		case len(list) == maxPage && pages >= maxPages:
			l.page.Next = placeOf(queue, after, n)
			return nil
		case len(list) == maxPage:
		case queue == signalbox.QueueCommands:
			queue, after, n = signalbox.QueueCalls, store.Cursor{}, 0
		default:
			return l.ended(ctx, "")
		}
	}
}

func placeOf(queue string, after store.Cursor, n int) string {
	return fmt.Sprintf("%s:%s:%d:%d:%d", partWaits, queue, after.OrderKey, after.Place, n)
}

func parsePlace(place string) (queue string, after store.Cursor, n int, err error) {
	if place == "" {
		return signalbox.QueueCommands, after, 0, nil
	}
	queue, numbers, _ := strings.Cut(place, ":")
	if queue != signalbox.QueueCommands && queue != signalbox.QueueCalls {
		return "", after, 0, strconv.ErrSyntax
	}
	_, err = fmt.Sscanf(numbers, "%d:%d:%d", &after.OrderKey, &after.Place, &n)
	return queue, after, n, err
}

// ended lists what has ended, newest end first.
func (l *lister) ended(ctx context.Context, cursor string) error {
	if !l.wants("completed", "failed", "cancelled") {
		return nil
	}
	h := store.HistoryQuery{Mode: signalbox.ModeTool, Tool: l.q.Tool, Before: cursor}
	switch l.q.Status {
	case "completed":
		h.State = signalbox.Completed
	case "cancelled":
		h.State = signalbox.Cancelled
	}
	for range maxPages {
		if l.full() {
			l.page.Next = partEnded + ":" + h.Before
			return nil
		}
		h.Limit = l.q.Limit - len(l.page.Tasks)
		page, err := l.x.engine.Read().History(ctx, h)
		if err != nil {
			return err
		}
		for i := range page.Tasks {
			if t := &page.Tasks[i]; l.takes(t) {
				if err := l.add(ctx, t, nil); err != nil {
					return err
				}
			}
		}
		if page.Next == "" {
			return nil
		}
		h.Before = page.Next
	}
	l.page.Next = partEnded + ":" + h.Before
	return nil
}
