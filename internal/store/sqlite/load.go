package sqlite

import (
	"context"
	"math"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Load reads what is wanted. There is no other writer, so it need not be a transaction.
func (b *Backend) Load(_ context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	if err := b.quarantineSuspects(); err != nil {
		return nil, err
	}
	for {
		l := &verbs.Loaded{Counters: b.totals.Counters, InUse: b.totals.inUse, Number: b.numberOf(w.Writer)}
		if err := b.load(b.writer, w, l); err != nil {
			return nil, b.failed(err, false)
		}
		if len(b.writer.damage) == 0 {
			return l, nil
		}
		if any, err := b.quarantine(); err != nil {
			return nil, b.failed(err, false)
		} else if !any {
			return l, nil
		}
	}
}

// numberOf is the number of the last batch of a writer, since the backend was opened.
func (b *Backend) numberOf(writer string) int64 {
	if writer == b.lastWriter {
		return b.lastNumber
	}
	return 0
}

func (b *Backend) load(c *conn, w *verbs.Want, l *verbs.Loaded) error {
	for _, load := range [...]func(*conn, *verbs.Want, *verbs.Loaded) error{b.loadTasks, loadLines, b.loadCounts, loadTimes, b.loadCut, loadDocs} {
		if err := load(c, w, l); err != nil {
			return err
		}
	}
	return nil
}

func (b *Backend) loadTasks(c *conn, w *verbs.Want, l *verbs.Loaded) (err error) {
	if len(w.Tasks) > 0 {
		if l.Tasks, err = c.byNames(stTaskByID, w.Tasks); err != nil {
			return err
		}
	}
	if len(w.Keys) > 0 {
		if l.Keys, err = c.byNames(stTaskByKey, w.Keys); err != nil {
			return err
		}
	}
	for _, seq := range w.Requests {
		r, err := c.request(seq)
		if err != nil {
			return err
		}
		l.Requests = append(l.Requests, r)
	}
	for _, session := range w.Turns {
		q := c.on(stTurn)
		turn, err := c.pointers(q.exact(session).most(math.MaxInt64))
		if err != nil {
			return err
		}
		l.Turns = append(l.Turns, turn)
	}
	for _, want := range w.Heads {
		head, err := b.head(c, want)
		if err != nil {
			return err
		}
		l.Heads = append(l.Heads, head)
	}
	for _, session := range w.Named {
		q := c.on(stNamed)
		q.exact(session)
		l.Named = append(l.Named, q.next())
		if err := q.end(); err != nil {
			return err
		}
	}
	return nil
}

func (b *Backend) head(c *conn, w verbs.HeadWant) (h verbs.Head, err error) {
	q := c.on(stTurn)
	if h.Tasks, err = c.pointers(q.exact(w.Session).most(int64(w.N))); err != nil {
		return h, err
	}
	if h.UpTo = verbs.EndOfLine; len(h.Tasks) == w.N {
		h.UpTo = store.CursorOf(h.Tasks[w.N-1])
	}
	for _, seq := range b.totals.turns[w.Session] {
		q := c.on(stTaskBySeq)
		t, err := c.one(q.int(seq))
		if err != nil {
			return h, err
		}
		if t != nil {
			h.Tasks = append(h.Tasks, t)
		}
	}
	return h, nil
}

// byNames returns the tasks with these names. A quarantined task is an error.
func (c *conn) byNames(id stmtID, names []string) ([]*signalbox.Task, error) {
	list := make([]*signalbox.Task, len(names))
	for n, name := range names {
		q := c.on(id)
		if q.exact(name); q.next() {
			if q.intAt(2) == rowDamaged {
				seq, id := q.intAt(0), q.textAt(1)
				if err := q.end(); err != nil {
					return nil, err
				}
				return nil, c.quarantinedError(seq, id)
			}
			list[n] = c.scanTask(&q)
		}
		if err := q.end(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func loadLines(c *conn, w *verbs.Want, l *verbs.Loaded) error {
	for _, want := range w.Lines {
		at := positionOf(want.After)
		q := c.on(stHeads)
		heads, err := c.pointers(q.exact(want.Queue).int(at.key).int(at.tie).most(int64(want.N)))
		if err != nil {
			return err
		}
		l.Lines = append(l.Lines, heads)
	}
	return nil
}

// positionOf converts a cursor; the zero one is before all.
func positionOf(c store.Cursor) position {
	if c == (store.Cursor{}) {
		return position{math.MinInt64, math.MinInt64}
	}
	return position{c.OrderKey, c.Place}
}

func (b *Backend) loadCounts(c *conn, w *verbs.Want, l *verbs.Loaded) error {
	for _, queue := range w.Queues {
		l.Queues = append(l.Queues, verbs.QueueCount{Waiting: b.totals.length(queue), Ready: b.totals.ready[queue]})
	}
	for _, limit := range w.Limits {
		l.Limits = append(l.Limits, b.totals.limits[limit])
	}
	for _, agent := range w.Slots {
		q := c.on(stSlotsOf)
		slots, err := slotRows(q.exact(agent))
		if err != nil {
			return err
		}
		l.Slots = append(l.Slots, slots)
	}
	return nil
}

func slotRows(q *query) (list []signalbox.Slot, err error) {
	for q.next() {
		list = append(list, signalbox.Slot{
			Agent: q.textAt(0), Slot: int(q.intAt(1)), TaskID: q.textAt(2), Fence: q.intAt(3), Expires: q.timeAt(4),
			Withheld: q.boolAt(5),
		})
	}
	return list, q.end()
}

func loadTimes(c *conn, w *verbs.Want, l *verbs.Loaded) (err error) {
	if d := w.Due; d != nil {
		until := d.Until.UnixMilli()
		q := c.on(stDue)
		if l.Due, err = c.pointers(q.int(d.After.UnixMilli()).int(d.AfterPlace).int(until).most(int64(d.N))); err != nil {
			return err
		}
		q = c.on(stNextDue)
		if q.int(until); q.next() {
			l.NextDue = q.timeAt(0)
		}
		if err := q.end(); err != nil {
			return err
		}
	}
	if e := w.Ended; e != nil {
		q := c.on(stEndedFirst)
		l.Ended, err = c.pointers(q.int(e.After.EndedMS).int(e.After.Seq).int(e.Before).most(int64(e.N)))
	}
	return err
}

// cutRows is how many journal rows are checked per prune.
const cutRows = 10_000

// loadCut finds the last old entry at the beginning of the journal: rows that are old as a
// whole, and entries of the next.
func (b *Backend) loadCut(c *conn, w *verbs.Want, l *verbs.Loaded) error {
	if w.Cut == nil {
		return nil
	}
	older := *w.Cut
	q := c.on(stJournalAfter)
	q.int(b.totals.prunedUpTo).most(cutRows)
	var bad error
	for q.next() {
		if q.intAt(2) < older.UnixMilli() {
			l.Cut = q.intAt(0)
			continue
		}
		var entries []signalbox.Entry
		if entries, bad = pack.ReadEntries(q.bytesAt(3), q.intAt(1)); bad != nil {
			break
		}
		for _, e := range entries {
			if !e.At.Before(older) {
				break
			}
			l.Cut = e.Seq
		}
		break
	}
	if l.Cut <= b.totals.prunedUpTo {
		l.Cut = 0
	}
	if err := q.end(); err != nil {
		return err
	}
	if bad != nil {
		return journalDamaged(l.Cut)
	}
	return nil
}

func journalDamaged(after int64) error {
	return signalbox.Errorf(signalbox.CodeStoreCorrupt, "the journal is damaged behind entry %d: run signalbox doctor", after)
}

func loadDocs(c *conn, w *verbs.Want, l *verbs.Loaded) error {
	for _, k := range w.Docs {
		doc, err := c.doc(k)
		if err != nil {
			return err
		}
		l.Docs = append(l.Docs, doc)
	}
	for n := range w.Pages {
		docs, err := c.page(&w.Pages[n])
		if err != nil {
			return err
		}
		l.Pages = append(l.Pages, docs)
	}
	return nil
}

func (c *conn) doc(k verbs.DocKey) (doc *verbs.Doc, err error) {
	q := c.on(stDocGet)
	if q.exact(k.Kind).exact(k.ID); q.next() {
		doc = &verbs.Doc{DocKey: k, Sort: q.intAt(0), Body: q.bytesAt(1)}
	}
	return doc, q.end()
}

// page reads docs of a kind.
func (c *conn) page(p *verbs.Page) (docs []verbs.Doc, err error) {
	limit := int64(p.Limit)
	if limit <= 0 {
		limit = math.MaxInt64
	}
	after := verbs.Doc{Sort: math.MinInt64}
	if p.Falling {
		after.Sort, after.ID = math.MaxInt64, maxString
	}
	if p.After != nil {
		after = *p.After
	}
	var q query
	switch {
	case p.BySort && p.Falling:
		q = c.on(stPageSortFalling)
		q.exact(p.Kind).int(after.Sort).exact(after.ID).most(limit)
	case p.BySort:
		q = c.on(stPageSort)
		q.exact(p.Kind).int(after.Sort).exact(after.ID).most(limit)
	case p.Falling:
		q = c.on(stPageIDFalling)
		q.exact(p.Kind).exact(after.ID).most(limit)
	default:
		q = c.on(stPageID)
		q.exact(p.Kind).exact(after.ID).most(limit).bool(p.After == nil)
	}
	for q.next() {
		docs = append(docs, verbs.Doc{DocKey: verbs.DocKey{Kind: p.Kind, ID: q.textAt(0)}, Sort: q.intAt(1), Body: q.bytesAt(2)})
	}
	return docs, q.end()
}
