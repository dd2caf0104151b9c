package sqlite

import (
	"cmp"
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// PutSchedule stores a schedule with its runs.
func (s *Store) PutSchedule(ctx context.Context, row signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (signalbox.Schedule, error) {
	body := pack.Schedule(&row)
	row.Rev++
	err := s.do(ctx, len(body), func(w *writer) error { return w.putSchedule(&row, body, runs, &e) })
	if err != nil {
		return signalbox.Schedule{}, err
	}
	if row.Project != nil {
		own := *row.Project
		row.Project = &own
	}
	if row.Thinking != nil {
		own := *row.Thinking
		row.Thinking = &own
	}
	return row, nil
}

// planned is where a schedule stands; n is 0 where there is none.
type planned struct {
	n, rev int64
	name   string
}

func (w *writer) putSchedule(row *signalbox.Schedule, body []byte, runs []signalbox.ScheduleRun, e *signalbox.Entry) error {
	was, err := w.planned(row.ID)
	if err != nil {
		return err
	}
	if err := w.checkSchedule(was, row, runs); err != nil {
		return err
	}
	if err := w.keepSchedule(&was, row, body); err != nil {
		return err
	}
	for i := range runs {
		if err := w.keepRun(was.n, &runs[i]); err != nil {
			return err
		}
	}
	if len(runs) > 0 {
		q := w.write(stRunsCut)
		if err := q.int(was.n).int(signalbox.MaxScheduleRuns).run(); err != nil {
			return err
		}
	}
	if e.Kind != "" {
		w.note(e)
	}
	return nil
}

func (w *writer) planned(id string) (p planned, err error) {
	q := w.on(stScheduleByID)
	q.exact(id)
	if q.next() {
		p = planned{n: q.intAt(0), rev: q.intAt(2), name: q.textAt(3)}
	}
	return p, q.end()
}

// checkSchedule refuses what may not be stored, before anything is.
func (w *writer) checkSchedule(was planned, row *signalbox.Schedule, runs []signalbox.ScheduleRun) error {
	if rev := row.Rev - 1; rev != was.rev || (rev == 0) != (was.n == 0) {
		return store.ErrStale
	}
	if was.n == 0 || was.name != row.Name {
		if err := w.checkName(row.Name); err != nil {
			return err
		}
	}
	if was.n == 0 {
		if err := w.checkRoom(); err != nil {
			return err
		}
	}
	seen := make(map[string]bool, len(runs))
	for i := range runs {
		decided, err := w.decided(was.n, runs[i].ID)
		if err != nil {
			return err
		}
		if decided || seen[runs[i].ID] {
			return store.RunDecided(row.ID, runs[i].ID)
		}
		seen[runs[i].ID] = true
	}
	return nil
}

func (w *writer) checkName(name string) error {
	q := w.on(stScheduleNamed)
	q.exact(name)
	taken, other := q.next(), ""
	if taken {
		other = q.textAt(0)
	}
	if err := q.end(); err != nil {
		return err
	}
	if taken {
		return store.ScheduleNameTaken(name, other)
	}
	return nil
}

func (w *writer) checkRoom() error {
	q := w.on(stScheduleCount)
	full := q.next() && q.intAt(0) >= signalbox.MaxSchedules
	if err := q.end(); err != nil {
		return err
	}
	if full {
		return store.TooManySchedules()
	}
	return nil
}

// decided reports whether there is a run with that id which is no longer open.
func (w *writer) decided(schedule int64, id string) (bool, error) {
	q := w.on(stRunOpen)
	q.int(schedule).exact(id)
	decided := q.next() && q.isNull(0)
	return decided, q.end()
}

// keepSchedule writes the row, and sets the number of a new one.
func (w *writer) keepSchedule(was *planned, row *signalbox.Schedule, body []byte) error {
	if was.n == 0 {
		q := w.write(stScheduleInsert)
		if err := q.exact(row.ID).int(row.Rev).exact(row.Name).bytes(body).run(); err != nil {
			return err
		}
		was.n = w.db.LastInsertRowID()
		return nil
	}
	q := w.write(stScheduleUpdate)
	if err := q.int(was.n).int(row.Rev).bytes(body).run(); err != nil || was.name == row.Name {
		return err
	}
	q = w.write(stScheduleRename)
	return q.int(was.n).exact(row.Name).run()
}

func (w *writer) keepRun(schedule int64, r *signalbox.ScheduleRun) error {
	q := w.write(stRunPut)
	q.int(schedule).exact(r.ID).int(r.FiredAt.UnixMilli())
	if r.Status.Open() {
		q.int(1)
	} else {
		q.null()
	}
	return q.bytes(pack.Run(r)).run()
}

// DeleteSchedule forgets a schedule with its runs.
func (s *Store) DeleteSchedule(ctx context.Context, id string, e signalbox.Entry) (was bool, err error) {
	err = s.do(ctx, 0, func(w *writer) error {
		p, err := w.planned(id)
		if was = p.n != 0; err != nil || !was {
			return err
		}
		for _, st := range []stmtID{stRunsDelete, stScheduleDelete} {
			q := w.write(st)
			if err := q.int(p.n).run(); err != nil {
				return err
			}
		}
		if e.Kind != "" {
			w.note(&e)
		}
		return nil
	})
	return was && err == nil, err
}

// Schedules lists all schedules by name.
func (s *Store) Schedules(ctx context.Context) (list []signalbox.Schedule, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		q := c.on(stSchedulesAll)
		for err == nil && q.next() {
			var row signalbox.Schedule
			row, err = scanSchedule(&q)
			list = append(list, row)
		}
		if end := q.end(); end != nil {
			return end
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b signalbox.Schedule) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Schedule returns a schedule by id.
func (s *Store) Schedule(ctx context.Context, id string) (row signalbox.Schedule, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		q := c.on(stScheduleByID)
		q.exact(id)
		if q.next() {
			row, err = scanSchedule(&q)
		} else {
			err = store.NoSchedule(id)
		}
		if end := q.end(); end != nil {
			return end
		}
		return err
	})
	if err != nil {
		return signalbox.Schedule{}, err
	}
	return row, nil
}

// ScheduleRuns lists runs of a schedule, the newest first.
func (s *Store) ScheduleRuns(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error) {
	return s.runRows(ctx, func(c *conn) query {
		q := c.on(stRunsOf)
		q.exact(id).int(int64(max(0, limit)))
		return q
	}, func(*query) string { return id })
}

// OpenRuns lists the runs of all schedules that are open.
func (s *Store) OpenRuns(ctx context.Context) ([]signalbox.ScheduleRun, error) {
	list, err := s.runRows(ctx, func(c *conn) query { return c.on(stRunsOpen) }, func(q *query) string { return q.textAt(2) })
	slices.SortFunc(list, func(a, b signalbox.ScheduleRun) int {
		return cmp.Or(cmp.Compare(a.FiredAt.UnixMilli(), b.FiredAt.UnixMilli()), cmp.Compare(a.ScheduleID, b.ScheduleID), cmp.Compare(a.ID, b.ID))
	})
	return list, err
}

// runRows reads runs, whose id and body are the first columns of a statement.
func (s *Store) runRows(ctx context.Context, begin func(*conn) query, schedule func(*query) string) (list []signalbox.ScheduleRun, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		q := begin(c)
		for err == nil && q.next() {
			var r signalbox.ScheduleRun
			r, err = pack.ReadRun(schedule(&q), q.textAt(0), q.bytesAt(1))
			list = append(list, r)
		}
		if end := q.end(); end != nil {
			return end
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
