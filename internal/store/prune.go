package store

import (
	"maps"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Pruning selects ended tasks to delete. They are read from the oldest on, by EndedAt, then Seq. A task is
// deleted if any of the rules applies, unless its landing is open.
type Pruning struct {
	// Ended: all tasks that ended before.
	Ended time.Time
	// Bytes: the oldest tasks of all owners, until that many bytes are freed (signalbox.Task.Kept; tasks that
	// count 0 bytes stay).
	Bytes int64
	// Owners: the same for each of these, by signalbox.Task.Owner.
	Owners map[string]int64
	// Usage: with Ended, rows of usage of days before it, some at a time; 0: none.
	Usage signalbox.Day
	// After is where the search continues; the zero EndedCursor is the start.
	After EndedCursor
	// Limit bounds how many are read.
	Limit int
}

// Pruned is the result of Prune.
type Pruned struct {
	Tasks int   // deleted
	Bytes int64 // freed
	// Next is the last task read, if there may be more to delete; else the zero
	// EndedCursor.
	Next EndedCursor
}

// EndedCursor is a position among ended tasks; the zero EndedCursor is before all.
type EndedCursor struct{ EndedMS, Seq int64 }

// EndedCursorOf returns the position of an ended task.
func EndedCursorOf(t *signalbox.Task) EndedCursor { return EndedCursor{t.EndedAt.UnixMilli(), t.Seq} }

// Before is the end time, in Unix milliseconds, from which on no task can be deleted.
func (p *Pruning) Before() int64 {
	if p.Bytes > 0 || len(p.Owners) > 0 {
		return math.MaxInt64
	}
	return p.Ended.UnixMilli()
}

// Choose returns which of the ended tasks to delete. ended are the first ones after p.After
// that ended before p.Before, in order, at most p.Limit.
func (p *Pruning) Choose(ended []*signalbox.Task) (going []*signalbox.Task, done Pruned) {
	whoevers, owners := p.Bytes, maps.Clone(p.Owners)
	maps.DeleteFunc(owners, func(_ string, more int64) bool { return more <= 0 })
	for _, t := range ended {
		if t.Landing.Active() {
			done.Next = EndedCursorOf(t)
			continue // its landing is open
		}
		old := t.EndedAt.Before(p.Ended)
		if !old && whoevers <= 0 && len(owners) == 0 {
			return going, done
		}
		done.Next = EndedCursorOf(t)
		size := t.Kept()
		if !old && (size == 0 || whoevers <= 0 && owners[t.Owner] == 0) {
			continue
		}
		going = append(going, t)
		done.Tasks++
		done.Bytes += size
		whoevers -= size
		if more := owners[t.Owner] - size; more > 0 {
			owners[t.Owner] = more
		} else {
			delete(owners, t.Owner)
		}
	}
	if len(ended) < p.Limit {
		done.Next = EndedCursor{}
	}
	return going, done
}
