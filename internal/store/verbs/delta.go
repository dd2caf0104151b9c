package verbs

import (
	"math/rand/v2"

	"github.com/signalbox-ai/signalbox"
)

// needs wants what must be known before the batch can be written, once all of its verbs have run: the counts
// that it changed, and the requests of claimed tasks.
func (x *workingSet) needs() {
	for _, c := range x.changedQueues {
		if !c.known {
			x.want.queue(c.queue)
		}
	}
	for _, c := range x.changedCounters {
		x.wantCounter(c)
	}
	for _, c := range x.changedLimits {
		if !c.known {
			x.want.limit(c.limit)
		}
	}
	open := x.claims[:0]
	for _, v := range x.claims {
		if r := x.requestOf(v.row); r != nil {
			v.got.Request = *r
			continue
		}
		seq := v.got.Task.Seq
		if _, looked := x.fetched[seq]; looked {
			continue // there is no request: it stays empty
		}
		open = append(open, v)
		if !v.asked {
			v.asked = true
			x.want.request(seq)
		}
	}
	clear(x.claims[len(open):])
	x.claims = open
}

func (x *workingSet) requestOf(r *row) *signalbox.Request {
	if r.request != nil {
		return r.request
	}
	q := x.fetched[r.task.Seq]
	if q == nil && r.task.EditedAt.IsZero() {
		q = x.requests.get(r.task.Seq)
	}
	return q
}

// momentStep bounds how far a batch advances the moment. The step is random: a server that
// lost batches and continued does not reach a known moment again.
const momentStep = 1 << 16

func nextMoment(after int64) int64 { return after + 1 + rand.Int64N(momentStep) } //nolint:gosec // no secret

// delta fills d with the changes of the batch, with a log if other processes follow.
func (x *workingSet) delta(d *Delta, writer string, number int64, followed bool) {
	x.Moment = nextMoment(x.stored.Moment)
	x.Generation = max(1, x.Generation)
	d.clear()
	d.Writer, d.Number, d.From, d.To = writer, number, x.stored, x.Counters
	d.InUse, d.Cut = x.inUse, x.journalCut
	d.Entries, x.entries = x.entries, d.Entries // swap buffers: d.Entries is empty
	for _, r := range x.changed {
		d.task(r)
	}
	for _, c := range x.changedQueues {
		d.Queues = append(d.Queues, QueueChange{c.queue, c.QueueCount})
	}
	for _, c := range x.changedCounters {
		x.putCounter(c)
	}
	for _, c := range x.changedLimits {
		d.Limits = append(d.Limits, LimitChange{c.limit, c.n})
	}
	for _, s := range x.slots {
		if s.slot != s.before {
			d.Slots = append(d.Slots, SlotChange{Agent: s.agent, Slot: s.n, Before: s.before, After: s.slot})
		}
	}
	for _, r := range x.docs.changed {
		d.Docs = append(d.Docs, r.doc)
	}
	if followed {
		d.Log = x.log(d)
	}
}

func (d *Delta) task(r *row) {
	if r.before == nil && r.draft.task == nil && r.task == nil {
		return
	}
	d.Tasks = append(d.Tasks, TaskChange{Before: r.before, Drafted: r.draft.task, After: r.task})
	if r.task == nil {
		return
	}
	if r.request != nil && r.request != r.draft.request {
		q := RequestRow{Seq: r.task.Seq, Request: *r.request}
		if stored := r.before != nil || r.draft.task != nil; stored || r.task.State.Terminal() {
			q.Request.SealedEnv = nil
		}
		d.Requests = append(d.Requests, q)
	}
	if r.result != nil && r.result != r.draft.result {
		d.Results = append(d.Results, ResultRow{Seq: r.task.Seq, Result: *r.result})
	}
}

// Drafting is a Backend that can write rows of a batch while more verbs are arriving, to use the time in
// which callers send their next ones.
//
// Between a Draft and the Commit of its batch the writer calls only Draft or Undraft.
type Drafting interface {
	Backend

	// Draft writes the tasks, requests and results of d, invisible and not durable before
	// the Commit of the batch, whose TaskChanges name what was drafted. Errors are returned
	// by that Commit. It must not retain d.
	Draft(d *Delta)
	// Undraft discards drafts. It is a no-op without any.
	Undraft()
}

// draft is the drafted state of a row.
type draft struct {
	task    *signalbox.Task
	request *signalbox.Request
	result  *signalbox.Result
}

// draft drafts the changes so far, if more verbs are expected and the backend is idle.
func (w *writer) draft() {
	x := &w.set
	if w.store.drafting == nil || w.exclusive.pipeline.stage == inFlight {
		return
	}
	if (len(w.batch.Jobs) >= w.callers || w.batch.Full()) && !w.store.opts.drafts {
		return
	}
	if x.needs(); x.want.any || x.drafted == len(x.changed) {
		return
	}
	d := &w.drafts
	d.clear()
	for _, r := range x.changed[x.drafted:] {
		if r.task != nil {
			d.task(r)
			r.draft = draft{r.task, r.request, r.result}
		}
	}
	x.drafted = len(x.changed)
	w.store.drafting.Draft(d)
}

// undraft discards drafts: the batch is retried, or needs a load, for which the backend
// must read what is stored.
func (w *writer) undraft() {
	x := &w.set
	if x.drafted == 0 {
		return
	}
	for _, r := range x.changed[:x.drafted] {
		r.draft = draft{}
	}
	x.drafted = 0
	w.store.drafting.Undraft()
}
