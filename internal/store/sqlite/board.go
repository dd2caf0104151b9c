package sqlite

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// board is what would have to be counted in the file otherwise. It is made from
// the file when that is opened, and changes only after a commit, before those
// who wait for the commit are answered.
type board struct {
	mu sync.RWMutex
	totals
	verbs.Counters
	inUse                 [store.SlotSorts]int
	firstEntry, lastEntry int64 // both 0 if the journal is empty
	cut                   int64 // what stands in the journal up to it has been pruned

	asking sync.Mutex
	asked  []chan store.Counts // readers that see the next moment already, see snapshot.go
}

// totals are counts over the rows of tasks.
type totals struct {
	lines  map[string]*line // pending tasks by queue: order key, place; no empty ones
	ready  map[string]int   // ready tasks by queue; no zeros
	limits map[string]int   // pending tasks by limit; no zeros
	flight map[signalbox.State]int
	turns  map[string][]int64 // Seq of tasks that are ready or in flight, by session; no empty ones
	oldest line               // pending tasks: created, seq
	runs   map[string]runs    // by agent
}

func newTotals() totals {
	return totals{
		lines: map[string]*line{}, ready: map[string]int{}, limits: map[string]int{}, flight: map[signalbox.State]int{},
		turns: map[string][]int64{}, runs: map[string]runs{},
	}
}

// row moves a task from where it stood to where it stands; nil is nowhere.
func (b *totals) row(before, after *signalbox.Task) {
	b.ran(before, after)
	if before != nil {
		b.count(before, -1)
	}
	if after != nil {
		b.count(after, 1)
	}
}

func (b *totals) count(t *signalbox.Task, n int) {
	if t.SessionID != "" && (readyOf(t) == 1 || t.State.InFlight()) {
		b.countTurn(t.SessionID, t.Seq, n)
	}
	switch {
	case t.State == signalbox.Pending:
		b.countPending(t, n)
	case t.State.InFlight():
		bump(b.flight, t.State, n)
	}
}

func (b *totals) countTurn(session string, seq int64, n int) {
	list := b.turns[session]
	if n > 0 {
		b.turns[session] = append(list, seq)
		return
	}
	if at := slices.Index(list, seq); at >= 0 {
		list = slices.Delete(list, at, at+1)
	}
	if b.turns[session] = list; len(list) == 0 {
		delete(b.turns, session)
	}
}

func (b *totals) countPending(t *signalbox.Task, n int) {
	bump(b.limits, t.Limit, n)
	if t.Ready {
		bump(b.ready, t.Queue, n)
	}
	at, born := spot{t.OrderKey(), t.Place}, spot{t.CreatedAt.UnixMilli(), t.Seq}
	l := b.lines[t.Queue]
	if n > 0 {
		if l == nil {
			l = &line{}
			b.lines[t.Queue] = l
		}
		l.add(at)
		b.oldest.add(born)
		return
	}
	b.oldest.remove(born)
	if l == nil {
		return
	}
	if l.remove(at); l.n == 0 {
		delete(b.lines, t.Queue)
	}
}

// bump adds to a count, which goes when it is zero.
func bump[K comparable](m map[K]int, key K, n int) {
	if m[key] += n; m[key] == 0 {
		delete(m, key)
	}
}

// apply shows what a commit changed.
func (b *board) apply(d *verbs.Delta) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range d.Tasks {
		b.row(d.Tasks[i].Before, d.Tasks[i].After)
	}
	if n := int64(len(d.Entries)); n > 0 {
		if b.lastEntry = d.To.Entry; b.firstEntry == 0 {
			b.firstEntry = d.To.Entry - n + 1
		}
	}
	if b.cut = max(b.cut, d.Cut); b.cut >= b.lastEntry {
		b.firstEntry, b.lastEntry = 0, 0
	} else {
		b.firstEntry = max(b.firstEntry, b.cut+1)
	}
	b.Counters, b.inUse = d.To, d.InUse
	b.answer()
}

// replace shows what the file holds after rows were set aside.
func (b *board) replace(t totals, moment int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.totals, b.Moment = t, moment
	b.answer()
}

func (b *board) counts() store.Counts {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.countsHeld()
}

// countsHeld counts; the lock is held.
func (b *board) countsHeld() store.Counts {
	c := store.Counts{
		Queues:   make(map[string]int, len(b.lines)),
		Limits:   maps.Clone(b.limits),
		InFlight: maps.Clone(b.flight),
		Pending:  b.oldest.n,
	}
	for queue, l := range b.lines {
		c.Queues[queue] = l.n
	}
	if first, ok := b.oldest.first(); ok {
		c.Oldest = time.UnixMilli(first.key).UTC()
	}
	return c
}

// length is how many tasks wait in a queue; the lock is held.
func (b *totals) length(queue string) int {
	if l := b.lines[queue]; l != nil {
		return l.n
	}
	return 0
}

func (b *board) lengths(queues []string) []int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	n := make([]int, len(queues))
	for i, queue := range queues {
		n[i] = b.length(queue)
	}
	return n
}

// rank returns how many stand before a place in a queue, and whether anybody
// stands there.
func (b *board) rank(queue string, at spot) (before int, found bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if l := b.lines[queue]; l != nil {
		return l.rank(at)
	}
	return 0, false
}

func (b *board) journalRange() (oldest, newest int64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.firstEntry, b.lastEntry
}
