package verbs

import "github.com/signalbox-ai/signalbox"

// Drafting is a Backend that can write rows of a batch while more verbs are arriving, to
// use the time in which callers come back.
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

// draft is what was drafted of a row.
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
