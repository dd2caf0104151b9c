package director

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

const (
	// searchRows is how many rows one page of a search looks at.
	searchRows = 10_000
	// callCost is what one read of the store counts at the least, in rows.
	callCost = 10
)

// search is GET /api/search.
func (d *Director) search(w http.ResponseWriter, r *http.Request) error {
	q, err := signalbox.ParseQuery(param(r, "q"), d.engine.Now())
	if err != nil {
		return err
	}
	limit, err := limitOf(r)
	if err != nil {
		return err
	}
	from, err := parseSearchPlace(param(r, "after"))
	if err != nil {
		return err
	}
	page := searchPage{limit: limit, total: from.Total, approximate: from.Approximate, counting: from.Phase == ""}
	s := scan{d: d, q: &q, who: callerOf(r).who, rows: searchRows, step: page.wants}
	if err := s.run(r.Context(), from, page.take); err != nil {
		return err
	}
	out := api.Search{Query: q.String(), Tasks: d.rows(r.Context(), page.tasks), Total: page.total, Approximate: page.approximate || page.counting && s.cut}
	if page.next != nil || s.cut {
		next := s.at
		if page.next != nil {
			next = *page.next
		}
		next.Total, next.Approximate = out.Total, out.Approximate
		out.Next = next.String()
	}
	d.answer(w, http.StatusOK, out)
	return nil
}

// searchPage is one page of what a scan finds.
type searchPage struct {
	limit       int
	tasks       []signalbox.Task
	total       int
	approximate bool
	counting    bool         // the first page counts all that match
	last        searchPlace  // of the last task of the page
	next        *searchPlace // set where there is more
}

// take adds a task; it returns false where the rest need not be looked at.
func (p *searchPage) take(t *signalbox.Task, at searchPlace) bool {
	if p.counting {
		p.total++
	}
	if len(p.tasks) < p.limit {
		p.tasks, p.last = append(p.tasks, *t), at
		return true
	}
	if p.next == nil {
		next := p.last
		p.next = &next
	}
	return p.counting
}

// wants is how many rows are best read at once. While the page is not full, no
// more than it lacks: it can go on only where a read has ended.
func (p *searchPage) wants() int {
	if lacks := p.limit - len(p.tasks); lacks > 0 {
		return lacks
	}
	return maxLimit
}

// The phases of a search, in order.
const (
	phaseRunning = "running"
	phaseWaiting = "waiting"
	phaseEnded   = "ended"
)

// searchPlace is a place in a search; opaque to callers. The zero place is
// its beginning.
type searchPlace struct {
	Phase       string `json:"p"`
	Since       int64  `json:"s,omitempty"` // running: when it was claimed, Unix ms
	ID          string `json:"i,omitempty"` // running
	Key         int64  `json:"k,omitempty"` // waiting: store.Cursor
	Place       int64  `json:"l,omitempty"`
	Before      string `json:"b,omitempty"` // ended: cursor of the store
	Total       int    `json:"n"`
	Approximate bool   `json:"a,omitempty"`
}

func (p searchPlace) String() string {
	data, _ := json.Marshal(p) // numbers and strings always marshal
	return base64.RawURLEncoding.EncodeToString(data)
}

func parseSearchPlace(s string) (p searchPlace, err error) {
	if s == "" {
		return p, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil || p.String() != s || !slices.Contains([]string{phaseRunning, phaseWaiting, phaseEnded}, p.Phase) || p.Total < 0 {
		return searchPlace{}, signalbox.Invalid("after", "after must be the next of the page before, not %q", clip(s))
	}
	return p, nil
}

// rows describes tasks, with what the live stream knows of them.
func (d *Director) rows(ctx context.Context, tasks []signalbox.Task) []api.LiveTask {
	out := make([]api.LiveTask, len(tasks))
	seen := map[string]*api.LiveTask{}
	if scene, err := d.sight.fresh(ctx); err == nil {
		seen = scene.rows()
	}
	for i := range tasks {
		out[i] = liveTask(&tasks[i])
		if row := seen[tasks[i].ID]; row != nil && row.State == out[i].State {
			out[i] = *row
		}
	}
	return out
}

// rows are the tasks of a scene that are in flight or among the first of their
// line, by id.
func (s *scene) rows() map[string]*api.LiveTask {
	rows := map[string]*api.LiveTask{}
	for _, p := range s.order {
		var line []api.LiveTask
		switch {
		case p.task != nil:
			rows[p.task.QueueID] = p.task
		case p.agent != nil:
			line = p.agent.Line
		case p.queue != nil:
			line = p.queue.Line
		}
		for i := range line {
			rows[line[i].QueueID] = &line[i]
		}
	}
	return rows
}
