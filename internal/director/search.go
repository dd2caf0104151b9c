package director

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
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
	return d.answer(w, http.StatusOK, out)
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
	seen := d.projection.fresh(ctx) == nil
	for i := range tasks {
		out[i] = liveTask(&tasks[i])
		if !seen {
			continue
		}
		if row := d.projection.row(&tasks[i]); row != nil && row.State == out[i].State {
			out[i] = *row
		}
	}
	return out
}

// scan goes through the tasks that match a query and that somebody may see:
// running ones in the order of their claims, waiting ones in the order of
// their lines, ended ones newest first.
type scan struct {
	d    *Director
	q    *signalbox.Query
	who  signalbox.Principal
	rows int        // that may still be looked at
	step func() int // rows that are best read at once
	live bool       // ended ones are of no interest
	at   searchPlace
	cut  bool // there were more rows than may be looked at
}

type taker func(t *signalbox.Task, at searchPlace) (more bool)

// run scans from a place on until take wants no more.
func (s *scan) run(ctx context.Context, from searchPlace, take taker) error {
	phases := []struct {
		name string
		run  func(context.Context, searchPlace, taker) (bool, error)
	}{{phaseRunning, s.running}, {phaseWaiting, s.waiting}, {phaseEnded, s.ended}}
	for _, phase := range phases {
		if from.Phase != "" && from.Phase != phase.name {
			continue // passed already
		}
		s.at = from
		s.at.Phase = phase.name
		more, err := phase.run(ctx, s.at, take)
		if err != nil || !more {
			return err
		}
		from = searchPlace{}
	}
	return nil
}

// look hands a row on if it matches.
func (s *scan) look(t *signalbox.Task, at searchPlace, take taker) (more bool) {
	s.rows, s.at = s.rows-1, at
	if !s.q.Takes(t) || !s.who.SeesTask(t) {
		return true
	}
	return take(t, at)
}

// could reports whether the query may take a task in one of these states.
func (s *scan) could(states ...signalbox.State) bool { return slices.ContainsFunc(states, s.q.Could) }

func (s *scan) running(ctx context.Context, from searchPlace, take taker) (bool, error) {
	if !s.could(signalbox.Dispatching, signalbox.Working, signalbox.Cancelling) {
		return true, nil
	}
	tasks, err := s.d.engine.Read().InFlight(ctx)
	if err != nil {
		return false, err
	}
	place := func(t *signalbox.Task) searchPlace {
		return searchPlace{Phase: phaseRunning, Since: t.DispatchedAt.UnixMilli(), ID: t.ID}
	}
	compare := func(a, b searchPlace) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.ID, b.ID)) }
	slices.SortFunc(tasks, func(a, b signalbox.Task) int { return compare(place(&a), place(&b)) })
	for i := range tasks {
		if at := place(&tasks[i]); compare(at, from) > 0 && !s.look(&tasks[i], at, take) {
			return false, nil
		}
	}
	return true, nil
}

func (s *scan) waiting(ctx context.Context, from searchPlace, take taker) (bool, error) {
	if !s.could(signalbox.Pending) {
		return true, nil
	}
	after := store.Cursor{OrderKey: from.Key, Place: from.Place}
	for {
		if s.rows <= 0 {
			s.cut = true
			return false, nil
		}
		tasks, err := s.d.engine.Read().Waiting(ctx, s.q.Only("queue"), after, maxLimit)
		if err != nil {
			return false, err
		}
		for i := range tasks {
			after = store.CursorOf(&tasks[i])
			if !s.look(&tasks[i], searchPlace{Phase: phaseWaiting, Key: after.OrderKey, Place: after.Place}, take) {
				return false, nil
			}
		}
		if len(tasks) < maxLimit {
			return true, nil
		}
	}
}

func (s *scan) ended(ctx context.Context, from searchPlace, take taker) (bool, error) {
	if s.live || !s.could(signalbox.Completed, signalbox.Failed, signalbox.Cancelled, signalbox.Timeout) {
		return true, nil
	}
	q := s.historyQuery()
	q.Before = from.Before
	for {
		if s.rows <= 0 {
			s.cut = true
			return false, nil
		}
		q.Limit = min(max(s.step(), 1), maxLimit)
		page, err := s.d.engine.Read().History(ctx, q)
		if err != nil {
			return false, err
		}
		for i := range page.Tasks { // the last of them is where another page goes on
			if !s.look(&page.Tasks[i], searchPlace{Phase: phaseEnded, Before: page.Next}, take) {
				return false, nil
			}
		}
		if page.Next == "" {
			return true, nil
		}
		s.rows -= max(0, callCost-len(page.Tasks))
		q.Before = page.Next
		s.at = searchPlace{Phase: phaseEnded, Before: page.Next}
	}
}

// historyQuery is what of the query the store can decide.
func (s *scan) historyQuery() store.HistoryQuery {
	q := store.HistoryQuery{
		Reason: signalbox.Reason(s.q.Only("reason")), Queue: s.q.Only("queue"), Source: signalbox.Source(s.q.Only("source")),
		SourceJob: s.q.Only("job"), SessionID: s.q.Only("session"), Tool: s.q.Only("tool"), Text: s.q.Only(""),
	}
	if state := signalbox.State(s.q.Only("state")); state.Valid() {
		q.State = state
	}
	if mode := s.q.Only("mode"); mode != "queue" { // "" would choose all
		q.Mode = signalbox.Mode(mode)
	}
	q.Since, q.Until = s.q.Span()
	return q
}
