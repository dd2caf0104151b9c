package verbs

import (
	"context"
	"errors"

	"github.com/signalbox-ai/signalbox"
)

// A server can lose acknowledged data: Redis its last second, a database that fails over to a lagging
// standby. Then the counters, and the number of this process's last batch, have decreased.
//
// Lost data cannot be recovered. But the numbers given since must never be given again, or
// an old execution would pass for a new one. So the first process to notice raises all
// counters far above what it knows, and starts a new generation, which tells the other
// directors.

// ledger is the state that the backend must not fall behind.
type ledger struct {
	confirmed int64    // number of the newest batch known to be stored
	seen      Counters // the newest counters
	sent      Counters // those of the last sealed batch
}

// errLost: the backend has lost acknowledged data.
var errLost = errors.New("the server lost what it had acknowledged")

// generationGap is how far above the known counters a new generation starts: more than any
// living process can be ahead.
const generationGap = 1_000_000

// loadFirst loads the counters when the store is opened.
func (w *writer) loadFirst(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.store.opts.Patience)
	defer cancel()
	l, err := w.store.backend.Load(ctx, &Want{Writer: w.store.opts.Writer})
	if err != nil {
		return refusal(err)
	}
	w.recordSeen(l)
	w.number, w.ledger.confirmed = l.Number, l.Number
	return nil
}

func (w *writer) recordSeen(l *Loaded) {
	w.ledger.seen = l.Counters
	w.ledger.seen.Generation = max(1, l.Generation)
	w.store.generation.Store(w.ledger.seen.Generation)
}

// check compares what was loaded with what was acknowledged.
func (w *writer) check(l *Loaded) error {
	if w.store.shared == nil {
		return nil // no other process writes to it
	}
	if w.behind(l) {
		return errLost
	}
	if l.Generation > w.ledger.seen.Generation {
		w.store.log.Warn("the server lost acknowledged data, as another process found: a new generation has begun",
			"generation", l.Generation)
		w.ledger.confirmed = l.Number
		w.set.requests = requests{} // their Seqs may now belong to other tasks
	}
	w.recordSeen(l)
	return nil
}

// behind reports whether the backend has less than it acknowledged. In a new generation
// only the counters count: the process that started it may have known less than this one.
func (w *writer) behind(l *Loaded) bool {
	s, generation := &w.ledger.seen, max(1, l.Generation)
	if l.Seq < s.Seq || l.Place < s.Place || l.Fence < s.Fence || l.Entry < s.Entry || generation < s.Generation {
		return true
	}
	return generation == s.Generation && (l.Moment < s.Moment || l.Number < w.ledger.confirmed)
}

// beginGeneration starts a new generation, unless another process has.
func (w *writer) beginGeneration() error {
	ctx, cancel := w.call()
	defer cancel()
	l, err := w.store.shared.Lock(ctx, &Want{Writer: w.store.opts.Writer, InUse: true})
	if err != nil {
		return err
	}
	w.sharing.lock = locked
	defer w.sharing.unlock()
	if !w.behind(l) {
		return nil
	}
	d := &Delta{Writer: w.store.opts.Writer, From: l.Counters, To: w.raisedCounters(l), InUse: l.InUse}
	w.number++
	d.Number = w.number
	err = w.store.backend.Commit(ctx, d)
	if err != nil {
		if errors.Is(err, ErrUnknown) {
			return errLost // the next load shows whether it was stored
		}
		return err
	}
	w.store.log.Error(w.lossMessage(l)+"; "+
		"agents may be at work on tasks that the store knows nothing of, or has as waiting. A new generation begins, whose fences lie above all that were given; "+
		"look at what the server promises (signalbox doctor)",
		"generation", d.To.Generation,
		"batches_of_this_process_known", w.ledger.confirmed, "stored", l.Number,
		"newest_event_known", w.ledger.seen.Entry, "newest_event_stored", l.Entry,
		"newest_fence_known", w.ledger.seen.Fence, "newest_fence_stored", l.Fence)
	w.ledger.confirmed, w.ledger.seen = w.number, d.To
	w.set.requests = requests{}
	w.store.generation.Store(d.To.Generation)
	return nil
}

// lossMessage says what a server lost. What this process only read may not have been
// acknowledged: a PostgreSQL that is shutting down stops waiting for its standby, and for a
// moment shows commits that exist nowhere else.
func (w *writer) lossMessage(l *Loaded) string {
	if l.Number < w.ledger.confirmed {
		return "THE SERVER LOST WHAT IT HAD ACKNOWLEDGED: the newest tasks, ends and events are not there any more"
	}
	return "THE SERVER LOST WHAT IT HAD SHOWN: what other processes wrote last is not there any more, acknowledged or not"
}

// raisedCounters are the counters of a new generation.
func (w *writer) raisedCounters(l *Loaded) Counters {
	to, s := l.Counters, &w.ledger.seen
	to.Moment = nextMoment(max(to.Moment, s.Moment))
	to.Generation = max(1, to.Generation, s.Generation) + 1
	to.Seq = max(to.Seq, s.Seq) + generationGap
	to.Place = max(to.Place, s.Place) + generationGap
	to.Fence = max(to.Fence, s.Fence) + generationGap
	to.Entry = max(to.Entry, s.Entry) + generationGap
	to.EnqueuedMS = max(to.EnqueuedMS, s.EnqueuedMS)
	return to
}

// nextRev is the revision after a change. In a later generation it is above all earlier
// ones: a change made from a lost row matches no current row.
func (x *workingSet) nextRev(t *signalbox.Task) int64 {
	return max(t.Rev, (x.Generation-1)*generationGap) + 1
}
