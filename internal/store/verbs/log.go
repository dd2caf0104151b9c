package verbs

import (
	"encoding/binary"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// A log is the changes of a batch, for other processes to follow (follow.go). It is written
// only if there are other writers.
//
// It starts with the moments from and to, 8 bytes each; then, packed, the counts of queues
// and limits after it, the tasks, slots and docs, the requests of new tasks, and the
// counters. Older readers ignore what follows after what they know.

// maxLogBytes bounds a log. For larger changes, others load what they need.
const maxLogBytes = 256 << 10

// log packs what a delta changes; nil if that is too much.
func (x *workingSet) log(d *Delta) []byte {
	b := binary.BigEndian.AppendUint64(x.logBuf[:0], uint64(d.From.Moment)) //nolint:gosec // never negative
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
	x.logBuf = p.Packed()
	if len(x.logBuf) > maxLogBytes {
		return nil
	}
	return x.logBuf
}

// relevant reports whether a set may need to know the position of a task.
func relevant(t *signalbox.Task) bool {
	return t.State.Waiting() || (t.SessionID != "" && !t.State.Terminal())
}

// logTasks writes before each task what a set needs to decide whether it needs the task: most are not needed,
// and decoding a task is expensive. Tasks that run or have ended are omitted unless they are turns of a
// session: the process that follows one already knows it, and others drop it.
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
		p.Flags(t.State.Waiting(), t.Ready, t.State.Terminal(), relevant(t))
		if !relevant(t) {
			continue
		}
		p.Texts(t.Queue, t.SessionID)
		p.Ints(t.OrderKey(), t.Place)
		x.taskBuf = pack.Task(x.taskBuf[:0], t)
		p.Bytes(x.taskBuf)
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

// maxLoggedRequest bounds a request in a log, in bytes: most readers do not claim its task.
const maxLoggedRequest = 2 << 10

// logRequests adds small requests of new tasks, so that a claim need not read them. Secrets
// are left out: they must be erased when their task ends, and a log may be kept longer.
func logRequests(p *pack.Packer, d *Delta) {
	for i := range d.Requests {
		if r := &d.Requests[i].Request; sizeOf(r) <= maxLoggedRequest && len(r.SealedEnv) == 0 {
			p.Int(d.Requests[i].Seq)
			p.Texts(r.Prompt)
			p.Bytes(pack.Request(r))
		}
	}
	p.Int(0)
}

// logDocs omits docs that sets do not cache.
func logDocs(p *pack.Packer, d *Delta) {
	n := int64(0)
	for i := range d.Docs {
		if cached(d.Docs[i].Kind) {
			n++
		}
	}
	p.Int(n)
	for i := range d.Docs {
		doc := &d.Docs[i]
		if !cached(doc.Kind) {
			continue
		}
		p.Texts(doc.Kind, doc.ID)
		p.Int(doc.Sort)
		p.Bool(doc.Body != nil)
		p.Bytes(doc.Body)
	}
}

// cached reports whether the set keeps docs of a kind between batches.
func cached(kind string) bool { return kind != kindAudit && kind != KindStale }
