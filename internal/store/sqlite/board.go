package sqlite

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// board is what readers may see without asking the file. It changes only
// after a commit, and before those who wait for the commit are answered.
type board struct {
	mu     sync.RWMutex
	lines  map[string]*line // pending tasks by queue: order key, place; no empty ones
	oldest line             // pending tasks: created, seq
	limits map[string]int   // pending tasks by limit; no zeros
	flight map[signalbox.State]int
	runs   map[string]runs // by agent
	recent recent

	agents []signalbox.Agent // by name; replaced, never changed
	pauses []signalbox.Pause // by queue; replaced, never changed

	firstEntry, lastEntry int64 // both 0 if the journal is empty

	commits int64 // the moment of the file that it shows
	asking  sync.Mutex
	asked   []chan store.Counts // readers that see the next moment already, see snapshot.go
}

func (b *board) init() {
	b.runs = map[string]runs{}
	b.lines, b.limits, b.flight = map[string]*line{}, map[string]int{}, map[signalbox.State]int{}
}

// row moves a task from where it stood to where it stands; nil is nowhere.
func (b *board) row(before, after *signalbox.Task) {
	b.ran(before, after)
	if before != nil {
		b.count(before, -1)
		b.recent.drop(before.ID)
	}
	if after != nil {
		b.count(after, 1)
		if before == nil && after.State == signalbox.Pending {
			b.recent.add(after)
		}
	}
}

func (b *board) count(t *signalbox.Task, n int) {
	switch {
	case t.State == signalbox.Pending:
		bump(b.limits, t.Limit, n)
		at, born := spot{t.OrderKey(), t.Place}, spot{t.CreatedAt.UnixMilli(), t.Seq}
		if n > 0 {
			b.line(t.Queue).add(at)
			b.oldest.add(born)
			return
		}
		l := b.line(t.Queue)
		l.remove(at)
		if l.n == 0 {
			delete(b.lines, t.Queue)
		}
		b.oldest.remove(born)
	case t.State.InFlight():
		bump(b.flight, t.State, n)
	}
}

func (b *board) line(queue string) *line {
	l := b.lines[queue]
	if l == nil {
		l = &line{}
		b.lines[queue] = l
	}
	return l
}

// bump adds to a count, which goes when it is zero.
func bump[K comparable](m map[K]int, key K, n int) {
	if m[key] += n; m[key] == 0 {
		delete(m, key)
	}
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

func (b *board) lengths(queues []string) []int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	n := make([]int, len(queues))
	for i, queue := range queues {
		if l := b.lines[queue]; l != nil {
			n[i] = l.n
		}
	}
	return n
}

// rank returns the position of a place in a queue, 0 if nobody stands there.
func (b *board) rank(queue string, at spot) int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.standing(queue, at)
}

// rankOfRecent answers for a task that was submitted lately and has not
// changed since, without a look at the file: a submit asks for its position
// at once.
func (b *board) rankOfRecent(id string) int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	where, known := b.recent.get(id)
	if !known {
		return 0
	}
	return b.standing(where.queue, where.at)
}

// standing returns the position of a place in a queue; the lock is held.
func (b *board) standing(queue string, at spot) int {
	l := b.lines[queue]
	if l == nil {
		return 0
	}
	before, found := l.rank(at)
	if !found {
		return 0
	}
	return before + 1
}

func (b *board) agentList() []signalbox.Agent {
	b.mu.RLock()
	defer b.mu.RUnlock()
	list := slices.Clone(b.agents)
	for i := range list {
		list[i].SealedToken = bytes.Clone(list[i].SealedToken)
	}
	return list
}

func (b *board) pauseList() []signalbox.Pause {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.pauses)
}

func (b *board) journalRange() (oldest, newest int64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.firstEntry, b.lastEntry
}

// recent remembers where the newest tasks were enqueued. It holds between one
// and two generations of recentSize.
type recent struct{ young, old map[string]recentSpot }

type recentSpot struct {
	queue string
	at    spot
}

const recentSize = 4096

func (r *recent) add(t *signalbox.Task) {
	if r.young == nil || len(r.young) >= recentSize {
		r.young, r.old = make(map[string]recentSpot, recentSize), r.young
	}
	r.young[t.ID] = recentSpot{t.Queue, spot{t.OrderKey(), t.Place}}
}

func (r *recent) drop(id string) {
	delete(r.young, id)
	delete(r.old, id)
}

func (r *recent) get(id string) (recentSpot, bool) {
	if s, ok := r.young[id]; ok {
		return s, true
	}
	s, ok := r.old[id]
	return s, ok
}
