package sqlite

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// PutAgent stores an agent by name. Its CreatedAt is that of the first time.
func (s *Store) PutAgent(ctx context.Context, a signalbox.Agent, e signalbox.Entry) error {
	a.SealedToken = bytes.Clone(a.SealedToken)
	return s.do(ctx, len(a.SealedToken), func(w *writer) error { return w.putAgent(a, &e) })
}

func (w *writer) putAgent(a signalbox.Agent, e *signalbox.Entry) error {
	was, known := w.agents[a.Name]
	if known {
		a.CreatedAt = was.CreatedAt
	}
	if known && store.SameAgent(&a, &was) {
		return nil
	}
	q := w.write(stAgentPut)
	q.exact(a.Name).text(a.Kind).text(a.URL).int(int64(a.Slots)).int(agentTraits(&a)).text(string(a.Source))
	if err := q.bytes(a.SealedToken).text(a.WorkDir).text(a.Version).time(a.CreatedAt).run(); err != nil {
		return err
	}
	setKey(w, w.agents, a.Name, &a)
	w.note(e)
	return nil
}

// What the column fencing holds, of which 1 is as old as the column.
const (
	traitFencing = 1
	traitProof   = 2
)

func agentTraits(a *signalbox.Agent) (traits int64) {
	if a.Fencing {
		traits |= traitFencing
	}
	if a.Proof {
		traits |= traitProof
	}
	return traits
}

// setKey changes a map of the ledger, nil deletes, and notes how to take it
// back.
func setKey[V any](w *writer, m map[string]V, key string, v *V) {
	if was, known := m[key]; known {
		w.undoing(func() { m[key] = was })
	} else {
		w.undoing(func() { delete(m, key) })
	}
	if v == nil {
		delete(m, key)
	} else {
		m[key] = *v
	}
	w.fleetChanged = true
}

// RemoveAgent forgets an agent that holds no slots.
func (s *Store) RemoveAgent(ctx context.Context, name string, e signalbox.Entry) error {
	return s.do(ctx, 0, func(w *writer) error { return w.removeAgent(name, &e) })
}

func (w *writer) removeAgent(name string, e *signalbox.Entry) error {
	if _, known := w.agents[name]; !known {
		return signalbox.Errorf(signalbox.CodeNotFound, "there is no agent %q", name)
	}
	if n := w.used(name, store.CommonSlots) + w.used(name, store.IsolatedSlots); n > 0 {
		return signalbox.Errorf(signalbox.CodeConflict, "agent %q still holds %d slots: release them first", name, n)
	}
	q := w.write(stAgentDelete)
	if err := q.exact(name).run(); err != nil {
		return err
	}
	for _, id := range []stmtID{stHoldingDelete, stHeardDelete} {
		q := w.write(id)
		if err := q.exact(name).run(); err != nil {
			return err
		}
	}
	setKey(w, w.agents, name, nil)
	delete(w.slots, name) // it is empty, which is what no entry means too
	w.note(e)
	return nil
}

// SetPause pauses or changes the pause of a queue.
func (s *Store) SetPause(ctx context.Context, p signalbox.Pause, e signalbox.Entry) error {
	return s.do(ctx, 0, func(w *writer) error {
		q := w.write(stPausePut)
		if err := q.exact(p.Queue).text(p.Reason).text(p.By).int(p.AtMS).int(p.UntilMS).run(); err != nil {
			return err
		}
		setKey(w, w.pauses, p.Queue, &p)
		w.note(&e)
		return nil
	})
}

// Resume ends the pause of a queue. The entry is written if there was one.
func (s *Store) Resume(ctx context.Context, queue string, e signalbox.Entry) (was bool, err error) {
	err = s.do(ctx, 0, func(w *writer) error {
		if _, was = w.pauses[queue]; !was {
			return nil
		}
		q := w.write(stPauseDelete)
		if err := q.exact(queue).run(); err != nil {
			return err
		}
		setKey(w, w.pauses, queue, nil)
		w.note(&e)
		return nil
	})
	return was && err == nil, err
}

// Note writes a journal entry that belongs to no change.
func (s *Store) Note(ctx context.Context, e signalbox.Entry) error {
	return s.do(ctx, 0, func(w *writer) error {
		w.note(&e)
		return nil
	})
}

func (l *ledger) sortedAgents() []signalbox.Agent {
	list := make([]signalbox.Agent, 0, len(l.agents))
	for _, name := range slices.Sorted(maps.Keys(l.agents)) {
		list = append(list, l.agents[name])
	}
	return list
}

func (l *ledger) sortedPauses() []signalbox.Pause {
	list := make([]signalbox.Pause, 0, len(l.pauses))
	for _, queue := range slices.Sorted(maps.Keys(l.pauses)) {
		list = append(list, l.pauses[queue])
	}
	return list
}
