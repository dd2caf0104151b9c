package storetest

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func staleRules() []rule {
	return []rule{
		{"a late report is kept by its fence", staleKept},
		{"a late report does not change the task", staleNoEffect},
		{"a second late report replaces the first", staleAgain},
		{"the newest ten are kept", staleNewest},
		{"a late report needs its task", staleUnknown},
		{"late reports are pruned with their task", stalePruned},
		{"hostile strings and large outputs come back", staleHostile},
		{"the calls of an execution are listed by submission", childrenListed},
		{"a task without a caller has no parent", childrenNone},
	}
}

func aStale(fence int64) signalbox.Stale {
	code := 3
	return signalbox.Stale{
		Fence: fence, Agent: "a", TaskID: "t", At: start.Add(time.Duration(fence) * time.Second), State: "completed", Message: "late",
		Result: signalbox.Result{Output: "out", Tail: "tail", TailSeq: 7, ExitCode: &code, CostUSD: 0.25},
	}
}

func (b *fixture) stales(id string) []signalbox.Stale {
	b.Helper()
	list, err := b.Stales(b.ctx, id)
	b.must(err)
	return list
}

func staleKept(b *fixture) {
	t := b.submit()
	b.same("stale", b.stales(t.ID), []signalbox.Stale(nil))
	for _, fence := range []int64{5, 2, 9} {
		b.must(b.KeepStale(b.ctx, t.ID, aStale(fence)))
	}
	b.same("stale", b.stales(t.ID), []signalbox.Stale{aStale(2), aStale(5), aStale(9)})
	*b.stales(t.ID)[0].Result.ExitCode = 99
	b.same("stale", b.stales(t.ID)[0], aStale(2))
	b.same("of another task", b.stales(b.submit().ID), []signalbox.Stale(nil))
}

func staleNoEffect(b *fixture) {
	t := b.submit()
	b.claim("a")
	b.accept(t.ID)
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventRelease})
	row, before := b.task(t.ID), everything(b)
	free := aStale(1)
	free.Result.CostUSD = 0
	b.must(b.KeepStale(b.ctx, t.ID, free))
	b.same("task", b.task(t.ID), row)
	b.same("what is stored", everything(b), before)
	result, err := b.Result(b.ctx, t.ID)
	b.must(err)
	b.same("result", result, signalbox.Result{})
}

func staleAgain(b *fixture) {
	t := b.submit()
	b.must(b.KeepStale(b.ctx, t.ID, aStale(1)))
	more := aStale(1)
	more.State, more.Result = "failed", signalbox.Result{Output: "more"}
	b.must(b.KeepStale(b.ctx, t.ID, more))
	b.same("stale", b.stales(t.ID), []signalbox.Stale{more})
}

func staleNewest(b *fixture) {
	t, other := b.submit(), b.submit()
	b.must(b.KeepStale(b.ctx, other.ID, aStale(1)))
	for n := range signalbox.MaxStale + 3 {
		b.must(b.KeepStale(b.ctx, t.ID, aStale(int64(100-n)))) // the first ones have the newest fences
	}
	b.must(b.KeepStale(b.ctx, t.ID, aStale(200)))
	list := b.stales(t.ID)
	b.same("kept, first and last", [3]int64{int64(len(list)), list[0].Fence, list[len(list)-1].Fence},
		[3]int64{signalbox.MaxStale, 102 - signalbox.MaxStale, 200})
	b.same("of the other task", len(b.stales(other.ID)), 1)
}

func staleUnknown(b *fixture) {
	b.refused(b.KeepStale(b.ctx, id(1), aStale(1)), signalbox.CodeNotFound)
	_, err := b.Stales(b.ctx, id(1))
	b.refused(err, signalbox.CodeNotFound)
}

func stalePruned(b *fixture) {
	t := b.submit()
	b.must(b.KeepStale(b.ctx, t.ID, aStale(1)))
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.prune(b.now.Add(time.Second), 10)
	_, err := b.Stales(b.ctx, t.ID)
	b.refused(err, signalbox.CodeNotFound)
	again := b.submission()
	again.Task.ID = t.ID
	b.must(second(b.Submit(b.ctx, again)))
	b.same("of a new task with that id", b.stales(t.ID), []signalbox.Stale(nil))
}

func staleHostile(b *fixture) {
	t := b.submit()
	for _, h := range hostile() {
		s := signalbox.Stale{Fence: 1, Agent: h, TaskID: h, State: h, Message: h, Result: signalbox.Result{Output: h, Tail: h, ErrorType: h}}
		b.must(b.KeepStale(b.ctx, t.ID, s))
		b.same("stale", b.stales(t.ID), []signalbox.Stale{s})
	}
	large := signalbox.Stale{Fence: 1, Result: signalbox.Result{Output: string(make([]byte, signalbox.OutputBytes))}}
	b.must(b.KeepStale(b.ctx, t.ID, large))
	b.same("bytes", len(b.stales(t.ID)[0].Result.Output), signalbox.OutputBytes)
}

func calledBy(parent string) option { return func(s *store.Submission) { s.Task.ParentID = parent } }

func (b *fixture) children(parent string, limit int) []string {
	b.Helper()
	list, err := b.Children(b.ctx, parent, limit)
	b.must(err)
	for i := range list {
		b.same("child", list[i], b.task(list[i].ID))
	}
	return ids(list)
}

func childrenListed(b *fixture) {
	b.submit()
	b.submit(calledBy(id(1)))
	b.submit(calledBy("queue-of-another-store"))
	b.submit(calledBy(id(1)), prioritised(5))
	b.submit(calledBy(id(2)))
	b.submit(calledBy(id(1)))
	b.same("children", b.children(id(1), 10), []string{id(2), id(4), id(6)})
	b.same("children, at most two", b.children(id(1), 2), []string{id(2), id(4)})
	b.same("children, none asked for", b.children(id(1), 0), []string(nil))
	b.happen(id(4), signalbox.Event{Kind: signalbox.EventCancel})
	b.same("children, ended too", b.children(id(1), 10), []string{id(2), id(4), id(6)})
	b.same("grandchildren", b.children(id(2), 10), []string{id(5)})
}

func childrenNone(b *fixture) {
	b.submits(2)
	b.same("children of nobody", b.children("", 10), []string(nil))
	b.same("children", b.children(id(1), 10), []string(nil))
	b.same("children of what is not there", b.children("queue-x", 10), []string(nil))
}
