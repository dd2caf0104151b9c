package postgres

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// moveLine removes a task from its queue's rows in line, or adds it.
func (c *delta) moveLine(before, after *signalbox.Task) {
	was := before != nil && before.State.Waiting()
	is := after != nil && after.State.Waiting()
	if was && is && sameLine(before, after) {
		return
	}
	if was {
		l := &c.lineDelete
		l.queue.text(before.Queue)
		l.ready.bool(before.Ready)
		l.orderKey.int8(before.OrderKey())
		l.place.int8(before.Place)
	}
	if is {
		l := &c.lineInsert
		l.queue.text(after.Queue)
		l.ready.bool(after.Ready)
		l.orderKey.int8(after.OrderKey())
		l.place.int8(after.Place)
		l.seq.int8(after.Seq)
		l.created.int8(after.CreatedAt.UnixMilli())
		l.notBefore.time(after.NotBefore)
		l.waitUntil.time(after.WaitUntil)
	}
}

func sameLine(a, b *signalbox.Task) bool {
	return a.Queue == b.Queue && a.Ready == b.Ready && a.OrderKey() == b.OrderKey() && a.Place == b.Place &&
		a.CreatedAt.Equal(b.CreatedAt) && a.NotBefore.Equal(b.NotBefore) && a.WaitUntil.Equal(b.WaitUntil)
}

// moveTurn does the same for turns.
func (c *delta) moveTurn(before, after *signalbox.Task) {
	was, is := inTurn(before), inTurn(after)
	if was && is && before.SessionID == after.SessionID && before.OrderKey() == after.OrderKey() && before.Place == after.Place {
		return
	}
	if was {
		c.turnDelete.session.text(before.SessionID)
		c.turnDelete.orderKey.int8(before.OrderKey())
		c.turnDelete.place.int8(before.Place)
	}
	if is {
		c.turnInsert.session.text(after.SessionID)
		c.turnInsert.orderKey.int8(after.OrderKey())
		c.turnInsert.place.int8(after.Place)
		c.turnInsert.seq.int8(after.Seq)
	}
}

func inTurn(t *signalbox.Task) bool { return t != nil && t.SessionID != "" && !t.State.Terminal() }

// moveEnded does the same for ended.
func (c *delta) moveEnded(before, after *signalbox.Task) {
	was := before != nil && before.State.Terminal()
	is := after != nil && after.State.Terminal()
	if was && is && before.EndedAt.Equal(after.EndedAt) && before.Agent == after.Agent && before.State == after.State &&
		before.StartedAt.Equal(after.StartedAt) {
		return
	}
	if was {
		c.endedDelete.ended.int8(before.EndedAt.UnixMilli())
		c.endedDelete.seq.int8(before.Seq)
	}
	if is {
		e := &c.endedInsert
		e.ended.int8(after.EndedAt.UnixMilli())
		e.seq.int8(after.Seq)
		e.agent.text(after.Agent)
		if after.State == signalbox.Completed {
			e.took.int8(max(0, after.EndedAt.Sub(after.StartedAt)).Milliseconds())
		} else {
			e.took.null()
		}
	}
}

// sendLists sends removals before additions, since a row may have both.
func (c *delta) sendLists(x *exchange) {
	if l := &c.lineDelete; l.queue.n > 0 {
		x.do(stLineDelete, l.queue.array(oidBytea), l.ready.array(oidBool), l.orderKey.array(oidInt8), l.place.array(oidInt8))
	}
	if l := &c.lineInsert; l.queue.n > 0 {
		x.do(stLineInsert, l.queue.array(oidBytea), l.ready.array(oidBool), l.orderKey.array(oidInt8), l.place.array(oidInt8),
			l.seq.array(oidInt8), l.created.array(oidInt8), l.notBefore.array(oidInt8), l.waitUntil.array(oidInt8))
	}
	if t := &c.turnDelete; t.session.n > 0 {
		x.do(stTurnDelete, t.session.array(oidBytea), t.orderKey.array(oidInt8), t.place.array(oidInt8))
	}
	if t := &c.turnInsert; t.session.n > 0 {
		x.do(stTurnInsert, t.session.array(oidBytea), t.orderKey.array(oidInt8), t.place.array(oidInt8), t.seq.array(oidInt8))
	}
	if e := &c.endedDelete; e.seq.n > 0 {
		x.do(stEndedDelete, e.ended.array(oidInt8), e.seq.array(oidInt8))
	}
	if e := &c.endedInsert; e.seq.n > 0 {
		x.do(stEndedInsert, e.ended.array(oidInt8), e.seq.array(oidInt8), e.agent.array(oidBytea), e.took.array(oidInt8))
	}
}

func (c *delta) slots(x *exchange, d *verbs.Delta) {
	for n := range d.Slots {
		change := &d.Slots[n]
		if change.After == nil {
			c.slotDelete.agent.text(change.Agent)
			c.slotDelete.slot.int8(int64(change.Slot))
			continue
		}
		s, p := change.After, &c.slotUpdate
		if change.Before == nil {
			p = &c.slotInsert
		}
		p.agent.text(change.Agent)
		p.slot.int8(int64(change.Slot))
		p.task.text(s.TaskID)
		p.fence.int8(s.Fence)
		p.expires.time(s.Expires)
		p.withheld.bool(s.Withheld)
	}
	if s := &c.slotDelete; s.agent.n > 0 {
		x.do(stSlotDelete, s.agent.array(oidBytea), s.slot.array(oidInt8))
	}
	if c.slotUpdate.agent.n > 0 {
		x.do(stSlotUpdate, c.slotUpdate.params()...)
	}
	if c.slotInsert.agent.n > 0 {
		x.do(stSlotInsert, c.slotInsert.params()...)
	}
}

func (r *slotRows) params() [][]byte {
	return [][]byte{
		r.agent.array(oidBytea), r.slot.array(oidInt8), r.task.array(oidBytea), r.fence.array(oidInt8), r.expires.array(oidInt8),
		r.withheld.array(oidBool),
	}
}

// Kinds of counts.
const (
	countQueue = 1
	countLimit = 2
)

func (c *delta) count(x *exchange, d *verbs.Delta) {
	r := &c.counts
	for _, q := range d.Queues {
		r.kind.int2(countQueue)
		r.name.text(q.Queue)
		r.waiting.int8(int64(q.Waiting))
		r.ready.int8(int64(q.Ready))
	}
	for _, l := range d.Limits {
		r.kind.int2(countLimit)
		r.name.text(l.Limit)
		r.waiting.int8(int64(l.N))
		r.ready.int8(0)
	}
	if r.kind.n > 0 {
		x.do(stCountPut, r.kind.array(oidInt2), r.name.array(oidBytea), r.waiting.array(oidInt8), r.ready.array(oidInt8))
	}
	if c.gone.n > 0 {
		x.do(stCountSweep)
	}
}

func (c *delta) docs(x *exchange, d *verbs.Delta) {
	for n := range d.Docs {
		doc := &d.Docs[n]
		rows := &c.docPut
		if doc.Body == nil {
			rows = &c.docDelete
		}
		rows.kind.text(doc.Kind)
		rows.id.text(doc.ID)
		rows.sort.int8(doc.Sort)
		rows.body.bytes(doc.Body)
	}
	if r := &c.docDelete; r.kind.n > 0 {
		x.do(stDocDelete, r.kind.array(oidBytea), r.id.array(oidBytea))
	}
	if r := &c.docPut; r.kind.n > 0 {
		x.do(stDocPut, r.kind.array(oidBytea), r.id.array(oidBytea), r.sort.array(oidInt8), r.body.array(oidBytea))
	}
}

func (c *delta) journal(x *exchange, d *verbs.Delta) {
	if d.Cut > 0 {
		x.do(stJournalDelete, number(d.Cut))
	}
	if len(d.Entries) == 0 {
		return
	}
	c.entries = c.entries[:0]
	newest := d.Entries[0].At.UnixMilli()
	for n := range d.Entries {
		c.entries = c.packer.Entry(c.entries, &d.Entries[n])
		newest = max(newest, d.Entries[n].At.UnixMilli())
	}
	last := d.To.Entry
	first := last - int64(len(d.Entries)) + 1
	x.do(stJournalInsert, number(last), number(first), number(newest), text(d.Writer), c.entries)
}
