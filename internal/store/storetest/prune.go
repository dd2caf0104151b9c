package storetest

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func pruneRules() []rule {
	return []rule{
		{"tasks that ended before are deleted, with all that belongs to them", pruneEnded},
		{"tasks that have not ended stay, however old", pruneKeepsLive},
		{"the oldest ends go first, at most the limit", pruneLimit},
		{"an idempotency key is free again", pruneKey},
		{"an unused session is pruned", pruneSession},
		{"a session that a task still names stays", pruneSessionNamed},
		{"a session used since stays", pruneSessionUsed},
		{"journal entries that are older go, the rest has no gaps", pruneJournal},
		{"only the beginning of the journal goes", pruneJournalClock},
		{"numbers never start again", pruneNumbers},
		{"a withheld slot stays", pruneWithheld},
		{"bytes of ended tasks are counted by owner", keptByOwner},
		{"beyond a size in bytes the oldest are pruned, whoever owns them", pruneBytes},
		{"the oldest of an owner are pruned, and of nobody else", pruneOwner},
		{"the search for an owner's tasks goes on where it stopped", pruneOwnerLimit},
		{"tasks stored by a release that did not count are pruned by time only", pruneUncounted},
	}
}

func (b *fixture) prune(ended time.Time, limit int) int {
	b.Helper()
	return b.pruning(store.Pruning{Ended: ended, Limit: limit}).Tasks
}

func (b *fixture) pruning(p store.Pruning) store.Pruned {
	b.Helper()
	did, err := b.Prune(b.ctx, p)
	b.must(err)
	return did
}

func pruneEnded(b *fixture) {
	t := b.submit()
	b.claim("a")
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: "x"}})
	b.same("pruned", b.prune(b.now, 10), 0) // it ended at, not before, that time
	b.same("pruned", b.prune(b.now.Add(time.Millisecond), 10), 1)
	_, err := b.Task(b.ctx, t.ID)
	b.refused(err, signalbox.CodeNotFound)
	_, err = b.Request(b.ctx, t.ID)
	b.refused(err, signalbox.CodeNotFound)
	_, err = b.Result(b.ctx, t.ID)
	b.refused(err, signalbox.CodeNotFound)
	b.same("found", b.found(t.ID, 10), []string(nil))
	b.same("history", b.history(store.HistoryQuery{Limit: 10}), []string(nil))
	took, err := b.Durations(b.ctx, "a", 10)
	b.must(err)
	b.same("durations", len(took), 0)
}

func pruneKeepsLive(b *fixture) {
	b.submits(3)
	b.claim("a")
	b.pass(1000 * time.Hour)
	b.same("pruned", b.prune(b.now, 10), 0)
	b.task(id(1))
	b.task(id(2))
}

func pruneLimit(b *fixture) {
	b.submits(5)
	for _, n := range []int{3, 1, 5, 2} {
		b.happen(id(n), signalbox.Event{Kind: signalbox.EventCancel})
		b.pass(time.Second)
	}
	b.same("pruned", b.prune(b.now, 2), 2)
	b.same("history", b.history(store.HistoryQuery{Limit: 10}), []string{id(2), id(5)})
	b.same("pruned", b.prune(b.now, 10), 2)
	b.same("pruned", b.prune(b.now, 10), 0)
}

func pruneKey(b *fixture) {
	first := b.submit(keyed("k", "h"))
	b.happen(first.ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.prune(b.now.Add(time.Second), 10)
	got, err := b.Submit(b.ctx, b.submission(keyed("k", "other")))
	b.must(err)
	b.same("replayed", got.Replayed, false)
}

func pruneSession(b *fixture) {
	b.finish(b.bind("a", "s").ID)
	b.prune(b.now.Add(time.Second), 10)
	_, err := b.Session(b.ctx, "s")
	b.refused(err, signalbox.CodeNotFound)
}

func pruneSessionNamed(b *fixture) {
	b.finish(b.bind("a", "s").ID)
	b.pass(time.Second)
	b.submit(inSession("s"))
	b.prune(b.now, 10)
	_, err := b.Session(b.ctx, "s")
	b.must(err)
	b.happen(id(2), signalbox.Event{Kind: signalbox.EventCancel})
	b.prune(b.now, 10) // the task has ended, but not before that time
	_, err = b.Session(b.ctx, "s")
	b.must(err)
	b.prune(b.now.Add(time.Second), 10)
	_, err = b.Session(b.ctx, "s")
	b.refused(err, signalbox.CodeNotFound)
}

// The end has the time of the agent's report, the session's LastUsed the time of the write.
func pruneSessionUsed(b *fixture) {
	t := b.submit(inSession("s"))
	b.claim("a")
	end := b.change(b.task(t.ID), signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, SessionID: "s"})
	b.pass(time.Minute)
	b.must(second(b.Apply(b.ctx, end, b.now)))
	b.same("pruned", b.prune(b.now, 10), 1)
	b.must(second(b.Session(b.ctx, "s")))
	b.prune(b.now.Add(time.Millisecond), 10)
	_, err := b.Session(b.ctx, "s")
	b.refused(err, signalbox.CodeNotFound)
}

func pruneJournal(b *fixture) {
	b.submits(3)
	b.pass(time.Second)
	b.submits(2)
	b.prune(b.now, 10)
	entries := b.journal()
	b.same("seqs", []int64{entries[0].Seq, entries[len(entries)-1].Seq}, []int64{4, 5})
	oldest, newest, err := b.JournalRange(b.ctx)
	b.must(err)
	b.same("range", [2]int64{oldest, newest}, [2]int64{4, 5})
	got, err := b.Journal(b.ctx, 1, 1)
	b.must(err)
	b.same("first after a pruned place", got, entries[:1])
}

func pruneJournalClock(b *fixture) {
	b.submit()
	b.pass(time.Hour)
	b.submit()
	b.pass(-time.Hour)
	b.submit()
	b.prune(start.Add(time.Minute), 10)
	b.same("entries", len(b.journal()), 2)
}

func pruneNumbers(b *fixture) {
	b.submits(2)
	b.run("a")
	b.run("a")
	b.pass(time.Hour)
	b.prune(b.now, 10)
	b.same("journal", b.journal(), []signalbox.Entry(nil))
	b.pass(-2 * time.Hour)
	t := b.submit()
	b.same("seq, place and entry", [3]int64{t.Seq, t.Place, b.journal()[0].Seq}, [3]int64{3, 3, 9})
	b.same("enqueued", t.EnqueuedAt, start)
	b.same("fence", b.claim("a").Fence, int64(3))
}

func pruneWithheld(b *fixture) {
	t := b.withheld()
	b.prune(b.now.Add(time.Hour), 10)
	b.same("slots", len(b.slots()), 1)
	b.same("freed", b.freeSlot("a", 0, t.Fence), true)
}

func owned(owner string) option { return func(s *store.Submission) { s.Task.Owner = owner } }

// uncounted makes a task as an earlier release stored it, without the size of its request.
func uncounted(s *store.Submission) { s.Task.RequestSize = 0 }

// ended submits a task and cancels it, one second after the previous one.
func (b *fixture) ended(options ...option) *signalbox.Task {
	b.Helper()
	b.pass(time.Second)
	t := b.happen(b.submit(options...).ID, signalbox.Event{Kind: signalbox.EventCancel})
	return &t
}

func (b *fixture) kept() map[string]int64 {
	b.Helper()
	kept, err := b.Kept(b.ctx)
	b.must(err)
	return kept
}

func (b *fixture) listed() (ids []string) {
	b.Helper()
	return b.history(store.HistoryQuery{Limit: 100})
}

func keptByOwner(b *fixture) {
	b.same("kept of none", b.kept(), map[string]int64{})
	t := b.submit(owned("user:ann"))
	b.same("kept of a task that waits", b.kept(), map[string]int64{})
	b.claim("a")
	t = b.happen(t.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: "12345", Tail: "678"}})
	b.same("size of the result", t.ResultSize, int64(8))
	b.same("as it is read", b.task(t.ID), t)
	nobodys := b.ended()
	b.same("kept", b.kept(), map[string]int64{"user:ann": t.RequestSize + 8, "": nobodys.RequestSize})
	b.same("pruned", b.pruning(store.Pruning{Ended: b.now, Limit: 10}), store.Pruned{Tasks: 1, Bytes: t.Kept()})
	b.same("kept after that", b.kept(), map[string]int64{"": nobodys.RequestSize})
}

func pruneBytes(b *fixture) {
	var size int64
	for _, owner := range []string{"user:ann", "", "token:ci", "user:ann"} {
		size = b.ended(owned(owner)).Kept()
	}
	did := b.pruning(store.Pruning{Ended: start, Bytes: size + 1, Limit: 10})
	b.same("tasks and bytes", [2]int64{int64(did.Tasks), did.Bytes}, [2]int64{2, 2 * size})
	b.same("left", b.listed(), []string{id(4), id(3)})
	b.same("no more", b.pruning(store.Pruning{Ended: start, Limit: 10}), store.Pruned{})
	b.same("kept", b.kept(), map[string]int64{"token:ci": size, "user:ann": size})
}

func pruneOwner(b *fixture) {
	var size int64
	for _, owner := range []string{"", "token:ci", "user:ann", "token:ci", "token:ci"} {
		size = b.ended(owned(owner)).Kept()
	}
	did := b.pruning(store.Pruning{Owners: map[string]int64{"token:ci": size + 1, "user:ann": 0, "user:bob": 1}, Limit: 10})
	b.same("tasks and bytes", [2]int64{int64(did.Tasks), did.Bytes}, [2]int64{2, 2 * size})
	b.same("left", b.listed(), []string{id(5), id(3), id(1)})
	b.same("kept", b.kept(), map[string]int64{"": size, "token:ci": size, "user:ann": size})
}

func pruneOwnerLimit(b *fixture) {
	size := int64(0)
	for n := range 9 {
		size = b.ended(owned([]string{"user:ann", "user:ann", "token:ci"}[n%3])).Kept()
	}
	p := store.Pruning{Owners: map[string]int64{"token:ci": 2 * size}, Limit: 2}
	for _, want := range []int{0, 1, 1} {
		did := b.pruning(p)
		b.same("tasks", did.Tasks, want)
		p.Owners["token:ci"] -= did.Bytes
		p.After = did.Next
	}
	b.same("left", b.listed(), []string{id(9), id(8), id(7), id(5), id(4), id(2), id(1)})
	p.Owners["token:ci"] = 100 * size
	for p.After = (store.EndedCursor{}); ; {
		did := b.pruning(p)
		if p.After = did.Next; p.After == (store.EndedCursor{}) {
			break
		}
	}
	b.same("kept in the end", b.kept(), map[string]int64{"user:ann": 6 * size})
}

func pruneUncounted(b *fixture) {
	b.ended(owned("user:ann"), uncounted)
	size := b.ended(owned("user:ann")).Kept()
	b.same("kept", b.kept(), map[string]int64{"user:ann": size})
	b.same("pruned by bytes", b.pruning(store.Pruning{Bytes: 1, Owners: map[string]int64{"user:ann": 1}, Limit: 10}).Tasks, 1)
	b.same("left", b.listed(), []string{id(1)})
	b.same("pruned by time", b.prune(b.now.Add(time.Second), 10), 1)
	b.same("kept in the end", b.kept(), map[string]int64{})
}
