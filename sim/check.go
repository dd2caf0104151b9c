package sim

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/invariant"
)

// ledger is what is known of the tasks beside the store: from its journal, which
// tells of each change, and from those who made the changes.
type ledger struct {
	seq    int64 // of the newest entry that was looked at
	ended  map[string]signalbox.EventKind
	unsent map[string]int
	top    int64 // the highest fence that was given
	fleet  int
	// dubious are the fences of executions that an agent without fences may be
	// taken at its word for, or against: a clock had jumped when they were claimed,
	// or their slot was freed by hand.
	dubious map[int64]bool
	dirty   bool // something was written since the last look
}

// maxUnsent is how often a claim may end without any answer before its task does
// (design §2).
const maxUnsent = 10

func (l *ledger) init() {
	l.ended, l.unsent, l.dubious = map[string]signalbox.EventKind{}, map[string]int{}, map[int64]bool{}
}

// check looks whether the invariants of the design (§4) hold after a step in
// which something was stored.
func (w *world) check() {
	if !w.book.dirty {
		return
	}
	w.book.dirty = false
	ctx := context.Background()
	if err := invariant.Check(ctx, w.store); err != nil {
		w.fail("the store: %v", err)
	}
	w.readJournal(ctx)
	w.covered(ctx)
}

// readJournal follows each task through its journal: terminal is final (5), the
// claims of a task are bounded (10), an entry names the highest fence last (4).
func (w *world) readJournal(ctx context.Context) {
	entries, err := w.store.Journal(ctx, w.book.seq, 1000)
	if err != nil {
		w.fail("the journal cannot be read: %v", err)
		return
	}
	l := &w.book
	for _, e := range entries {
		l.seq = e.Seq
		if e.QueueID == "" {
			continue
		}
		if how, ended := l.ended[e.QueueID]; ended {
			w.fail("task %s ended with %s, and then came %s", e.QueueID, how, e.Kind)
		}
		switch {
		case e.State.Terminal():
			l.ended[e.QueueID] = e.Kind
		case e.Kind == signalbox.EventUnsent:
			if l.unsent[e.QueueID]++; l.unsent[e.QueueID] > maxUnsent {
				w.fail("task %s was claimed %d times without an answer, the bound is %d", e.QueueID, l.unsent[e.QueueID], maxUnsent)
			}
		case e.Kind == signalbox.EventClaim:
			if e.Fence <= l.top {
				w.fail("task %s was claimed with fence %d after fence %d was given", e.QueueID, e.Fence, l.top)
			}
			l.top = max(l.top, e.Fence)
		}
	}
}

// best is the task that a claim must give, "" if none, and whether there is a
// free slot for it (8, 9).
func (w *world) best(r store.ClaimRequest) (id string, free bool) {
	ctx := context.Background()
	slots, err1 := w.store.Slots(ctx)
	pauses, err2 := w.store.Pauses(ctx)
	waiting, err3 := w.store.Waiting(ctx, "", store.Cursor{}, 1000)
	if err1 != nil || err2 != nil || err3 != nil {
		w.fail("the store cannot be read: %v, %v, %v", err1, err2, err3)
		return "", false
	}
	used, all := 0, 0
	for _, s := range slots {
		if signalbox.Isolated(s.Slot) != r.Isolated {
			continue
		}
		all++
		if s.Agent == r.Agent {
			used++
		}
	}
	paused := map[string]bool{}
	for _, p := range pauses {
		paused[p.Queue] = p.UntilMS == 0 || r.Now.UnixMilli() < p.UntilMS
	}
	drained := !r.Isolated && paused[signalbox.AgentQueue(r.Agent)]
	free = used < r.Slots && (r.Fleet == 0 || all < r.Fleet) && !paused[""] && !drained
	for i := range waiting {
		t := &waiting[i]
		if t.Ready && slices.Contains(r.Queues, t.Queue) && !paused[t.Queue] {
			return t.ID, free
		}
	}
	return "", free
}

// claimed compares a claim with what it must give.
func (w *world) claimed(r store.ClaimRequest, got store.Claimed, best string, free bool) {
	w.book.dirty = w.book.dirty || got.Found
	switch {
	case got.Found && !free:
		w.fail("agent %s was given %s though it has no free slot", r.Agent, got.Task.ID)
	case got.Found && got.Task.ID != best:
		w.fail("agent %s was given %s, before %s", r.Agent, got.Task.ID, best)
	case !got.Found && free && best != "":
		w.fail("agent %s was given nothing though %s waits", r.Agent, best)
	case got.Found && got.Task.Fence <= r.FenceAbove:
		w.fail("task %s got fence %d, its agent has seen %d", got.Task.ID, got.Task.Fence, r.FenceAbove)
	}
	if got.Found {
		w.givenAgain(got.Task.ID)
	}
	if off := w.now().Sub(got.Task.DispatchedAt).Abs(); got.Found && off > time.Second {
		w.book.dubious[got.Task.Fence] = true
	}
}

// applied looks at a change of a task: what ended it is the word of exactly the
// execution that holds its slot (4, 5).
func (w *world) applied(c *signalbox.Change, t *signalbox.Task) {
	w.book.dirty = true
	switch c.Entry.Kind {
	case signalbox.EventRefuse, signalbox.EventUnsent, signalbox.EventBusy:
		w.sentBack(c.Entry.Kind, t)
	case signalbox.EventLost:
		if c.Slot == signalbox.SlotWithhold {
			w.fault("slot withheld")
		}
	case signalbox.EventRelease:
		w.book.dubious[t.Fence] = true
	}
	if c.Entry.Kind != signalbox.EventFinish && c.Entry.Kind != signalbox.EventAccept || t.TaskID == "" {
		return
	}
	for _, a := range w.agents {
		if a.name == t.Agent {
			w.compare(a, c, t)
		}
	}
}

// spoken looks at whose word a change of a task is: what one execution says
// changes no other one (4). The actor of a run has its fence in its name.
func (w *world) spoken(c *signalbox.Change) {
	_, of, isRun := strings.Cut(w.scheduler.current(), " run ")
	id, fence, _ := strings.Cut(of, "/")
	if isRun && id == c.Task.ID && fence != strconv.FormatInt(c.Task.Fence, 10) {
		w.fail("task %s under fence %d was changed (%s) by the word of an execution under fence %s", id, c.Task.Fence, c.Entry.Kind, fence)
	}
}

// covered looks at agents that know no fences: as long as one is at a task, and
// nobody freed its slot by hand, that slot is taken (3).
func (w *world) covered(ctx context.Context) {
	slots, err := w.store.Slots(ctx)
	if err != nil {
		w.fail("the slots cannot be read: %v", err)
		return
	}
	for _, a := range w.agents {
		if !a.plain {
			continue
		}
		for _, e := range a.live() {
			holds := func(s signalbox.Slot) bool { return s.Agent == a.name && s.TaskID == e.QueueID && s.Fence == e.Fence }
			if !e.late && !w.guessed(a, e.Fence) && w.now().Before(e.until) && !slices.ContainsFunc(slots, holds) {
				w.fail("agent %s is at task %s (fence %d), and has no fences, and no slot is taken for it", a.name, e.QueueID, e.Fence)
			}
		}
	}
}

// sentBack looks at a task that goes back in line because its agent did not get
// it, or did not take it: nothing of it may run there.
func (w *world) sentBack(kind signalbox.EventKind, t *signalbox.Task) {
	for _, a := range w.agents {
		for _, e := range a.live() {
			if e.QueueID == t.ID && e.Fence == t.Fence && !e.late && !w.guessed(a, e.Fence) {
				w.fail("task %s was sent back (%s: %s) while agent %s runs it as %s", t.ID, kind, t.LastError, a.name, e.taskID)
			}
		}
	}
}

// guessed reports whether a director can take the word of an agent about one task
// for that about another: where the agent knows no queue_id, what it began after
// the claim is the task, as far as two clocks can tell. And one that lied, or
// whose slot was freed by hand, may have two.
func (w *world) guessed(a *agent, fences ...int64) bool {
	return a.told || (a.plain && slices.ContainsFunc(fences, func(f int64) bool { return w.book.dubious[f] }))
}

// unfenced reports whether nobody can tell under which claim a run was sent: its
// agent knows no fences, and read it after its sender was told that it never
// came. It is still a run of its task, which a later claim does well to follow;
// and one such agent that never says busy takes the next one beside it.
func (a *agent) unfenced(e *execution) bool { return a.plain && e.late }

// nameless reports whether nobody can tell whose run such a one was, either: it
// has ended, and the history of its agent shows neither a queue_id nor a prompt.
func (a *agent) nameless(e *execution) bool { return a.unfenced(e) && !e.live() }

func (w *world) compare(a *agent, c *signalbox.Change, t *signalbox.Task) {
	i := slices.IndexFunc(a.runs, func(e *execution) bool { return e.taskID == t.TaskID })
	switch {
	case i < 0:
		w.fail("task %s: agent %s knows no %s", t.ID, a.name, t.TaskID)
	case w.guessed(a, t.Fence, a.runs[i].Fence), a.nameless(a.runs[i]):
	case a.runs[i].QueueID != t.ID || (a.runs[i].Fence != t.Fence && !a.unfenced(a.runs[i])):
		w.fail("task %s under fence %d was taken for %s, which is %s under fence %d", t.ID, t.Fence, t.TaskID, a.runs[i].QueueID, a.runs[i].Fence)
	case t.State == signalbox.Completed && (a.runs[i].live() || a.runs[i].state != "completed"):
		w.fail("task %s is completed, its execution is %s", t.ID, a.runs[i].state)
	case t.State == signalbox.Completed && (c.Result == nil || c.Result.Output != a.runs[i].word()):
		w.fail("task %s ended with the words of another execution", t.ID)
	}
}

// submitted looks at what a submit stored: no more waits than may (9).
func (w *world) submitted(s *store.Submission, got *store.Submitted, before *store.Counts) {
	w.book.dirty = true
	room := s.Cap
	if s.Room != nil { // those do not count whom a free slot takes at once
		for _, a := range s.Room.Agents {
			room += a.Slots
		}
	}
	if n := before.Limits[s.Task.Limit]; !got.Replayed && s.Cap > 0 && n >= room {
		w.fail("task %s was stored though %d of %d wait", got.Task.ID, n, s.Cap)
	}
}

// started looks at a run that begins at an agent which takes whatever it is
// offered (3).
func (w *world) started(a *agent, e *execution) {
	w.note("runs", a.name, e.taskID, e.QueueID)
	if a.unfenced(e) {
		return // nobody can tell its agent that what it reads now is over
	}
	for _, other := range a.live() {
		if other != e && other.place() == e.place() && !w.guessed(a, e.Fence, other.Fence) && !a.unfenced(other) {
			w.fail("agent %s was given %s (fence %d) while %s (fence %d) was under way", a.name, e.QueueID, e.Fence, other.QueueID, other.Fence)
		}
	}
}

// voided looks at a run that ends because a newer one takes its slot: it must
// have been taken away before (3).
func (w *world) voided(a *agent, e *execution, by api.AgentTask) {
	t, err := w.task(e.QueueID)
	if err == nil && t.State.InFlight() && t.Fence == e.Fence && t.Agent == a.name {
		w.fail("agent %s was given %s (fence %d) in the slot that %s (fence %d) holds", a.name, by.QueueID, by.Fence, e.QueueID, e.Fence)
	}
}
