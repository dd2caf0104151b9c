package standalone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/atomicfile"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

// maxRuns is how many decided runs of a schedule are kept: the whole file is written with each
// change.
const maxRuns = 20

// Store stores schedules in one file with one writing process. Writes are durable when
// acknowledged; concurrent writes are batched.
type Store struct {
	path string
	lock *os.File

	mu        sync.Mutex
	schedules map[string]*record // by ID; records are replaced, never changed
	waiting   []*write
	writing   bool
	write     func(path string, data []byte) error
}

// record is a schedule with its runs, newest first.
type record struct {
	row  signalbox.Schedule
	runs []signalbox.ScheduleRun
	line []byte // encoded
}

// write is a pending change.
type write struct {
	apply func(pages map[string]*record) error
	done  chan error
}

const stateFile = "scheduler.json"

// OpenStore opens the store in a folder, which it creates. A corrupt file is renamed and
// logged, and the store starts empty: missed instants are lost. It fails if another process has
// the lock.
func OpenStore(folder string, log *slog.Logger) (*Store, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("the scheduler's folder: %w", err)
	}
	lock, err := lockFile(filepath.Join(folder, "scheduler.lock"))
	if err != nil {
		return nil, err
	}
	b := &Store{path: filepath.Join(folder, stateFile), lock: lock, write: atomicfile.Write}
	if b.schedules, err = readFile(b.path, log); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return b, nil
}

// Close releases the lock.
func (st *Store) Close() error { return st.lock.Close() }

// do queues a change and waits until it is written. The first caller writes for all.
func (st *Store) do(apply func(map[string]*record) error) error {
	c := &write{apply: apply, done: make(chan error, 1)}
	st.mu.Lock()
	st.waiting = append(st.waiting, c)
	leads := !st.writing
	st.writing = true
	st.mu.Unlock()
	for leads {
		leads = st.commit()
	}
	return <-c.done
}

// commit writes the queued changes, and reports whether more were queued meanwhile.
func (st *Store) commit() bool {
	st.mu.Lock()
	batch := st.waiting
	st.waiting = nil
	next := maps.Clone(st.schedules)
	st.mu.Unlock()
	var taken []*write
	for _, c := range batch {
		if err := c.apply(next); err != nil {
			c.done <- err
			continue
		}
		taken = append(taken, c)
	}
	var err error
	if len(taken) > 0 {
		if err = st.write(st.path, encodeFile(next)); err != nil {
			err = &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "the scheduler's file could not be written", Err: err}
		}
	}
	st.mu.Lock()
	if err == nil {
		st.schedules = next
	}
	more := len(st.waiting) > 0
	st.writing = more
	st.mu.Unlock()
	for _, c := range taken {
		c.done <- err
	}
	return more
}

// Put stores a schedule with its runs, as the store's PutSchedule does.
func (st *Store) Put(_ context.Context, row signalbox.Schedule, runs []signalbox.ScheduleRun, _ signalbox.Entry) (signalbox.Schedule, error) {
	err := st.do(func(schedules map[string]*record) error {
		old := schedules[row.ID]
		if err := checkPut(schedules, old, &row, runs); err != nil {
			return err
		}
		row.Rev++
		fresh, err := newRecord(old, row, runs)
		if err == nil {
			schedules[row.ID] = fresh
		}
		return err
	})
	return row, err
}

func checkPut(schedules map[string]*record, old *record, row *signalbox.Schedule, runs []signalbox.ScheduleRun) error {
	if old == nil && row.Rev != 0 || old != nil && row.Rev != old.row.Rev {
		return schedule.ErrStale
	}
	for _, other := range schedules {
		if other.row.Name == row.Name && other.row.ID != row.ID {
			return &signalbox.Error{Code: signalbox.CodeConflict, Field: "name", Message: fmt.Sprintf("there is already a schedule named %s", row.Name)}
		}
	}
	if old == nil && len(schedules) >= signalbox.MaxSchedules {
		return signalbox.Errorf(signalbox.CodeConflict, "there are %d schedules, the maximum", len(schedules))
	}
	for i := range runs {
		if old != nil && old.decided(runs[i].ID) {
			return signalbox.Errorf(signalbox.CodeConflict, "the firing %s of schedule %s was decided before", runs[i].ID, row.ID)
		}
	}
	return nil
}

func (p *record) decided(id string) bool {
	return slices.ContainsFunc(p.runs, func(r signalbox.ScheduleRun) bool { return r.ID == id && !r.Status.Open() })
}

// newRecord merges runs into a record: open runs are kept, and the newest decided ones.
func newRecord(old *record, row signalbox.Schedule, fresh []signalbox.ScheduleRun) (*record, error) {
	p := &record{row: row}
	if old != nil {
		p.runs = slices.DeleteFunc(slices.Clone(old.runs), func(r signalbox.ScheduleRun) bool {
			return slices.ContainsFunc(fresh, func(f signalbox.ScheduleRun) bool { return f.ID == r.ID })
		})
	}
	for _, r := range fresh {
		r.ScheduleID = row.ID
		p.runs = append(p.runs, r)
	}
	slices.SortFunc(p.runs, func(a, b signalbox.ScheduleRun) int {
		return cmp.Or(b.FiredAt.Compare(a.FiredAt), cmp.Compare(b.ID, a.ID))
	})
	n := 0
	p.runs = slices.DeleteFunc(p.runs, func(r signalbox.ScheduleRun) bool {
		n++
		return n > maxRuns && !r.Status.Open()
	})
	return p, p.encode()
}

// Delete deletes a schedule with its runs.
func (st *Store) Delete(_ context.Context, id string, _ signalbox.Entry) (was bool, err error) {
	err = st.do(func(schedules map[string]*record) error {
		_, was = schedules[id]
		delete(schedules, id)
		return nil
	})
	return was && err == nil, err
}

func (st *Store) record(id string) *record {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.schedules[id]
}

// sorted returns the records by schedule name.
func (st *Store) sorted() []*record {
	st.mu.Lock()
	list := slices.Collect(maps.Values(st.schedules))
	st.mu.Unlock()
	slices.SortFunc(list, func(a, b *record) int { return cmp.Compare(a.row.Name, b.row.Name) })
	return list
}

// Schedules lists all schedules by name.
func (st *Store) Schedules(context.Context) ([]signalbox.Schedule, error) {
	list := st.sorted()
	out := make([]signalbox.Schedule, len(list))
	for i, p := range list {
		out[i] = p.row
	}
	return out, nil
}

// Schedule returns a schedule by its id, or CodeNotFound.
func (st *Store) Schedule(_ context.Context, id string) (signalbox.Schedule, error) {
	if p := st.record(id); p != nil {
		return p.row, nil
	}
	return signalbox.Schedule{}, signalbox.Errorf(signalbox.CodeNotFound, "there is no schedule %s", id)
}

// Runs lists the newest runs of a schedule.
func (st *Store) Runs(_ context.Context, id string, limit int) ([]signalbox.ScheduleRun, error) {
	p := st.record(id)
	if p == nil {
		return nil, nil
	}
	return slices.Clone(p.runs[:min(limit, len(p.runs))]), nil
}

// Open lists the open runs of all schedules, oldest first.
func (st *Store) Open(context.Context) ([]signalbox.ScheduleRun, error) {
	var out []signalbox.ScheduleRun
	for _, p := range st.sorted() {
		for _, r := range p.runs {
			if r.Status.Open() {
				out = append(out, r)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b signalbox.ScheduleRun) int {
		return cmp.Or(a.FiredAt.Compare(b.FiredAt), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// Changes never signals: there is no other writer.
func (st *Store) Changes() (signs <-chan struct{}, stop func()) { return nil, func() {} }

// endedCache remembers tasks that have ended.
type endedCache struct {
	queue        *Queue
	recheckAfter time.Duration // minimum time between checks of a task

	mu    sync.Mutex
	ended map[string]bool
	asked map[string]time.Time
}

// Bounds of the director calls for one status request.
const (
	maxParallel    = 8
	recheckAfter   = time.Second
	refreshTimeout = 2 * time.Second
)

// refresh checks the last tasks of schedules that are not known to have ended, and drops other tasks.
func (e *endedCache) refresh(ctx context.Context, rows []signalbox.Schedule) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	slots := make(chan struct{}, maxParallel)
	var group sync.WaitGroup
	for _, id := range e.toCheck(rows) {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			group.Wait()
			return
		}
		group.Go(func() {
			defer func() { <-slots }()
			if ended, err := e.queue.Ended(ctx, id); err == nil && ended {
				e.mu.Lock()
				e.ended[id] = true
				e.mu.Unlock()
			}
		})
	}
	group.Wait()
}

// toCheck lists the tasks to check now.
func (e *endedCache) toCheck(rows []signalbox.Schedule) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	ended, asked, now := map[string]bool{}, map[string]time.Time{}, time.Now()
	var ids []string
	for i := range rows {
		id := rows[i].LastQueueID
		switch {
		case id == "":
		case e.ended[id]:
			ended[id] = true
		case now.Sub(e.asked[id]) < e.recheckAfter:
			asked[id] = e.asked[id]
		default:
			asked[id] = now
			ids = append(ids, id)
		}
	}
	e.ended, e.asked = ended, asked
	return ids
}

func (e *endedCache) has(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended[id]
}
