package sqlite

import (
	"math"
	"math/bits"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// slotRow is a slot in use.
type slotRow struct {
	fence    int64
	withheld bool
}

// usage is what an agent uses of its slots. It stays when the agent uses none,
// because it will again, until the agent is removed.
type usage struct {
	rows  map[int]slotRow
	count [store.SlotSorts]int
	taken [store.SlotSorts]bitmap
	apart bool // the director's own executor: no ceiling over all agents counts it
}

// used returns how many slots of a sort an agent uses.
func (l *ledger) used(agent string, sort int) int {
	if u := l.slots[agent]; u != nil {
		return u.count[sort]
	}
	return 0
}

func (l *ledger) slot(agent string, slot int, fence int64) (slotRow, bool) {
	u := l.slots[agent]
	if u == nil {
		return slotRow{}, false
	}
	row, used := u.rows[slot]
	return row, used && row.fence == fence
}

// setSlot puts a row in a slot; nil empties it.
func (l *ledger) setSlot(agent string, slot int, row *slotRow) {
	var was *slotRow
	if u := l.slots[agent]; u != nil {
		if held, used := u.rows[slot]; used {
			was = &held
		}
	}
	l.undoing(func() { l.putSlot(agent, slot, was) })
	l.putSlot(agent, slot, row)
}

func (l *ledger) putSlot(agent string, slot int, row *slotRow) {
	u := l.slots[agent]
	if u == nil {
		if row == nil {
			return
		}
		_, own := signalbox.ExecutorKind(agent)
		u = &usage{rows: map[int]slotRow{}, apart: own}
		l.slots[agent] = u
	}
	if _, used := u.rows[slot]; used != (row != nil) {
		l.countSlot(u, slot, row != nil)
	}
	if row != nil {
		u.rows[slot] = *row
		return
	}
	delete(u.rows, slot)
}

func (l *ledger) countSlot(u *usage, slot int, taken bool) {
	sort, number, n := store.CommonSlots, slot, -1
	if signalbox.Isolated(slot) {
		sort, number = store.IsolatedSlots, slot-signalbox.FirstIsolatedSlot
	}
	if taken {
		n = 1
	}
	u.count[sort] += n
	if !u.apart {
		l.inUse[sort] += n
	}
	u.taken[sort].set(number, taken)
}

// freeSlot returns the agent's lowest free slot of the sort that is asked for,
// unless the fleet's ceiling is reached. Every row of that sort counts,
// withheld ones and those above a lowered number of slots too: each may be an
// execution.
func (l *ledger) freeSlot(c *store.ClaimRequest) (int, bool) {
	sort, first, slots := store.SlotSort(c.Isolated), 0, min(c.Slots, signalbox.FirstIsolatedSlot)
	if c.Isolated {
		first, slots = signalbox.FirstIsolatedSlot, c.Slots
	}
	if c.Fleet > 0 && l.inUse[sort] >= c.Fleet {
		return 0, false
	}
	u := l.slots[c.Agent]
	if u == nil {
		return first, slots > 0
	}
	if u.count[sort] >= slots {
		return 0, false
	}
	n := u.taken[sort].lowest()
	return first + n, n < slots
}

// bitmap says which slots are taken: 10,000 of them are 157 words, which are
// looked through faster than a tree.
type bitmap []uint64

// maxSlot bounds the bitmap, whatever number a damaged row holds.
const maxSlot = 1 << 20

func (b *bitmap) set(n int, taken bool) {
	if n < 0 || n >= maxSlot {
		return
	}
	for n/64 >= len(*b) {
		*b = append(*b, 0)
	}
	if taken {
		(*b)[n/64] |= 1 << (n % 64)
	} else {
		(*b)[n/64] &^= 1 << (n % 64)
	}
}

// lowest returns the lowest number that is not taken.
func (b *bitmap) lowest() int {
	for i, w := range *b {
		if w != math.MaxUint64 {
			return i*64 + bits.TrailingZeros64(^w)
		}
	}
	return len(*b) * 64
}
