package director

import (
	"cmp"
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

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
