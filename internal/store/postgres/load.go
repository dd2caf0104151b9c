package postgres

import (
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// cutRows is how many rows of the journal are checked for one cut.
const cutRows = 10_000

// load adds the statements that answer w to x.
func load(x *exchange, w *verbs.Want) *verbs.Loaded {
	l := &verbs.Loaded{}
	x.ask(stMeta, func(r row) error { counters(r, l); return nil }, text(w.Writer))
	if w.Since != 0 {
		loadLogs(x, w.Since, l)
	}
	if w.Parent != nil {
		stored := int64(0)
		x.ask(stNumber, func(r row) error { stored = r.int(0); return nil }, text(w.Parent.Writer))
		x.then(func() error {
			if stored != w.Parent.Number {
				return verbs.ErrMoved
			}
			return nil
		})
	}
	if len(w.Tasks) > 0 {
		l.Tasks = make([]*signalbox.Task, len(w.Tasks))
		x.ask(stTasks, taskAt(l.Tasks), texts(w.Tasks))
	}
	if len(w.Keys) > 0 {
		l.Keys = make([]*signalbox.Task, len(w.Keys))
		x.ask(stKeys, taskAt(l.Keys), texts(w.Keys))
	}
	if len(w.Requests) > 0 {
		l.Requests = make([]*signalbox.Request, len(w.Requests))
		x.ask(stRequests, func(r row) (err error) {
			l.Requests[r.at()], err = pack.ReadRequestRow(r[1], r.bytes(2))
			return err
		}, numbers(w.Requests))
	}
	if len(w.Turns) > 0 {
		l.Turns = make([][]*signalbox.Task, len(w.Turns))
		x.ask(stTurns, tasksAt(l.Turns), texts(w.Turns))
	}
	if len(w.Named) > 0 {
		l.Named = make([]bool, len(w.Named))
		x.ask(stNamed, func(r row) error { l.Named[r.at()] = true; return nil }, texts(w.Named))
	}
	loadLines(x, w, l)
	loadCounts(x, w, l)
	loadTimes(x, w, l)
	loadDocs(x, w, l)
	return l
}

func counters(r row, l *verbs.Loaded) {
	l.Counters = verbs.Counters{
		Moment: r.int(0), Generation: r.int(1), Seq: r.int(2), Place: r.int(3), Fence: r.int(4), Entry: r.int(5),
		EnqueuedMS: r.int(6), WokenMS: r.int(7),
	}
	l.InUse = [2]int{int(r.int(8)), int(r.int(9))}
	l.Number = r.int(10)
}

func loadLines(x *exchange, w *verbs.Want, l *verbs.Loaded) {
	if len(w.Lines) == 0 {
		return
	}
	l.Lines, l.LineRequests = make([][]*signalbox.Task, len(w.Lines)), make([][]*signalbox.Request, len(w.Lines))
	var queues, keys, places, most column
	for _, c := range []*column{&queues, &keys, &places, &most} {
		c.clear()
	}
	for _, want := range w.Lines {
		key, place := position(want.After)
		queues.text(want.Queue)
		keys.int8(key)
		places.int8(place)
		most.int8(int64(want.N))
	}
	x.ask(stHeads, headsAt(l), queues.array(oidBytea), keys.array(oidInt8), places.array(oidInt8), most.array(oidInt8))
}

// position converts a cursor for the tables; the zero cursor is before all.
func position(c store.Cursor) (key, place int64) {
	if c == (store.Cursor{}) {
		return math.MinInt64, math.MinInt64
	}
	return c.OrderKey, c.Place
}

func loadCounts(x *exchange, w *verbs.Want, l *verbs.Loaded) {
	if len(w.Queues) > 0 {
		l.Queues = make([]verbs.QueueCount, len(w.Queues))
		x.ask(stQueueCounts, func(r row) error {
			l.Queues[r.at()] = verbs.QueueCount{Waiting: int(r.int(1)), Ready: int(r.int(2))}
			return nil
		}, texts(w.Queues))
	}
	if len(w.Limits) > 0 {
		l.Limits = make([]int, len(w.Limits))
		x.ask(stLimitCounts, func(r row) error { l.Limits[r.at()] = int(r.int(1)); return nil }, texts(w.Limits))
	}
	if len(w.Slots) > 0 {
		l.Slots = make([][]signalbox.Slot, len(w.Slots))
		x.ask(stSlotsOf, func(r row) error {
			l.Slots[r.at()] = append(l.Slots[r.at()], slotOf(r[1:]))
			return nil
		}, texts(w.Slots))
	}
}

func slotOf(r row) signalbox.Slot {
	return signalbox.Slot{
		Agent: r.text(0), Slot: int(r.int(1)), TaskID: r.text(2), Fence: r.int(3), Expires: r.time(4), Withheld: r.bool(5),
	}
}

func loadTimes(x *exchange, w *verbs.Want, l *verbs.Loaded) {
	if d := w.Due; d != nil {
		until := number(d.Until.UnixMilli())
		x.ask(stDue, taskTo(&l.Due), number(d.After.UnixMilli()), number(d.AfterPlace), until, number(int64(d.N)))
		x.ask(stNextDue, func(r row) error { l.NextDue = r.time(0); return nil }, until)
	}
	if e := w.Ended; e != nil {
		x.ask(stEndedFirst, taskTo(&l.Ended), number(e.After.EndedMS), number(e.After.Seq), number(e.Before), number(int64(e.N)))
	}
	if w.Cut != nil {
		older := *w.Cut
		x.ask(stCut, func(r row) (err error) { l.Cut, err = cutOf(r, older); return err },
			number(older.UnixMilli()), number(cutRows))
	}
}

// cutOf returns the Seq of the last old entry at the beginning of the journal: rows that are old as a whole,
// and entries of the next.
func cutOf(r row, older time.Time) (int64, error) {
	cut := r.int(0)
	if r[2] != nil {
		entries, err := pack.ReadEntries(r[2], r.int(1))
		if err != nil {
			return 0, errJournal
		}
		for _, e := range entries {
			if !e.At.Before(older) {
				break
			}
			cut = e.Seq
		}
	}
	if cut <= r.int(3) {
		return 0, nil // the journal was cut there before
	}
	return cut, nil
}

func loadDocs(x *exchange, w *verbs.Want, l *verbs.Loaded) {
	if len(w.Docs) > 0 {
		l.Docs = make([]*verbs.Doc, len(w.Docs))
		var kinds, ids column
		kinds.clear()
		ids.clear()
		for _, k := range w.Docs {
			kinds.text(k.Kind)
			ids.text(k.ID)
		}
		x.ask(stDocs, func(r row) error {
			l.Docs[r.at()] = &verbs.Doc{DocKey: w.Docs[r.at()], Sort: r.int(1), Body: r.bytes(2)}
			return nil
		}, kinds.array(oidBytea), ids.array(oidBytea))
	}
	if len(w.Pages) > 0 {
		l.Pages = make([][]verbs.Doc, len(w.Pages))
		for n := range w.Pages {
			askPage(x, &w.Pages[n], &l.Pages[n])
		}
	}
}

// askPage adds the statement that answers a page.
func askPage(x *exchange, p *verbs.Page, to *[]verbs.Doc) {
	limit := int64(p.Limit)
	if limit <= 0 {
		limit = math.MaxInt64
	}
	read := func(r row) error {
		*to = append(*to, verbs.Doc{DocKey: verbs.DocKey{Kind: p.Kind, ID: r.text(0)}, Sort: r.int(1), Body: r.bytes(2)})
		return nil
	}
	after := verbs.Doc{Sort: math.MinInt64}
	if p.Falling {
		after.Sort, after.ID = math.MaxInt64, maxString
	}
	if p.After != nil {
		after = *p.After
	}
	kind, id := text(p.Kind), text(after.ID)
	switch {
	case p.BySort && p.Falling:
		x.ask(stPageSortFalling, read, kind, number(after.Sort), id, number(limit))
	case p.BySort:
		x.ask(stPageSort, read, kind, number(after.Sort), id, number(limit))
	case p.Falling:
		x.ask(stPageIDFalling, read, kind, id, number(limit))
	default:
		x.ask(stPageID, read, kind, id, number(limit), []byte{byteOf(p.After == nil)})
	}
}

// taskAt stores tasks at the index that they were asked for with, tasksAt in lists, taskTo in one list.
func taskAt(to []*signalbox.Task) func(row) error {
	return func(r row) (err error) {
		to[r.at()], err = taskOf(r[1])
		return err
	}
}

func tasksAt(to [][]*signalbox.Task) func(row) error {
	return func(r row) error {
		t, err := taskOf(r[1])
		to[r.at()] = append(to[r.at()], t)
		return err
	}
}

// headsAt stores heads of queues, with their requests, at the index that they were asked for with.
func headsAt(l *verbs.Loaded) func(row) error {
	tasks := tasksAt(l.Lines)
	return func(r row) (err error) {
		if err = tasks(r); err != nil {
			return err
		}
		var q *signalbox.Request
		if r[2] != nil {
			q, err = pack.ReadRequestRow(r[2], r.bytes(3))
		}
		l.LineRequests[r.at()] = append(l.LineRequests[r.at()], q)
		return err
	}
}

func taskTo(to *[]*signalbox.Task) func(row) error {
	return func(r row) error {
		t, err := taskOf(r[0])
		*to = append(*to, t)
		return err
	}
}

func taskOf(body []byte) (*signalbox.Task, error) {
	t, err := pack.ReadTask(body)
	return &t, err
}
