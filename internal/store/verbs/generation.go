package verbs

import (
	"context"
	"errors"

	"github.com/signalbox-ai/signalbox"
)

// A server can lose what it has acknowledged: Redis its last second, a
// database that fails over to a standby which lags behind. It shows in the
// counters, and in the number of this process's last batch: they went back.
//
// What is lost is lost. But the numbers that were given since must never be
// given again, or an execution of then would pass for one of now. So whoever
// finds out raises all counters far above what it knows, and begins a new
// generation, by which the other directors learn of it.

// ledger is what the backend may not go back behind.
type ledger struct {
	confirmed int64    // the number of the newest batch that is known to be stored
	seen      Counters // the newest counters
	sent      Counters // those of the batch that was sealed last
}

// errLost says that the backend has not all that it acknowledged.
var errLost = errors.New("the server lost what it had acknowledged")

// raise is how far above what is known the counters go on. What nobody knows
// who lives is less than that.
const raise = 1_000_000

// first loads the counters as the store is opened.
func (w *writer) first(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.store.opts.Patience)
	defer cancel()
	l, err := w.store.backend.Load(ctx, &Want{Writer: w.store.opts.Writer})
	if err != nil {
		return refusal(err)
	}
	w.saw(l)
	w.number, w.ledger.confirmed = l.Number, l.Number
	return nil
}

func (w *writer) saw(l *Loaded) {
	w.ledger.seen = l.Counters
	w.ledger.seen.Generation = max(1, l.Generation)
	w.store.generation.Store(w.ledger.seen.Generation)
}

// check compares what was loaded with what was acknowledged.
func (w *writer) check(l *Loaded) error {
	if w.store.shared == nil {
		return nil // nobody else wrote what this process reads
	}
	if w.behind(l) {
		return errLost
	}
	if l.Generation > w.ledger.seen.Generation {
		w.store.log.Warn("the server lost what it had acknowledged, as another process found: a new generation has begun",
			"generation", l.Generation)
		w.ledger.confirmed = l.Number
		w.set.requests = requests{} // their numbers may be those of other tasks by now
	}
	w.saw(l)
	return nil
}

// behind reports whether the backend knows less than it acknowledged. In a new
// generation the counters alone tell: whoever began it may have known less
// than this process.
func (w *writer) behind(l *Loaded) bool {
	s, generation := &w.ledger.seen, max(1, l.Generation)
	if l.Seq < s.Seq || l.Place < s.Place || l.Fence < s.Fence || l.Entry < s.Entry || generation < s.Generation {
		return true
	}
	return generation == s.Generation && (l.Moment < s.Moment || l.Number < w.ledger.confirmed)
}

// beginAnew begins a new generation, unless another process has.
func (w *writer) beginAnew() error {
	ctx, cancel := w.call()
	defer cancel()
	l, err := w.store.shared.Lock(ctx, &Want{Writer: w.store.opts.Writer, InUse: true})
	if err != nil {
		return err
	}
	w.among.lock = locked
	defer w.among.unlock()
	if !w.behind(l) {
		return nil
	}
	d := &Delta{Writer: w.store.opts.Writer, From: l.Counters, To: w.raised(l), InUse: l.InUse}
	w.number++
	d.Number = w.number
	err = w.store.backend.Commit(ctx, d)
	if err != nil {
		if errors.Is(err, ErrUnknown) {
			return errLost // the next look tells
		}
		return err
	}
	w.store.log.Error(w.whatIsGone(l)+"; "+
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

// whatIsGone says what a server lost. Of what this process only read it is not
// known that it was acknowledged: a PostgreSQL that dies stops waiting for its
// standby, and for a moment shows commits that are nowhere but there.
func (w *writer) whatIsGone(l *Loaded) string {
	if l.Number < w.ledger.confirmed {
		return "THE SERVER LOST WHAT IT HAD ACKNOWLEDGED: the newest tasks, ends and events are not there any more"
	}
	return "THE SERVER LOST WHAT IT HAD SHOWN: what other processes wrote last is not there any more, acknowledged or not"
}

// raised are the counters of a new generation.
func (w *writer) raised(l *Loaded) Counters {
	to, s := l.Counters, &w.ledger.seen
	to.Moment = nextMoment(max(to.Moment, s.Moment))
	to.Generation = max(1, to.Generation, s.Generation) + 1
	to.Seq = max(to.Seq, s.Seq) + raise
	to.Place = max(to.Place, s.Place) + raise
	to.Fence = max(to.Fence, s.Fence) + raise
	to.Entry = max(to.Entry, s.Entry) + raise
	to.EnqueuedMS = max(to.EnqueuedMS, s.EnqueuedMS)
	return to
}

// nextRev is the revision after a change. In a later generation it lies above
// all of those before: a change that was made from a row which the server lost
// fits no row of now.
func (x *workingSet) nextRev(t *signalbox.Task) int64 {
	return max(t.Rev, (x.Generation-1)*raise) + 1
}
