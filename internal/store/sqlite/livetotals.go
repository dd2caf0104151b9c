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

// liveTotals are counts and orders that would be expensive to query. They are computed when the
// file is opened, and updated after a commit, before its callers are answered.
type liveTotals struct {
	mu sync.RWMutex
	totals
	verbs.Counters
	inUse                 [store.SlotSorts]int
	firstEntry, lastEntry int64 // both 0 if the journal is empty
	prunedUpTo            int64 // journal entries up to it have been pruned

	readersMu      sync.Mutex
	waitingReaders []chan store.Counts // readers whose snapshot is one batch ahead, see snapshot.go
}

// totals are counts over the tasks.
type totals struct {
	lines    map[string]*rankedList // pending tasks by queue: order key, place; no empty ones
	ready    map[string]int         // ready tasks by queue; no zeros
	limits   map[string]int         // pending tasks by limit; no zeros
	inFlight map[signalbox.State]int
	turns    map[string][]int64 // Seq of tasks that are ready or in flight, by session; no empty ones
	oldest   rankedList         // pending tasks: created, seq
	runs     map[string]runs    // by agent
}

func newTotals() totals {
	return totals{
		lines: map[string]*rankedList{}, ready: map[string]int{}, limits: map[string]int{}, inFlight: map[signalbox.State]int{},
		turns: map[string][]int64{}, runs: map[string]runs{},
	}
}

// move updates the totals from a task's old row to its new one; nil: no row.
func (b *totals) move(before, after *signalbox.Task) {
	b.countRun(before, after)
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
	case t.State.Waiting():
		b.countPending(t, n)
	case t.State.InFlight():
		bump(b.inFlight, t.State, n)
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
	at, born := position{t.OrderKey(), t.Place}, position{t.CreatedAt.UnixMilli(), t.Seq}
	l := b.lines[t.Queue]
	if n > 0 {
		if l == nil {
			l = &rankedList{}
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

// bump adds to a count, which is deleted at zero.
func bump[K comparable](m map[K]int, key K, n int) {
	if m[key] += n; m[key] == 0 {
		delete(m, key)
	}
}

// apply applies a commit.
func (b *liveTotals) apply(d *verbs.Delta) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range d.Tasks {
		b.move(d.Tasks[i].Before, d.Tasks[i].After)
	}
	if n := int64(len(d.Entries)); n > 0 {
		if b.lastEntry = d.To.Entry; b.firstEntry == 0 {
			b.firstEntry = d.To.Entry - n + 1
		}
	}
	if b.prunedUpTo = max(b.prunedUpTo, d.Cut); b.prunedUpTo >= b.lastEntry {
		b.firstEntry, b.lastEntry = 0, 0
	} else {
		b.firstEntry = max(b.firstEntry, b.prunedUpTo+1)
	}
	b.Counters, b.inUse = d.To, d.InUse
	b.sendCounts()
}

// replace replaces the totals after rows were quarantined.
func (b *liveTotals) replace(t totals, moment int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.totals, b.Moment = t, moment
	b.sendCounts()
}

func (b *liveTotals) counts() store.Counts {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.countsHeld()
}

// countsHeld returns the counts; the lock is held.
func (b *liveTotals) countsHeld() store.Counts {
	c := store.Counts{
		Queues:   make(map[string]int, len(b.lines)),
		Limits:   maps.Clone(b.limits),
		InFlight: maps.Clone(b.inFlight),
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

func (b *liveTotals) lengths(queues []string) []int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	n := make([]int, len(queues))
	for i, queue := range queues {
		n[i] = b.length(queue)
	}
	return n
}

// rank returns how many tasks are before a position in a queue, and whether the position is
// taken.
func (b *liveTotals) rank(queue string, at position) (before int, found bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if l := b.lines[queue]; l != nil {
		return l.rank(at)
	}
	return 0, false
}

func (b *liveTotals) journalRange() (oldest, newest int64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.firstEntry, b.lastEntry
}
