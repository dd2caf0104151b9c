package sqlite

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// Claim gives the best ready task of the request's queues to the lowest free
// slot of the agent.
func (s *Store) Claim(ctx context.Context, c store.ClaimRequest) (got store.Claimed, err error) {
	err = s.do(ctx, 0, func(w *writer) (err error) {
		got, err = w.claim(&c)
		return err
	})
	if err != nil {
		return store.Claimed{}, err
	}
	return got, nil
}

func (w *writer) claim(c *store.ClaimRequest) (store.Claimed, error) {
	slot, free := w.freeSlot(c)
	if !free || (!c.Isolated && w.drained(c.Agent, c.Now)) {
		return store.Claimed{}, nil
	}
	before, err := w.head(c.Queues, c.Now)
	if before == nil || err != nil {
		return store.Claimed{}, err
	}
	fence, err := store.NextFence(w.fence, c.FenceAbove)
	if err != nil {
		return store.Claimed{}, err
	}
	change, err := signalbox.Next(*before, signalbox.Event{
		Kind: signalbox.EventClaim, Now: c.Now, Fence: fence, Agent: c.Agent, AgentURL: c.AgentURL, Slot: slot,
	})
	if err != nil {
		return store.Claimed{}, err
	}
	w.fence = fence
	t := change.Task
	t.Rev++
	t.Ready = false
	if err := w.update(before, &t); err != nil {
		return store.Claimed{}, err
	}
	if err := w.takeSlot(&t, c.Expires); err != nil {
		return store.Claimed{}, err
	}
	request, err := w.request(&t)
	if err != nil {
		return store.Claimed{}, err
	}
	w.note(&change.Entry)
	return store.Claimed{Found: true, Task: t, Request: request}, nil
}

// head returns the best ready task of the queues that are not paused: one
// seek for each queue in which something is ready.
func (w *writer) head(queues []string, now time.Time) (*signalbox.Task, error) {
	if w.paused("", now) {
		return nil, nil
	}
	var best *signalbox.Task
	for _, queue := range queues {
		if w.ready[queue] == 0 || w.paused(queue, now) {
			continue
		}
		q := w.on(stHead)
		t, err := one(q.exact(queue))
		if err != nil {
			return nil, err
		}
		if t != nil && (best == nil || store.CursorOf(t).Before(store.CursorOf(best))) {
			best = t
		}
	}
	return best, nil
}

func (w *writer) takeSlot(t *signalbox.Task, expires time.Time) error {
	w.setSlot(t.Agent, t.Slot, &slotRow{fence: t.Fence})
	q := w.write(stSlotPut)
	return q.exact(t.Agent).int(int64(t.Slot)).int(t.Seq).exact(t.ID).int(t.Fence).time(expires).run()
}

func (w *writer) dropSlot(agent string, slot int) error {
	w.setSlot(agent, slot, nil)
	q := w.write(stSlotDelete)
	return q.exact(agent).int(int64(slot)).run()
}

// request reads what was asked for, with the environment.
func (w *writer) request(t *signalbox.Task) (signalbox.Request, error) {
	var prompt string
	var rest, sealed []byte
	q := w.on(stRequestGet)
	q.int(t.Seq)
	if q.next() {
		prompt, rest = q.textAt(0), q.bytesAt(1)
	}
	if err := q.end(); err != nil {
		return signalbox.Request{}, err
	}
	q = w.on(stEnvGet)
	q.int(t.Seq)
	if t.HasEnv && q.next() {
		sealed = q.bytesAt(0)
	}
	if err := q.end(); err != nil {
		return signalbox.Request{}, err
	}
	return pack.ReadRequest(prompt, rest, sealed)
}
