package storetest

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
)

func journalRules() []rule {
	return []rule{
		{"each change writes one entry, Seq from 1 without gaps", journalEntries},
		{"the entry of a change is stored as it is", journalStored},
		{"the entry of a submit describes the task", journalSubmit},
		{"the entry of a claim is that of the transition", journalClaim},
		{"a verb without a change writes no entry", journalNothing},
		{"a note is an entry", journalNote},
		{"the journal is read from any place", journalPages},
		{"an empty journal has no range", journalEmpty},
		{"concurrent writers leave no gaps", journalRace},
	}
}

func journalEntries(b *fixture) {
	t := b.submit()
	b.claim("a")
	b.accept(t.ID)
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCancelled})
	entries := b.journal()
	b.same("kinds", kinds(entries), []signalbox.EventKind{"submit", "claim", "accept", "cancel", "finish"})
	for n, e := range entries {
		b.same("seq", e.Seq, int64(n+1))
		b.same("task", e.QueueID, t.ID)
	}
}

func journalStored(b *fixture) {
	t := b.submit()
	b.claim("a")
	b.pass(time.Second)
	c := b.change(b.task(t.ID), signalbox.Event{Kind: signalbox.EventRelease, By: "me", Message: "enough"})
	_, err := b.Apply(b.ctx, c, b.now)
	b.must(err)
	want := c.Entry
	want.Seq = 3
	b.same("entry", b.journal()[2], want)
	if want.Message == "" || want.Reason == "" || want.By == "" || want.Fence == 0 {
		b.Fatalf("the entry %+v proves too little", want)
	}
}

func journalSubmit(b *fixture) {
	b.pass(time.Second)
	t := b.submit(inQueue("pool:k"))
	b.same("entry", b.journal()[0], signalbox.Entry{
		Seq: 1, At: b.now, Kind: signalbox.EventSubmit, QueueID: t.ID, State: signalbox.Pending, Queue: "pool:k",
		Source: signalbox.SourceAPI,
	})
}

func journalClaim(b *fixture) {
	t := b.submit()
	b.pass(time.Second)
	claimed := b.claim("a")
	b.same("entry", b.journal()[1], signalbox.Entry{
		Seq: 2, At: b.now, Kind: signalbox.EventClaim, QueueID: t.ID, State: signalbox.Dispatching, Queue: "work",
		Agent: "a", Fence: claimed.Fence, Source: signalbox.SourceAPI,
	})
}

func journalNothing(b *fixture) {
	t := b.submit(keyed("k", "h"), capped("work", 1))
	before := b.journal()
	_, err := b.Submit(b.ctx, b.submission(keyed("k", "h"), capped("work", 1)))
	b.must(err)
	_, err = b.Submit(b.ctx, b.submission(capped("work", 1)))
	b.refused(err, signalbox.CodeQueueFull)
	b.noClaim(b.offerSlots("a", 0))
	stale := b.change(t, signalbox.Event{Kind: signalbox.EventCancel})
	stale.Task.Rev--
	if _, err = b.Apply(b.ctx, stale, b.now); err == nil {
		b.Fatal("a stale change was stored")
	}
	b.resume("work")
	b.wake(10)
	b.same("journal", b.journal(), before)
}

func journalNote(b *fixture) {
	b.submit()
	e := signalbox.Entry{Seq: 77, At: b.now, Kind: signalbox.EventAgentDown, Agent: "a", Message: "gone", Schedule: "nightly"}
	b.must(b.Note(b.ctx, e))
	e.Seq = 2
	b.same("entry", b.journal()[1], e)
}

func journalPages(b *fixture) {
	b.submits(7)
	all := b.journal()
	for after := range int64(9) {
		for _, limit := range []int{1, 3, 100} {
			got, err := b.Journal(b.ctx, after, limit)
			b.must(err)
			from := min(int(after), 7)
			b.same(fmt.Sprintf("%d entries after %d", limit, after), got, all[from:min(from+limit, 7)])
		}
	}
	got, err := b.Journal(b.ctx, -5, 2)
	b.must(err)
	b.same("entries after -5", got, all[:2])
	oldest, newest, err := b.JournalRange(b.ctx)
	b.must(err)
	b.same("range", [2]int64{oldest, newest}, [2]int64{1, 7})
}

func journalEmpty(b *fixture) {
	oldest, newest, err := b.JournalRange(b.ctx)
	b.must(err)
	b.same("range", [2]int64{oldest, newest}, [2]int64{0, 0})
	b.same("journal", b.journal(), []signalbox.Entry(nil))
}

func journalRace(b *fixture) {
	const n = 32
	for _, err := range together(n, func(i int) error {
		return b.Note(b.ctx, signalbox.Entry{At: start, Kind: signalbox.EventAgentUp, Agent: fmt.Sprintf("a%d", i)})
	}) {
		b.must(err)
	}
	for i, e := range b.journal() {
		b.same("seq", e.Seq, int64(i+1))
	}
	b.same("entries", len(b.journal()), n)
}
