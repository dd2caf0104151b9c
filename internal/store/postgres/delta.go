package postgres

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// delta turns a verbs.Delta into statements, one for each table and kind of change. Its columns keep their
// memory from batch to batch.
type delta struct {
	insert                             insertRows
	update, end                        updateRows
	sessions, results, edited          struct{ seq, value column }
	noEnv, gone                        column
	lineDelete, lineInsert             lineRows
	turnDelete, turnInsert             turnRows
	endedDelete, endedInsert           endedRows
	slotDelete, slotUpdate, slotInsert slotRows
	counts                             countRows
	docDelete, docPut                  docRows
	requests, resultOf                 map[int64]int // by Seq: index in the Delta
	entries                            []byte
	packer                             pack.Packer
	all                                []*column
}

type insertRows struct{ seq, id, state, session, parent, key, body, request, env column }

type updateRows struct{ seq, state, body, result column }

type lineRows struct{ queue, ready, orderKey, place, seq, created, notBefore, waitUntil column }

type turnRows struct{ session, orderKey, place, seq column }

type endedRows struct{ ended, seq, agent, took column }

type slotRows struct{ agent, slot, task, fence, expires, withheld column }

type countRows struct{ kind, name, waiting, ready column }

type docRows struct{ kind, id, sort, body column }

// columns lists all columns, to clear them.
func (c *delta) columns() []*column {
	if c.all == nil {
		i, u, e := &c.insert, &c.update, &c.end
		c.all = []*column{
			&i.seq, &i.id, &i.state, &i.session, &i.parent, &i.key, &i.body, &i.request, &i.env,
			&u.seq, &u.state, &u.body, &e.seq, &e.state, &e.body, &e.result,
			&c.sessions.seq, &c.sessions.value, &c.results.seq, &c.results.value, &c.edited.seq, &c.edited.value, &c.noEnv, &c.gone,
			&c.counts.kind, &c.counts.name, &c.counts.waiting, &c.counts.ready,
		}
		for _, l := range []*lineRows{&c.lineDelete, &c.lineInsert} {
			c.all = append(c.all, &l.queue, &l.ready, &l.orderKey, &l.place, &l.seq, &l.created, &l.notBefore, &l.waitUntil)
		}
		for _, t := range []*turnRows{&c.turnDelete, &c.turnInsert} {
			c.all = append(c.all, &t.session, &t.orderKey, &t.place, &t.seq)
		}
		for _, e := range []*endedRows{&c.endedDelete, &c.endedInsert} {
			c.all = append(c.all, &e.ended, &e.seq, &e.agent, &e.took)
		}
		for _, s := range []*slotRows{&c.slotDelete, &c.slotUpdate, &c.slotInsert} {
			c.all = append(c.all, &s.agent, &s.slot, &s.task, &s.fence, &s.expires, &s.withheld)
		}
		for _, d := range []*docRows{&c.docDelete, &c.docPut} {
			c.all = append(c.all, &d.kind, &d.id, &d.sort, &d.body)
		}
	}
	return c.all
}

// write adds all of d, except its log, to x. The first statement checks and sets the moment.
func (c *delta) write(x *exchange, d *verbs.Delta) {
	for _, column := range c.columns() {
		column.clear()
	}
	f, t := &d.From, &d.To
	var upon, last []byte
	if d.Parent != nil {
		upon, last = text(d.Parent.Writer), number(d.Parent.Number)
	}
	x.do(stMetaStep, number(f.Moment), number(t.Moment), number(t.Generation), number(t.Seq), number(t.Place), number(t.Fence),
		number(t.Entry), number(t.EnqueuedMS), number(t.WokenMS), number(int64(d.InUse[0])), number(int64(d.InUse[1])), number(d.Cut),
		text(d.Writer), number(d.Number), upon, last)
	c.index(d)
	for n := range d.Tasks {
		c.task(d, &d.Tasks[n])
	}
	c.leftovers(d)
	c.sendTasks(x)
	c.sendLists(x)
	c.slots(x, d)
	c.count(x, d)
	c.docs(x, d)
	c.journal(x, d)
}

// index maps Seqs to the requests and results.
func (c *delta) index(d *verbs.Delta) {
	if c.requests == nil {
		c.requests, c.resultOf = map[int64]int{}, map[int64]int{}
	}
	clear(c.requests)
	clear(c.resultOf)
	for n := range d.Requests {
		c.requests[d.Requests[n].Seq] = n
	}
	for n := range d.Results {
		c.resultOf[d.Results[n].Seq] = n
	}
}

// task adds one change to the columns.
func (c *delta) task(d *verbs.Delta, change *verbs.TaskChange) {
	before, after := change.Before, change.After
	switch {
	case before == nil:
		c.insertTask(d, after)
	case after == nil:
		c.gone.int8(before.Seq)
		delete(c.resultOf, before.Seq)
	default:
		c.updateTask(d, before, after)
	}
	c.moveLine(before, after)
	c.moveTurn(before, after)
	c.moveEnded(before, after)
}

func (c *delta) insertTask(d *verbs.Delta, t *signalbox.Task) {
	i := &c.insert
	i.seq.int8(t.Seq)
	i.id.text(t.ID)
	i.state.int2(stateNumber(t.State))
	i.session.some(t.SessionID)
	i.parent.some(t.ParentID)
	i.key.some(t.IdempotencyKey)
	i.body.fill(func(b []byte) []byte { return pack.Task(b, t) })
	n, asked := c.requests[t.Seq]
	if !asked {
		i.request.null()
		i.env.null()
		return
	}
	r := &d.Requests[n].Request
	i.request.fill(func(b []byte) []byte { return pack.RequestRow(b, r) })
	if t.State.Terminal() || len(r.SealedEnv) == 0 {
		i.env.null()
		return
	}
	i.env.bytes(r.SealedEnv)
}

func (c *delta) updateTask(d *verbs.Delta, before, after *signalbox.Task) {
	u := &c.update
	n, left := c.resultOf[after.Seq]
	if left {
		u = &c.end
		u.result.fill(func(b []byte) []byte { return pack.ResultRow(b, &d.Results[n].Result) })
		delete(c.resultOf, after.Seq)
	}
	u.seq.int8(after.Seq)
	u.state.int2(stateNumber(after.State))
	u.body.fill(func(b []byte) []byte { return pack.Task(b, after) })
	if before.SessionID != after.SessionID {
		c.sessions.seq.int8(after.Seq)
		c.sessions.value.some(after.SessionID)
	}
	if n, edited := c.requests[after.Seq]; edited {
		c.edited.seq.int8(after.Seq)
		c.edited.value.fill(func(b []byte) []byte { return pack.RequestRow(b, &d.Requests[n].Request) })
	}
	if before.HasEnv && after.State.Terminal() && !before.State.Terminal() {
		c.noEnv.int8(after.Seq)
	}
}

// leftovers adds results of tasks that did not change or are new.
func (c *delta) leftovers(d *verbs.Delta) {
	for seq, n := range c.resultOf {
		c.results.seq.int8(seq)
		c.results.value.fill(func(b []byte) []byte { return pack.ResultRow(b, &d.Results[n].Result) })
	}
}

func (c *delta) sendTasks(x *exchange) {
	if c.gone.n > 0 {
		x.do(stTaskDelete, c.gone.array(oidInt8))
	}
	if i := &c.insert; i.seq.n > 0 {
		x.do(stTaskInsert, i.seq.array(oidInt8), i.id.array(oidBytea), i.state.array(oidInt2), i.session.array(oidBytea),
			i.parent.array(oidBytea), i.key.array(oidBytea), i.body.array(oidBytea), i.request.array(oidBytea), i.env.array(oidBytea))
	}
	if u := &c.update; u.seq.n > 0 {
		x.do(stTaskUpdate, u.seq.array(oidInt8), u.state.array(oidInt2), u.body.array(oidBytea))
	}
	if e := &c.end; e.seq.n > 0 {
		x.do(stTaskEnd, e.seq.array(oidInt8), e.state.array(oidInt2), e.body.array(oidBytea), e.result.array(oidBytea))
	}
	if s := &c.sessions; s.seq.n > 0 {
		x.do(stTaskSession, s.seq.array(oidInt8), s.value.array(oidBytea))
	}
	if r := &c.edited; r.seq.n > 0 {
		x.do(stRequestPut, r.seq.array(oidInt8), r.value.array(oidBytea))
	}
	if c.noEnv.n > 0 {
		x.do(stTaskNoEnv, c.noEnv.array(oidInt8))
	}
	if r := &c.results; r.seq.n > 0 {
		x.do(stResultPut, r.seq.array(oidInt8), r.value.array(oidBytea))
	}
}

// The states by their number in rows: those in flight are 2 to 4.
var stateNumbers = map[signalbox.State]int{
	signalbox.Pending: 1, signalbox.Dispatching: 2, signalbox.Working: 3, signalbox.Cancelling: 4,
	signalbox.Completed: 5, signalbox.Failed: 6, signalbox.Cancelled: 7, signalbox.Timeout: 8,
	signalbox.Parked: 9,
}

func stateNumber(s signalbox.State) int { return stateNumbers[s] }
