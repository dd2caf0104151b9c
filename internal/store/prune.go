package store

import (
	"maps"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Pruning says which ended tasks are to be forgotten. They are looked at from the
// oldest end on, by EndedAt, then Seq, and each goes that one of the rules takes.
type Pruning struct {
	// Ended: those that ended before, whoever's.
	Ended time.Time
	// Bytes: of whoever's, until so much is gone that they had kept. What counts
	// nothing stays (signalbox.Task.Kept).
	Bytes int64
	// Owners: likewise of each of these, by signalbox.Task.Owner.
	Owners map[string]int64
	// After is where the search goes on; the zero EndedSpot stands before all.
	After EndedSpot
	// Limit bounds how many are looked at.
	Limit int
}

// Pruned is what Prune did.
type Pruned struct {
	Tasks int   // that went
	Bytes int64 // that they had kept
	// Next is the last that was looked at, where there may be more that go; else
	// the zero EndedSpot.
	Next EndedSpot
}

// EndedSpot is a place among ended tasks; the zero EndedSpot stands before all.
type EndedSpot struct{ EndedMS, Seq int64 }

// EndedSpotOf returns the place of an ended task.
func EndedSpotOf(t *signalbox.Task) EndedSpot { return EndedSpot{t.EndedAt.UnixMilli(), t.Seq} }

// Before is the instant in Unix milliseconds before which a task ended that may
// go: none that ended later need be looked at.
func (p *Pruning) Before() int64 {
	if p.Bytes > 0 || len(p.Owners) > 0 {
		return math.MaxInt64
	}
	return p.Ended.UnixMilli()
}

// Choose returns which of the ended tasks go. They are the first behind p.After
// that ended before p.Before, in order, p.Limit of them or all that there are.
func (p *Pruning) Choose(ended []*signalbox.Task) (going []*signalbox.Task, done Pruned) {
	whoevers, owners := p.Bytes, maps.Clone(p.Owners)
	maps.DeleteFunc(owners, func(_ string, more int64) bool { return more <= 0 })
	for _, t := range ended {
		old := t.EndedAt.Before(p.Ended)
		if !old && whoevers <= 0 && len(owners) == 0 {
			return going, done
		}
		done.Next = EndedSpotOf(t)
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
		done.Next = EndedSpot{}
	}
	return going, done
}
