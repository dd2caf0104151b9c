package verbs

import (
	"encoding/binary"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// A log says what a batch changed, so that another process need not forget what
// it knows: it follows (follow.go). It is written only where others write, too.
//
// It has the moments that it leads from and to, 8 bytes each; then, packed, the
// counts of queues and limits after it, the tasks, slots and docs, what was
// asked for of new tasks, and the counters. Who knows less than that ignores
// what follows.

// logMost bounds a log. What is larger is not worth it: others load what they
// need.
const logMost = 256 << 10

// log packs what a delta changes; nil if that is too much.
func (x *workingSet) log(d *Delta) []byte {
	b := binary.BigEndian.AppendUint64(x.logged[:0], uint64(d.From.Moment)) //nolint:gosec // never negative
	b = binary.BigEndian.AppendUint64(b, uint64(d.To.Moment))               //nolint:gosec // never negative
	p := pack.Append(b)
	p.Int(int64(len(d.Queues)))
	for i := range d.Queues {
		p.Texts(d.Queues[i].Queue)
		p.Ints(int64(d.Queues[i].Waiting), int64(d.Queues[i].Ready))
	}
	p.Int(int64(len(d.Limits)))
	for i := range d.Limits {
		p.Texts(d.Limits[i].Limit)
		p.Int(int64(d.Limits[i].N))
	}
	x.logTasks(&p, d)
	logSlots(&p, d)
	logDocs(&p, d)
	logRequests(&p, d)
	t := &d.To
	p.Ints(t.Generation, t.Seq, t.Place, t.Fence, t.Entry, t.EnqueuedMS, t.WokenMS, int64(d.InUse[0]), int64(d.InUse[1]))
	x.logged = p.Packed()
	if len(x.logged) > logMost {
		return nil
	}
	return x.logged
}

// matters reports whether a set may be wrong without knowing where a task stands.
func matters(t *signalbox.Task) bool {
	return t.State == signalbox.Pending || (t.SessionID != "" && !t.State.Terminal())
}

// logTasks leads each task by what tells whether a set needs it: most do not
// need most, and reading a whole one takes longer than all else. One that runs
// or has ended is left out but for that, unless it is a turn of a session: who
// has it under way knows it, and others forget it.
func (x *workingSet) logTasks(p *pack.Packer, d *Delta) {
	p.Int(int64(len(d.Tasks)))
	for i := range d.Tasks {
		c := &d.Tasks[i]
		p.Bool(c.After != nil)
		if c.After == nil {
			p.Int(c.Before.Seq)
			continue
		}
		t := c.After
		p.Int(t.Seq)
		p.Flags(t.State == signalbox.Pending, t.Ready, t.State.Terminal(), matters(t))
		if !matters(t) {
			continue
		}
		p.Texts(t.Queue, t.SessionID)
		p.Ints(t.OrderKey(), t.Place)
		x.scratch = pack.Task(x.scratch[:0], t)
		p.Bytes(x.scratch)
	}
}

func logSlots(p *pack.Packer, d *Delta) {
	p.Int(int64(len(d.Slots)))
	for i := range d.Slots {
		c := &d.Slots[i]
		p.Texts(c.Agent)
		p.Int(int64(c.Slot))
		p.Bool(c.After != nil)
		if s := c.After; s != nil {
			p.Texts(s.TaskID)
			p.Int(s.Fence)
			p.Times(s.Expires)
			p.Bool(s.Withheld)
		}
	}
}

// requestMost bounds what was asked for of a task in a log: most of the others
// do not claim it.
const requestMost = 2 << 10

// logRequests lists what was asked for of new tasks, where that is little: whoever
// claims one need not read it. Secrets are left out, which go when their task
// ends, and a log may stay.
func logRequests(p *pack.Packer, d *Delta) {
	for i := range d.Requests {
		if r := &d.Requests[i].Request; sizeOf(r) <= requestMost && len(r.SealedEnv) == 0 {
			p.Int(d.Requests[i].Seq)
			p.Texts(r.Prompt)
			p.Bytes(pack.Request(r))
		}
	}
	p.Int(0)
}

// logDocs leaves out what no set keeps.
func logDocs(p *pack.Packer, d *Delta) {
	n := int64(0)
	for i := range d.Docs {
		if kept(d.Docs[i].Kind) {
			n++
		}
	}
	p.Int(n)
	for i := range d.Docs {
		doc := &d.Docs[i]
		if !kept(doc.Kind) {
			continue
		}
		p.Texts(doc.Kind, doc.ID)
		p.Int(doc.Sort)
		p.Bool(doc.Body != nil)
		p.Bytes(doc.Body)
	}
}

// kept reports whether the set keeps docs of a kind from batch to batch.
func kept(kind string) bool { return kind != kindAudit && kind != KindStale }
