package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// sortCursor is the position of the last row of a sorted page. Each page scans all rows
// again, and measures waiting and running tasks as of the first page.
type sortCursor struct {
	Sort  string              `json:"o"`
	Now   int64               `json:"w"` // Unix ms
	After signalbox.SortValue `json:"v"`
}

func (c sortCursor) String() string {
	data, _ := json.Marshal(c) // cannot fail
	return base64.RawURLEncoding.EncodeToString(data)
}

// parseSortCursor parses a cursor of that order; ok is false if it is not valid.
func parseSortCursor(s string, order signalbox.Sort) (c sortCursor, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	return c, err == nil && c.String() == s && c.Sort == order.String()
}

// sorted answers a search with a requested order.
func (h *searchHandler) sorted(w http.ResponseWriter, r *http.Request, q *signalbox.Query, order signalbox.Sort, limit int, after string) error {
	page := sortedPage{order: order, limit: limit, now: h.engine.Now().Truncate(time.Millisecond)}
	if after != "" {
		c, ok := parseSortCursor(after, order)
		if !ok {
			return wrongAfter(after)
		}
		page.now, page.after = time.UnixMilli(c.Now), &c.After
	}
	s := scanOf(q, access.CallerOf(r).Who, searchRows, func() int { return httpio.MaxLimit })
	if err := s.Run(r.Context(), h.engine.Read(), store.ScanCursor{}, page.take); err != nil {
		return err
	}
	page.cut(limit + 1)
	out := api.Search{Query: q.String(), Sort: order.String(), Total: page.total, Approximate: s.Truncated}
	if len(page.rows) > limit {
		page.rows = page.rows[:limit]
		out.Next = sortCursor{order.String(), page.now.UnixMilli(), page.rows[limit-1].value}.String()
	}
	tasks := make([]signalbox.Task, len(page.rows))
	for i := range page.rows {
		tasks[i] = page.rows[i].task
	}
	out.Tasks = h.rows(r.Context(), tasks)
	return httpio.Answer(w, http.StatusOK, out)
}

// sortedPage is one page of the tasks that a scan finds, in an order.
type sortedPage struct {
	order signalbox.Sort
	limit int
	now   time.Time
	after *signalbox.SortValue // value of the last row of the previous page
	rows  []sortedRow
	total int
}

type sortedRow struct {
	value signalbox.SortValue
	task  signalbox.Task
}

// take counts a task, and keeps it if it may be on the page.
func (p *sortedPage) take(t *signalbox.Task, _ store.ScanCursor) bool {
	p.total++
	value := p.order.Value(t, p.now)
	if p.after == nil || p.order.Compare(*p.after, value) < 0 {
		p.rows = append(p.rows, sortedRow{value, *t})
	}
	if len(p.rows) >= 2*p.limit+100 {
		p.cut(p.limit + 1)
	}
	return true
}

// cut sorts the rows and keeps the first n.
func (p *sortedPage) cut(n int) {
	slices.SortFunc(p.rows, func(a, b sortedRow) int { return p.order.Compare(a.value, b.value) })
	p.rows = p.rows[:min(n, len(p.rows))]
}
