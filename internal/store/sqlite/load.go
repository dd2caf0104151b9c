package sqlite

import (
	"time"

	"github.com/signalbox-ai/signalbox"
)

// load makes ledger and board from the file.
func (s *Store) load() (id string, err error) {
	w := s.writer
	if id, err = w.loadCounters(); err != nil {
		return "", err
	}
	if w.kept, err = w.keptRows(); err != nil {
		return "", err
	}
	for _, load := range []func() error{w.loadPending, w.loadSlots, w.loadFleet, w.loadJournal, w.loadRuns} {
		if err := load(); err != nil {
			return "", err
		}
	}
	b := &s.board
	for _, t := range w.hot {
		b.row(nil, t)
	}
	b.agents, b.pauses = w.sortedAgents(), w.sortedPauses()
	b.firstEntry, b.lastEntry, b.commits = w.firstEntry, w.lastEntry, w.commits
	w.settled()
	return id, nil
}

func (w *writer) loadCounters() (id string, err error) {
	q := w.on(stMetaGet)
	found := q.next()
	if found {
		id = q.textAt(0)
		w.counters = counters{seq: q.intAt(1), place: q.intAt(2), fence: q.intAt(3), entry: q.intAt(4), enqueued: q.timeAt(5), commits: q.intAt(6), ticketPlace: q.intAt(7), ticketFence: q.intAt(8)}
	}
	if err := q.end(); err != nil {
		return "", err
	}
	if !found || id == "" {
		return "", corrupt(w.store.opts.Path, "its counters are missing")
	}
	return id, nil
}

// loadPending counts what waits. The rows are not kept: only their places.
func (w *writer) loadPending() error {
	b := &w.store.board
	q := w.on(stPendingAll)
	for q.next() {
		t := signalbox.Task{
			State: signalbox.Pending, Seq: q.intAt(0), Queue: q.textAt(1), Ready: q.boolAt(2), Place: q.intAt(4),
			SessionID: q.textAt(5), Limit: q.textAt(6), CreatedAt: q.timeAt(7),
			EnqueuedAt: time.UnixMilli(q.intAt(3)).UTC(), // with no bias that is the order key
		}
		w.count(&t, 1)
		b.count(&t, 1)
	}
	return q.end()
}

// loadSlots reads the slots in use and the tasks that hold them.
func (w *writer) loadSlots() error {
	q := w.on(stSlotsAll)
	var held []int64
	for q.next() {
		row := slotRow{fence: q.intAt(3), withheld: q.boolAt(5)}
		w.putSlot(q.textAt(0), int(q.intAt(1)), &row)
		if !row.withheld {
			held = append(held, q.intAt(6))
		}
	}
	if err := q.end(); err != nil {
		return err
	}
	for _, seq := range held {
		t, err := w.bySeq(seq)
		if err != nil {
			return err
		}
		if t != nil && t.State.InFlight() {
			w.count(t, 1)
		}
	}
	return nil
}

func (w *writer) loadFleet() error {
	q := w.on(stAgentsAll)
	for q.next() {
		a := signalbox.Agent{
			Name: q.textAt(0), Kind: q.textAt(1), URL: q.textAt(2), Slots: int(q.intAt(3)), Fencing: q.intAt(4)&traitFencing != 0, Proof: q.intAt(4)&traitProof != 0,
			Source: signalbox.AgentSource(q.textAt(5)), SealedToken: q.bytesAt(6), WorkDir: q.textAt(7), Version: q.textAt(8),
			CreatedAt: q.timeAt(9),
		}
		w.agents[a.Name] = a
	}
	if err := q.end(); err != nil {
		return err
	}
	pauses, err := w.pauseRows()
	for _, p := range pauses {
		w.pauses[p.Queue] = p
	}
	return err
}

func (c *conn) pauseRows() (list []signalbox.Pause, err error) {
	q := c.on(stPausesAll)
	for q.next() {
		list = append(list, signalbox.Pause{
			Queue: q.textAt(0), Reason: q.textAt(1), By: q.textAt(2), AtMS: q.intAt(3), UntilMS: q.intAt(4),
		})
	}
	return list, q.end()
}

func (w *writer) loadJournal() error {
	q := w.on(stJournalOldest)
	q.int(0).int(1)
	if q.next() {
		w.firstEntry, w.lastEntry = q.intAt(1), w.entry
	}
	return q.end()
}
