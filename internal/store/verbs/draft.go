package verbs

import "github.com/signalbox-ai/signalbox"

// Drafting is a Backend that can write rows of a batch while more verbs are on
// their way to it: so the time in which callers come back is not lost.
//
// Between a Draft and the Commit of its batch the writer calls nothing but Draft,
// or Undraft.
type Drafting interface {
	Backend

	// Draft writes the tasks, requests and results of d, which nobody sees and
	// which are not durable before the batch is. What goes wrong is the answer to
	// its Commit, whose TaskChanges say what was drafted. Nothing of d is kept.
	Draft(d *Delta)
	// Undraft takes back what was drafted. It does no harm where nothing was.
	Undraft()
}

// draft is what of a row was drafted.
type draft struct {
	task   *signalbox.Task
	result *signalbox.Result
}

// draft writes what the batch changed so far, if more verbs are expected and the
// backend has nothing else to do.
func (w *writer) draft() {
	x := &w.set
	if w.store.drafting == nil || w.alone.pipeline.stage == inFlight {
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
			r.draft = draft{r.task, r.result}
		}
	}
	x.drafted = len(x.changed)
	w.store.drafting.Draft(d)
}

// undraft takes back what was drafted: the batch is done anew, or needs to know
// more, and the backend reads what is stored.
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
