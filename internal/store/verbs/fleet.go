package verbs

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

type putAgent struct {
	agent signalbox.Agent
	entry signalbox.Entry
}

// PutAgent stores an agent by name. CreatedAt is kept from the first time.
func (s *Store) PutAgent(ctx context.Context, a signalbox.Agent, e signalbox.Entry) error {
	return s.do(ctx, &putAgent{a, e}, 0)
}

func (v *putAgent) run(x *workingSet) error {
	was, err := decodeDoc(x.doc(kindAgent, v.agent.Name), pack.ReadAgent)
	if err != nil {
		return err
	}
	if x.missing {
		return errMissing
	}
	a := v.agent
	if was != nil {
		a.CreatedAt = was.CreatedAt
		if store.SameAgent(&a, was) {
			return nil
		}
	}
	x.put(kindAgent, a.Name, 0, pack.Agent(&a), nil)
	x.note(v.entry)
	return nil
}

type removeAgent struct {
	name  string
	entry signalbox.Entry
}

// RemoveAgent deletes an agent that holds no slots, and which director held it.
func (s *Store) RemoveAgent(ctx context.Context, name string, e signalbox.Entry) error {
	return s.do(ctx, &removeAgent{name, e}, 0)
}

func (v *removeAgent) run(x *workingSet) error {
	was, u := x.doc(kindAgent, v.name), x.agentSlots(v.name)
	if x.missing {
		return errMissing
	}
	if was == nil {
		return signalbox.Errorf(signalbox.CodeNotFound, "there is no agent %q", v.name)
	}
	if n := u.used(); n > 0 {
		return signalbox.Errorf(signalbox.CodeConflict, "agent %q still holds %d slots: release them first", v.name, n)
	}
	for _, kind := range []string{kindAgent, kindHolding, kindHeard} {
		x.drop(kind, v.name)
	}
	x.note(v.entry)
	return nil
}

type setPause struct {
	pause signalbox.Pause
	entry signalbox.Entry
}

// SetPause pauses or changes the pause of a queue.
func (s *Store) SetPause(ctx context.Context, p signalbox.Pause, e signalbox.Entry) error {
	return s.do(ctx, &setPause{p, e}, 0)
}

func (v *setPause) run(x *workingSet) error {
	if x.missing {
		return errMissing
	}
	p := v.pause
	x.put(KindPause, p.Queue, 0, pack.Pause(&p), &p)
	x.note(v.entry)
	return nil
}

type resume struct {
	queue string
	entry signalbox.Entry
	was   bool
}

// Resume ends the pause of a queue. The entry is written if there was one.
func (s *Store) Resume(ctx context.Context, queue string, e signalbox.Entry) (was bool, err error) {
	v := &resume{queue: queue, entry: e}
	if err := s.do(ctx, v, 0); err != nil {
		return false, err
	}
	return v.was, nil
}

func (v *resume) run(x *workingSet) error {
	was := x.doc(KindPause, v.queue)
	if x.missing {
		return errMissing
	}
	if v.was = was != nil; v.was {
		x.drop(KindPause, v.queue)
		x.note(v.entry)
	}
	return nil
}

// paused reports whether a pause of exactly that queue is in force; an expired one is not,
// even if its row still exists.
func (x *workingSet) paused(queue string, now time.Time) bool {
	if x.unpaused() {
		return false
	}
	p, err := decodeDoc(x.doc(KindPause, queue), pack.ReadPause)
	return err == nil && p != nil && (p.UntilMS == 0 || now.UnixMilli() < p.UntilMS)
}

// unpaused reports that there is no pause at all.
func (x *workingSet) unpaused() bool {
	k := x.docs.kind(KindPause)
	return k.whole && len(k.rows) == 0
}

// drained reports whether an agent's own queue is paused, which keeps it from all queues.
func (x *workingSet) drained(agent string, now time.Time) bool {
	return !x.unpaused() && x.paused(signalbox.AgentQueue(agent), now)
}

type note struct{ entry signalbox.Entry }

// Note writes a journal entry without a change.
func (s *Store) Note(ctx context.Context, e signalbox.Entry) error { return s.do(ctx, &note{e}, 0) }

func (v *note) run(x *workingSet) error {
	if x.missing {
		return errMissing
	}
	x.note(v.entry)
	return nil
}
