package verbs

import (
	"cmp"
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// choice decides which tasks a claim may take.
type choice struct {
	x *workingSet
	c *store.ClaimRequest

	short  bool     // a task was passed over because others hold resources that it needs
	wanted []string // resources that tasks of this queue wait for
	passed int      // tasks of this queue that wait for a resource
}

// begin starts with the head of a queue.
func (v *choice) begin() { v.wanted, v.passed = v.wanted[:0], 0 }

// over reports whether no more tasks of this queue are tried.
func (v *choice) over() bool { return v.passed > signalbox.MaxPassed }

// takes reports whether a task may be taken. x.missing may be set.
func (v *choice) takes(t *signalbox.Task) bool {
	if v.c.Except.Contains(t) {
		return false
	}
	needs := v.c.Requires(t)
	if len(needs) == 0 {
		return true
	}
	free := true
	for _, n := range needs {
		if slices.Contains(v.wanted, n.Resource) {
			free = false
		} else if _, ok := signalbox.Allot(v.c.Resources, n, v.x.holds(n.Resource)); !ok {
			free = false
		}
	}
	if free {
		return true
	}
	v.short = true
	v.passed++
	for _, n := range needs {
		if !slices.Contains(v.wanted, n.Resource) {
			v.wanted = append(v.wanted, n.Resource)
		}
	}
	return false
}

// holds returns what executions that still have their slots hold of a resource; missing is set if that is not
// loaded.
func (x *workingSet) holds(resource string) []signalbox.Hold {
	list, err := decodeDoc(x.doc(kindHold, resource), pack.ReadHolds)
	if err != nil || list == nil { // nothing is known of a damaged row
		return nil
	}
	return slices.DeleteFunc(slices.Clone(*list), func(h signalbox.Hold) bool {
		return x.agentSlots(h.Agent).slot(h.Slot, h.Fence) == nil
	})
}

// allot records the resources that a claim gets for its task. All of them are free.
func (x *workingSet) allot(c *store.ClaimRequest, t *signalbox.Task) (got []signalbox.Hold) {
	for _, n := range c.Requires(t) {
		taken := x.holds(n.Resource)
		h, _ := signalbox.Allot(c.Resources, n, taken)
		h.Agent, h.Slot, h.Fence = t.Agent, t.Slot, t.Fence
		got = append(got, h)
		taken = append(taken, h)
		x.put(kindHold, n.Resource, 0, pack.Holds(taken), &taken)
	}
	return got
}

// Holds lists what executions hold.
func (s *Store) Holds(ctx context.Context) ([]signalbox.Hold, error) {
	docs, err := s.page(ctx, Page{Kind: kindHold})
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	slots, err := s.Slots(ctx)
	if err != nil {
		return nil, err
	}
	var list []signalbox.Hold
	for i := range docs {
		holds, err := pack.ReadHolds(docs[i].ID, docs[i].Body)
		if err != nil {
			s.quarantine.report(docs[i].DocKey, err)
			continue
		}
		for _, h := range holds {
			if slices.ContainsFunc(slots, func(s signalbox.Slot) bool { return s.Agent == h.Agent && s.Slot == h.Slot && s.Fence == h.Fence }) {
				list = append(list, h)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b signalbox.Hold) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Fence, b.Fence))
	})
	return list, nil
}

// pruneHolds deletes resources of which nothing is held.
type pruneHolds struct{}

func (pruneHolds) run(x *workingSet) error {
	var free []string
	for _, r := range x.page(kindHold) {
		if len(x.holds(r.doc.ID)) == 0 {
			free = append(free, r.doc.ID)
		}
	}
	if x.missing {
		return errMissing
	}
	for _, id := range free {
		x.drop(kindHold, id)
	}
	return nil
}
