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

// ledger is what is known of the tasks independently of the store: from its journal, and from callers of its
// verbs.
type ledger struct {
	seq    int64 // newest journal entry read
	ended  map[string]signalbox.EventKind
	unsent map[string]int
	top    int64 // highest fence claimed
	fleet  int
	// ambiguousFences are executions for which the answer of an agent without fences may be misattributed:
	// the clock jumped at their claim, or their slot was freed by hand.
	ambiguousFences map[int64]bool
	shut            map[string]int64   // by account that is not open: the highest fence at its last change
	anyway          map[int64]bool     // claims of tasks that run although their account is not open
	parked          map[string]parking // by task: how it was last parked
	changed         bool               // something was written since the last check
}

// maxUnsent is how many claims may end without any answer before the task ends (design §2).
const maxUnsent = 10

func (l *ledger) init() {
	l.ended, l.unsent, l.ambiguousFences = map[string]signalbox.EventKind{}, map[string]int{}, map[int64]bool{}
	l.shut, l.anyway, l.parked = map[string]int64{}, map[int64]bool{}, map[string]parking{}
}

// check checks the invariants of the design (§4) after a step that stored something.
func (w *world) check() {
	if !w.book.changed {
		return
	}
	w.book.changed = false
	ctx := context.Background()
	if err := invariant.Check(ctx, w.store); err != nil {
		w.fail("the store: %v", err)
	}
	w.readJournal(ctx)
	w.checkSlotTaken(ctx)
	w.checkAccounts(ctx)
}

// readJournal follows each task through its journal: terminal is final (5), claims per task are
// bounded (10), no entry names an older fence after a newer one (4).
func (w *world) readJournal(ctx context.Context) {
	entries, err := w.store.Journal(ctx, w.book.seq, 1000)
	if err != nil {
		w.fail("the journal cannot be read: %v", err)
		return
	}
	l := &w.book
	for _, e := range entries {
		l.seq = e.Seq
		if e.Kind == signalbox.EventAccount {
			w.readAccount(&e)
		}
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

// expected is the expected result of a claim (8, 9).
type expected struct {
	best   string // task; "" if none
	anyway bool   // that runs although its account is not open
	free   bool   // there is a slot for it
	open   bool   // its account lets it through
}

func (w *world) expectedClaim(r store.ClaimRequest) (x expected) {
	ctx := context.Background()
	slots, err1 := w.store.Slots(ctx)
	pauses, err2 := w.store.Pauses(ctx)
	waiting, err3 := w.store.Waiting(ctx, "", store.Cursor{}, 1000)
	if err1 != nil || err2 != nil || err3 != nil {
		w.fail("the store cannot be read: %v, %v, %v", err1, err2, err3)
		return x
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
	x.open = r.Isolated || w.admits(r.Account, slots, r.Now)
	x.free = used < r.Slots && (r.Fleet == 0 || all < r.Fleet) && !paused[""] && !drained
	for i := range waiting {
		t := &waiting[i]
		if t.Ready && slices.Contains(r.Queues, t.Queue) && !paused[t.Queue] {
			x.best, x.anyway = t.ID, t.IgnoreGates
			break
		}
	}
	return x
}

// checkClaim compares a claim with the expected one.
func (w *world) checkClaim(r store.ClaimRequest, got store.Claimed, x expected) {
	w.book.changed = w.book.changed || got.Found
	switch {
	case got.Found && !x.open && !x.anyway:
		w.fail("agent %s was given %s, and its account %s lets nothing through", r.Agent, got.Task.ID, r.Account)
	case !got.Found && !got.Held && x.free && !x.open:
		w.fail("agent %s is not told that its account %s lets nothing through", r.Agent, r.Account)
	case got.Found && !x.free:
		w.fail("agent %s was given %s though it has no free slot", r.Agent, got.Task.ID)
	case got.Found && got.Task.ID != x.best:
		w.fail("agent %s was given %s, before %s", r.Agent, got.Task.ID, x.best)
	case !got.Found && x.free && (x.open || x.anyway) && x.best != "":
		w.fail("agent %s was given nothing though %s waits", r.Agent, x.best)
	case got.Found && got.Task.Fence <= r.FenceAbove:
		w.fail("task %s got fence %d, its agent has seen %d", got.Task.ID, got.Task.Fence, r.FenceAbove)
	}
	if got.Found {
		w.resumeAfterReoffer(got.Task.ID)
		w.book.anyway[got.Task.Fence] = x.anyway
	}
	if off := w.now().Sub(got.Task.DispatchedAt).Abs(); got.Found && off > time.Second {
		w.book.ambiguousFences[got.Task.Fence] = true
	}
}

// checkChange checks a change of a task: only the execution that holds its slot may end it (4,
// 5).
func (w *world) checkChange(c *signalbox.Change, t *signalbox.Task) {
	w.book.changed = true
	switch c.Entry.Kind {
	case signalbox.EventRefuse, signalbox.EventUnsent, signalbox.EventBusy:
		w.checkRequeue(c.Entry.Kind, t)
	case signalbox.EventLost:
		if c.Slot == signalbox.SlotWithhold {
			w.fault("slot withheld")
		}
	case signalbox.EventPark:
		w.checkPark(c)
	case signalbox.EventRelease:
		w.book.ambiguousFences[t.Fence] = true
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

// checkActor checks the actor of a change: an execution changes only its own task (4). The
// actor of a run has its fence in its name.
func (w *world) checkActor(c *signalbox.Change) {
	_, of, isRun := strings.Cut(w.scheduler.current(), " run ")
	id, fence, _ := strings.Cut(of, "/")
	if isRun && id == c.Task.ID && fence != strconv.FormatInt(c.Task.Fence, 10) {
		w.fail("task %s under fence %d was changed (%s) by the word of an execution under fence %s", id, c.Task.Fence, c.Entry.Kind, fence)
	}
}

// checkSlotTaken checks agents without fences: while one runs a task, and nobody freed its slot
// by hand, the slot is taken (3).
func (w *world) checkSlotTaken(ctx context.Context) {
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
			if !e.late && !w.mayBeConfused(a, e.Fence) && w.now().Before(e.until) && !slices.ContainsFunc(slots, holds) {
				w.fail("agent %s is at task %s (fence %d), and has no fences, and no slot is taken for it", a.name, e.QueueID, e.Fence)
			}
		}
	}
}

// checkRequeue checks a task that is requeued because its agent did not get or accept it: no run of it may
// exist there.
func (w *world) checkRequeue(kind signalbox.EventKind, t *signalbox.Task) {
	for _, a := range w.agents {
		for _, e := range a.live() {
			if e.QueueID == t.ID && e.Fence == t.Fence && !e.late && !w.mayBeConfused(a, e.Fence) {
				w.fail("task %s was sent back (%s: %s) while agent %s runs it as %s", t.ID, kind, t.LastError, a.name, e.taskID)
			}
		}
	}
}

// mayBeConfused reports whether a director may take an agent's answer about one task for another. Without
// queue_id, a run that began after the claim is taken for the task, as far as two clocks can tell. An agent
// that lied, or whose slot was freed by hand, may have two.
func (w *world) mayBeConfused(a *agent, fences ...int64) bool {
	return a.overlapAllowed || (a.plain && slices.ContainsFunc(fences, func(f int64) bool { return w.book.ambiguousFences[f] }))
}

// fenceUnknown reports whether the claim of a run cannot be known: its agent has no fences, and read the
// offer after its sender was told that it never arrived. It is still a run of its task, which may be claimed
// again; and an agent that never says busy then runs both.
func (a *agent) fenceUnknown(e *execution) bool { return a.plain && e.late }

// ownerUnknown reports whether the task of such a run cannot be known either: it has ended, and the agent's
// history has neither queue_id nor prompt.
func (a *agent) ownerUnknown(e *execution) bool { return a.fenceUnknown(e) && !e.live() }

func (w *world) compare(a *agent, c *signalbox.Change, t *signalbox.Task) {
	i := slices.IndexFunc(a.runs, func(e *execution) bool { return e.taskID == t.TaskID })
	switch {
	case i < 0:
		w.fail("task %s: agent %s knows no %s", t.ID, a.name, t.TaskID)
	case w.mayBeConfused(a, t.Fence, a.runs[i].Fence), a.ownerUnknown(a.runs[i]):
	case a.runs[i].QueueID != t.ID || (a.runs[i].Fence != t.Fence && !a.fenceUnknown(a.runs[i])):
		w.fail("task %s under fence %d was taken for %s, which is %s under fence %d", t.ID, t.Fence, t.TaskID, a.runs[i].QueueID, a.runs[i].Fence)
	case t.State == signalbox.Completed && (a.runs[i].live() || a.runs[i].state != "completed"):
		w.fail("task %s is completed, its execution is %s", t.ID, a.runs[i].state)
	case t.State == signalbox.Completed && (c.Result == nil || c.Result.Output != a.runs[i].output()):
		w.fail("task %s ended with the words of another execution", t.ID)
	}
}

// checkSubmit checks a submit: the limit of waiting tasks holds (9).
func (w *world) checkSubmit(s *store.Submission, got *store.Submitted, before *store.Counts) {
	w.book.changed = true
	room := s.Cap
	if s.Room != nil { // tasks that a free slot takes at once do not count
		for _, a := range s.Room.Agents {
			room += a.Slots
		}
	}
	if n := before.Limits[s.Task.Limit]; !got.Replayed && s.Cap > 0 && n >= room {
		w.fail("task %s was stored though %d of %d wait", got.Task.ID, n, s.Cap)
	}
}

// checkStart checks a run that begins at an agent that takes every offer (3).
func (w *world) checkStart(a *agent, e *execution) {
	w.note("runs", a.name, e.taskID, e.QueueID)
	w.checkResume(a, e)
	if a.fenceUnknown(e) {
		return // its agent cannot be told that the offer is void
	}
	for _, other := range a.live() {
		if other != e && other.slot() == e.slot() && !w.mayBeConfused(a, e.Fence, other.Fence) && !a.fenceUnknown(other) {
			w.fail("agent %s was given %s (fence %d) while %s (fence %d) was under way", a.name, e.QueueID, e.Fence, other.QueueID, other.Fence)
		}
	}
}

// checkVoid checks a run that ends because a newer one takes its slot: it must have been
// revoked before (3).
func (w *world) checkVoid(a *agent, e *execution, by api.AgentTask) {
	t, err := w.task(e.QueueID)
	if err == nil && t.State.InFlight() && t.Fence == e.Fence && t.Agent == a.name {
		w.fail("agent %s was given %s (fence %d) in the slot that %s (fence %d) holds", a.name, by.QueueID, by.Fence, e.QueueID, e.Fence)
	}
}
