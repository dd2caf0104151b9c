package storetest

import (
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// The work of a task lands after its end; the task's row has the state of the landing.
func landingRules() []rule {
	return []rule{
		{"a wish to land is queued by the commit that completes the task", landWish},
		{"only completed tasks land", landOnlyCompleted},
		{"a wish is dropped before its task ends", landWishDropped},
		{"a landing changes by compare-and-set, and nothing else of the task does", landChanges},
		{"open landings are listed, in the order of their requests", landListed},
		{"a task with an open landing is not pruned", landPruned},
		{"hostile names and texts come back byte for byte", landHostile},
	}
}

func wishing(onto string) option {
	return func(s *store.Submission) {
		s.Task.Landing = &signalbox.Landing{LandWish: signalbox.LandWish{Onto: onto}, State: signalbox.LandingWanted, By: "ann", At: s.Now}
	}
}

// land applies an event to the landing of a task.
func (b *fixture) land(id string, ev signalbox.LandingEvent) signalbox.Task {
	b.Helper()
	ev.Now = b.now
	t := b.task(id)
	c, ok, err := t.ChangeLanding(ev)
	b.must(err)
	if !ok {
		b.Fatalf("a landing that is %+v does not change by %s", t.Landing, ev.Kind)
	}
	after, err := b.Apply(b.ctx, c, b.now)
	b.must(err)
	b.same("stored", b.task(id), after)
	return after
}

func (b *fixture) landings() (ids []string) {
	b.Helper()
	list, err := b.Landings(b.ctx)
	b.must(err)
	for _, t := range list {
		b.same("listed", t, b.task(t.ID))
		ids = append(ids, t.ID)
	}
	return ids
}

func landWish(b *fixture) {
	b.submit(wishing("main"))
	b.submit()
	b.same("before the end", b.landings(), []string(nil))
	b.run("a")
	b.run("a")
	b.same("queued", b.landings(), []string{id(1)})
	b.same("state", b.task(id(1)).Landing.State, signalbox.LandingQueued)
	b.same("of the other", b.task(id(2)).Landing == nil, true)
}

func landWishDropped(b *fixture) {
	b.submits(2, wishing("main"))
	b.claim("a")
	b.accept(id(1))
	for n := 1; n <= 2; n++ { // one runs, one waits
		before := b.task(id(n))
		after := b.land(id(n), signalbox.LandingEvent{Kind: signalbox.LandingDrop, By: "ann", Text: "dropped by ann"})
		b.same("landing", after.Landing.State, signalbox.LandingDropped)
		after.Landing, after.Rev = before.Landing, before.Rev
		b.same("all else", after, before)
	}
	b.finish(id(1))
	b.run("a")
	for n := 1; n <= 2; n++ {
		b.same("task", b.task(id(n)).State, signalbox.Completed)
		b.same("landing", b.task(id(n)).Landing.State, signalbox.LandingDropped)
	}
	b.same("listed", b.landings(), []string(nil))
}

func landOnlyCompleted(b *fixture) {
	b.submits(4, wishing("main"))
	b.claim("a")
	b.accept(id(1))
	b.happen(id(1), signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonAgentError})
	b.happen(id(2), signalbox.Event{Kind: signalbox.EventCancel})
	b.claim("a")
	b.accept(id(3))
	b.happen(id(3), signalbox.Event{Kind: signalbox.EventCancel})
	b.finish(id(3)) // it completed before the cancel
	b.happen(id(4), signalbox.Event{Kind: signalbox.EventWaitTimeout})
	b.same("listed", b.landings(), []string(nil))
	for n := 1; n <= 4; n++ {
		b.same("state", b.task(id(n)).Landing.State, signalbox.LandingDropped)
	}
}

func landChanges(b *fixture) {
	b.submit(wishing("main"))
	b.run("a")
	stale := b.task(id(1))
	page, err := b.History(b.ctx, store.HistoryQuery{Limit: 10})
	b.must(err)
	b.pass(time.Minute)
	after := b.land(id(1), signalbox.LandingEvent{Kind: signalbox.LandingSubmitted, Task: id(7)})
	b.same("task that lands", after.Landing.LandTask, id(7))
	c, _, err := stale.ChangeLanding(signalbox.LandingEvent{Kind: signalbox.LandingSubmitted, Task: id(8), Now: b.now})
	b.must(err)
	if _, err := b.Apply(b.ctx, c, b.now); !errors.Is(err, store.ErrStale) {
		b.Errorf("a change of what it was before: %v", err)
	}
	want := stale
	want.Rev, want.Landing = after.Rev, after.Landing
	b.same("the rest of the row", after, want)
	now, err := b.History(b.ctx, store.HistoryQuery{Limit: 10})
	b.must(err)
	page.Tasks[0] = want
	b.same("history", now, page)
	entries, err := b.Journal(b.ctx, 0, 100)
	b.must(err)
	last := entries[len(entries)-1]
	b.same("entry", []any{last.Kind, last.QueueID, last.State}, []any{signalbox.EventLanding, id(1), signalbox.State("")})
}

func landListed(b *fixture) {
	b.submits(4)
	for n := range 4 {
		b.run("a")
		b.pass(time.Second)
		if n != 2 {
			b.land(id(n+1), signalbox.LandingEvent{Kind: signalbox.LandingAsked, Wish: signalbox.LandWish{Onto: "main", Method: "squash", FastForward: true}, By: "ann"})
		}
	}
	b.pass(time.Second)
	b.land(id(3), signalbox.LandingEvent{Kind: signalbox.LandingAsked, Wish: signalbox.LandWish{Onto: "next"}})
	b.pass(time.Second)
	b.same("open", b.landings(), []string{id(1), id(2), id(4), id(3)})
	b.land(id(2), signalbox.LandingEvent{Kind: signalbox.LandingSubmitted, Task: id(7)})
	b.land(id(2), signalbox.LandingEvent{Kind: signalbox.LandingDone, Task: id(7), Done: signalbox.Landed{Commit: "c", Was: "b"}})
	b.land(id(4), signalbox.LandingEvent{Kind: signalbox.LandingDrop, By: "ann"})
	b.land(id(1), signalbox.LandingEvent{Kind: signalbox.LandingStopped, Text: "no such branch"})
	b.same("open", b.landings(), []string{id(1), id(3)})
	b.land(id(4), signalbox.LandingEvent{Kind: signalbox.LandingAsked, Wish: signalbox.LandWish{Onto: "main"}})
	b.same("open again", b.landings(), []string{id(1), id(3), id(4)})
}

func landPruned(b *fixture) {
	b.submits(3, wishing("main"))
	for range 3 {
		b.run("a")
	}
	b.land(id(2), signalbox.LandingEvent{Kind: signalbox.LandingStopped, Text: "no such branch"})
	b.land(id(3), signalbox.LandingEvent{Kind: signalbox.LandingDrop})
	b.pass(time.Hour)
	b.same("forgotten", b.prune(b.now, 10), 2)
	b.same("open", b.landings(), []string{id(1)})
}

func landHostile(b *fixture) {
	text := "t\x00\xff%'\""
	wish := signalbox.LandWish{Onto: text, Method: text, FastForward: true}
	b.submit()
	b.run("a")
	t := b.land(id(1), signalbox.LandingEvent{Kind: signalbox.LandingAsked, Wish: wish, By: text})
	b.same("wish", t.Landing.LandWish, wish)
	b.land(id(1), signalbox.LandingEvent{Kind: signalbox.LandingSubmitted, Task: text})
	t = b.land(id(1), signalbox.LandingEvent{Kind: signalbox.LandingDone, Task: text, Done: signalbox.Landed{Commit: text, Was: text, URL: text}})
	b.same("landed", []string{t.Landing.Commit, t.Landing.Was, t.Landing.URL, t.Landing.By}, []string{text, text, text, text})
}
