package invariant

import (
	"maps"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// checkPlaces: a task is in exactly one place (design §4.7).
func (v *view) checkPlaces() {
	for _, group := range []struct {
		name  string
		tasks []signalbox.Task
		holds func(signalbox.State) bool
	}{
		{"waiting", v.waiting, signalbox.State.Waiting},
		{"in flight", v.flying, signalbox.State.InFlight},
		{"ended", v.ended, signalbox.State.Terminal},
	} {
		for _, t := range group.tasks {
			if _, twice := v.tasks[t.ID]; twice {
				v.wrong("task %s is listed twice, the second time as %s", t.ID, group.name)
			}
			if !group.holds(t.State) {
				v.wrong("task %s is listed as %s but is %s", t.ID, group.name, t.State)
			}
			v.tasks[t.ID] = t
		}
	}
}

// checkRows: no field of a row contradicts its state.
func (v *view) checkRows() {
	for _, t := range v.tasks {
		switch {
		case t.Rev < 1:
			v.wrong("task %s has revision %d", t.ID, t.Rev)
		case t.State.Terminal():
			v.checkEnded(&t)
		case t.Reason != "" || !t.EndedAt.IsZero():
			v.wrong("task %s is %s but has reason %q and end %v", t.ID, t.State, t.Reason, t.EndedAt)
		case t.State.InFlight() && (t.Fence < 1 || t.Agent == ""):
			v.wrong("task %s is %s without an agent or a fence", t.ID, t.State)
		}
		if t.Ready && t.State != signalbox.Pending {
			v.wrong("task %s is %s and ready", t.ID, t.State)
		}
	}
}

func (v *view) checkEnded(t *signalbox.Task) {
	if !t.Reason.Valid() || t.Reason.End() != t.State {
		v.wrong("task %s ended %s with reason %q", t.ID, t.State, t.Reason)
	}
	if t.Message == "" || t.EndedAt.IsZero() || t.HasEnv {
		v.wrong("task %s ended without a message or a time, or kept its environment", t.ID)
	}
}

// checkOrder: places and Seqs are unique, EnqueuedAt never decreases along the places, and every list is in
// its order. Tasks that were restored as ended are excluded: they were enqueued in another store.
func (v *view) checkOrder() {
	all := slices.Collect(maps.Values(v.tasks))
	slices.SortFunc(all, func(a, b signalbox.Task) int { return int(a.Place - b.Place) })
	seqs, places := map[int64]string{}, map[int64]string{}
	var before *signalbox.Task
	for i := range all {
		t := &all[i]
		if other, twice := seqs[t.Seq]; twice {
			v.wrong("tasks %s and %s have both sequence %d", other, t.ID, t.Seq)
		}
		if other, twice := places[t.Place]; twice {
			v.wrong("task %s does not follow %s: both have place %d", t.ID, other, t.Place)
		}
		seqs[t.Seq], places[t.Place] = t.ID, t.ID
		if restored := t.State.Terminal() && t.Rev == 1; restored {
			continue
		}
		if before != nil && before.EnqueuedAt.After(t.EnqueuedAt) {
			v.wrong("task %s (place %d, %v) does not follow %s (place %d, %v)",
				t.ID, t.Place, t.EnqueuedAt, before.ID, before.Place, before.EnqueuedAt)
		}
		before = t
	}
	sorted := func(list []signalbox.Task, name string, before func(a, b *signalbox.Task) bool) {
		for i := 1; i < len(list); i++ {
			if !before(&list[i-1], &list[i]) {
				v.wrong("%s: %s stands before %s", name, list[i-1].ID, list[i].ID)
			}
		}
	}
	sorted(v.waiting, "waiting", func(a, b *signalbox.Task) bool { return store.CursorOf(a).Before(store.CursorOf(b)) })
	sorted(v.flying, "in flight", func(a, b *signalbox.Task) bool { return a.Fence < b.Fence })
	sorted(v.ended, "ended", func(a, b *signalbox.Task) bool { return !a.EndedAt.Before(b.EndedAt) })
}

// checkCounts: the counts match the rows.
func (v *view) checkCounts() {
	queues, limits, flying := map[string]int{}, map[string]int{}, map[signalbox.State]int{}
	lists := map[string][]string{}
	var oldest time.Time
	for _, t := range v.waiting {
		queues[t.Queue]++
		limits[t.Limit]++
		lists[t.Queue] = append(lists[t.Queue], t.ID)
		if oldest.IsZero() || t.CreatedAt.Before(oldest) {
			oldest = t.CreatedAt
		}
	}
	for _, t := range v.flying {
		flying[t.State]++
	}
	c := v.counts
	if c.Pending != len(v.waiting) || !maps.Equal(c.Queues, queues) || !maps.Equal(c.Limits, limits) || !maps.Equal(c.InFlight, flying) {
		v.wrong("the counts %+v are not those of the rows: %d pending, queues %v, limits %v, in flight %v",
			c, len(v.waiting), queues, limits, flying)
	}
	if !c.Oldest.Equal(oldest) {
		v.wrong("the oldest waiting task is of %v, not %v", oldest, c.Oldest)
	}
	for queue, want := range lists {
		if got := v.queues[queue]; !slices.Equal(got, want) {
			v.wrong("queue %s lists %v, the list of all queues has %v of it", queue, got, want)
		}
	}
}

// checkKept: the kept bytes of ended tasks add up, by owner.
func (v *view) checkKept() {
	sum := map[string]int64{}
	for i := range v.ended {
		if size := v.ended[i].Kept(); size != 0 {
			sum[v.ended[i].Owner] += size
		}
	}
	if !maps.Equal(sum, v.kept) {
		v.wrong("the ended tasks take %v bytes by owner, and the store counts %v", sum, v.kept)
	}
}
