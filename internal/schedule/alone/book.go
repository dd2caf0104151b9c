package alone

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

// keptRuns is how many runs of a schedule the book keeps beside those that are
// open, the newest: the whole book is written with each change.
const keptRuns = 20

// Book keeps schedules in one file, of which one process at a time is the
// writer. What is written is on the disk before it is acknowledged; changes
// that come together are written together.
type Book struct {
	path string
	lock *os.File

	mu      sync.Mutex
	pages   map[string]*page // by schedule id; a page is replaced, never changed
	waiting []*change
	writing bool
	write   func(path string, data []byte) error
}

// page is a schedule with its runs, newest first.
type page struct {
	row  signalbox.Schedule
	runs []signalbox.ScheduleRun
	text []byte // as it stands in the file
}

// change is a write that waits for the disk.
type change struct {
	apply func(pages map[string]*page) error
	done  chan error
}

// bookFile is the name of the file in its folder.
const bookFile = "scheduler.json"

// OpenBook opens the book in a folder, which it makes. A file that cannot be
// understood is set aside, which the log says, and the book begins anew: what
// was missed by then is not made up for. It fails where another process has it.
func OpenBook(folder string, log *slog.Logger) (*Book, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("the scheduler's folder: %w", err)
	}
	lock, err := lockFile(filepath.Join(folder, "scheduler.lock"))
	if err != nil {
		return nil, err
	}
	b := &Book{path: filepath.Join(folder, bookFile), lock: lock, write: atomicfile.Write}
	if b.pages, err = readBook(b.path, log); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return b, nil
}

// Close lets another process have the book.
func (b *Book) Close() error { return b.lock.Close() }

// do has a change written, with those that wait beside it.
func (b *Book) do(apply func(map[string]*page) error) error {
	c := &change{apply: apply, done: make(chan error, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	leads := !b.writing
	b.writing = true
	b.mu.Unlock()
	for leads {
		leads = b.commit()
	}
	return <-c.done
}

// commit writes what waits, and reports whether more has come.
func (b *Book) commit() bool {
	b.mu.Lock()
	batch := b.waiting
	b.waiting = nil
	next := maps.Clone(b.pages)
	b.mu.Unlock()
	var taken []*change
	for _, c := range batch {
		if err := c.apply(next); err != nil {
			c.done <- err
			continue
		}
		taken = append(taken, c)
	}
	var err error
	if len(taken) > 0 {
		if err = b.write(b.path, bookText(next)); err != nil {
			err = &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "the scheduler's book could not be written", Err: err}
		}
	}
	b.mu.Lock()
	if err == nil {
		b.pages = next
	}
	more := len(b.waiting) > 0
	b.writing = more
	b.mu.Unlock()
	for _, c := range taken {
		c.done <- err
	}
	return more
}

// Put stores a schedule with its runs, as the store's PutSchedule does.
func (b *Book) Put(_ context.Context, row signalbox.Schedule, runs []signalbox.ScheduleRun, _ signalbox.Entry) (signalbox.Schedule, error) {
	err := b.do(func(pages map[string]*page) error {
		old := pages[row.ID]
		if err := mayPut(pages, old, &row, runs); err != nil {
			return err
		}
		row.Rev++
		fresh, err := newPage(old, row, runs)
		if err == nil {
			pages[row.ID] = fresh
		}
		return err
	})
	return row, err
}

func mayPut(pages map[string]*page, old *page, row *signalbox.Schedule, runs []signalbox.ScheduleRun) error {
	if old == nil && row.Rev != 0 || old != nil && row.Rev != old.row.Rev {
		return schedule.ErrStale
	}
	for _, other := range pages {
		if other.row.Name == row.Name && other.row.ID != row.ID {
			return &signalbox.Error{Code: signalbox.CodeConflict, Field: "name", Message: fmt.Sprintf("there is already a schedule named %s", row.Name)}
		}
	}
	if old == nil && len(pages) >= signalbox.MaxSchedules {
		return signalbox.Errorf(signalbox.CodeConflict, "there are %d schedules; at most so many are allowed", len(pages))
	}
	for i := range runs {
		if old != nil && old.decided(runs[i].ID) {
			return signalbox.Errorf(signalbox.CodeConflict, "the firing %s of schedule %s was decided before", runs[i].ID, row.ID)
		}
	}
	return nil
}

func (p *page) decided(id string) bool {
	return slices.ContainsFunc(p.runs, func(r signalbox.ScheduleRun) bool { return r.ID == id && !r.Status.Open() })
}

// newPage is the page after a change: open runs stay, of the others the newest.
func newPage(old *page, row signalbox.Schedule, fresh []signalbox.ScheduleRun) (*page, error) {
	p := &page{row: row}
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
		return n > keptRuns && !r.Status.Open()
	})
	return p, p.encode()
}

// Delete forgets a schedule with its runs.
func (b *Book) Delete(_ context.Context, id string, _ signalbox.Entry) (was bool, err error) {
	err = b.do(func(pages map[string]*page) error {
		_, was = pages[id]
		delete(pages, id)
		return nil
	})
	return was && err == nil, err
}

func (b *Book) page(id string) *page {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pages[id]
}

// sorted are the pages by the names of their schedules.
func (b *Book) sorted() []*page {
	b.mu.Lock()
	list := slices.Collect(maps.Values(b.pages))
	b.mu.Unlock()
	slices.SortFunc(list, func(a, b *page) int { return cmp.Compare(a.row.Name, b.row.Name) })
	return list
}

// Schedules lists all schedules by name.
func (b *Book) Schedules(context.Context) ([]signalbox.Schedule, error) {
	list := b.sorted()
	out := make([]signalbox.Schedule, len(list))
	for i, p := range list {
		out[i] = p.row
	}
	return out, nil
}

// Schedule returns a schedule by its id, or CodeNotFound.
func (b *Book) Schedule(_ context.Context, id string) (signalbox.Schedule, error) {
	if p := b.page(id); p != nil {
		return p.row, nil
	}
	return signalbox.Schedule{}, signalbox.Errorf(signalbox.CodeNotFound, "there is no schedule %s", id)
}

// Runs lists the newest runs of a schedule.
func (b *Book) Runs(_ context.Context, id string, limit int) ([]signalbox.ScheduleRun, error) {
	p := b.page(id)
	if p == nil {
		return nil, nil
	}
	return slices.Clone(p.runs[:min(limit, len(p.runs))]), nil
}

// Open lists the open runs of all schedules, oldest first.
func (b *Book) Open(context.Context) ([]signalbox.ScheduleRun, error) {
	var out []signalbox.ScheduleRun
	for _, p := range b.sorted() {
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

// Changes gives no signs: nobody else writes the book.
func (b *Book) Changes() (signs <-chan struct{}, stop func()) { return nil, func() {} }

// endings remembers which tasks have been seen to end: a task that has ended
// stays so, and need not be asked for again.
type endings struct {
	queue *Queue
	fresh time.Duration // younger answers are not asked for again

	mu    sync.Mutex
	ended map[string]bool
	asked map[string]time.Time
}

// Bounds of what one look at the status asks the director.
const (
	sideBySide = 8
	askFresh   = time.Second
	askTime    = 2 * time.Second
)

// ask asks for the newest tasks of schedules that have not been seen to end. Of
// others it forgets what it knew.
func (e *endings) ask(ctx context.Context, rows []signalbox.Schedule) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	slots := make(chan struct{}, sideBySide)
	var group sync.WaitGroup
	for _, id := range e.open(rows) {
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

// open lists the newest tasks that are to be asked for now.
func (e *endings) open(rows []signalbox.Schedule) []string {
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
		case now.Sub(e.asked[id]) < e.fresh:
			asked[id] = e.asked[id]
		default:
			asked[id] = now
			ids = append(ids, id)
		}
	}
	e.ended, e.asked = ended, asked
	return ids
}

func (e *endings) known(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended[id]
}
