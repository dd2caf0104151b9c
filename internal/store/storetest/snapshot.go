package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func snapshotRules() []rule {
	return []rule{
		{"the snapshot of an empty store is empty", snapshotEmpty},
		{"it agrees with the reads", snapshotReads},
		{"it has the head of each queue, and the counts of all tasks", snapshotHeads},
		{"a snapshot has what was acknowledged before", snapshotAcknowledged},
		{"its entry stays when the journal is pruned", snapshotPruned},
		{"it shares no memory with the store", snapshotNoAlias},
		{"its parts are consistent", snapshotOneMoment},
	}
}

func (b *fixture) snapshot(heads int) store.Snapshot {
	b.Helper()
	shot, err := b.Snapshot(b.ctx, heads)
	b.must(err)
	return shot
}

func snapshotEmpty(b *fixture) {
	b.same("snapshot", b.snapshot(10), store.Snapshot{
		Counts: store.Counts{Queues: map[string]int{}, Limits: map[string]int{}, InFlight: map[signalbox.State]int{}},
	})
}

func snapshotReads(b *fixture) {
	b.withheld()
	b.submits(3)
	b.submit(inQueue("agent:a"), prioritised(2))
	b.submit(inQueue("pool:k"), notBefore(b.now.Add(time.Hour)), capped("commands", 9))
	b.accept(b.claimed(b.offerSlots("a", 3)).ID)
	b.claimed(b.offerSlots("a", 3))
	b.pause(signalbox.Pause{Queue: "work", By: "me"})
	shot := b.snapshot(100)
	counts, err := b.Counts(b.ctx)
	b.must(err)
	flying, err := b.InFlight(b.ctx)
	b.must(err)
	b.same("counts", shot.Counts, counts)
	b.same("in flight", shot.InFlight, flying)
	b.same("slots", shot.Slots, b.slots())
	b.same("pauses", shot.Pauses, b.pauses())
	b.same("entry", shot.Entry, int64(len(b.journal())))
	b.same("queues", len(shot.Heads), len(counts.Queues))
	for queue, list := range shot.Heads {
		b.same("head of "+queue, list, b.waiting(queue, store.Cursor{}, 100))
	}
	if len(flying) != 2 || len(shot.Slots) != 3 || len(shot.Heads) < 2 {
		b.Fatalf("the snapshot proves too little: %+v", shot)
	}
}

func snapshotHeads(b *fixture) {
	b.submits(5)
	first := b.submit(prioritised(5))
	b.submit(inQueue("pool:k"))
	shot := b.snapshot(2)
	b.same("work", ids(shot.Heads["work"]), []string{first.ID, id(1)})
	b.same("pool:k", ids(shot.Heads["pool:k"]), []string{id(7)})
	b.same("counts", shot.Counts.Queues, map[string]int{"work": 6, "pool:k": 1})
	for _, none := range []int{0, -1} {
		shot = b.snapshot(none)
		b.same("heads", len(shot.Heads), 0)
		b.same("pending", shot.Counts.Pending, 7)
	}
}

func snapshotAcknowledged(b *fixture) {
	for n := range 20 {
		t := b.submit()
		b.same("pending", b.snapshot(1).Counts.Pending, 1)
		b.claim("a")
		b.same("in flight", ids(b.snapshot(1).InFlight), []string{t.ID})
		b.finish(t.ID)
		shot := b.snapshot(1)
		b.same("after the end", []int64{int64(len(shot.Slots)), int64(len(shot.InFlight)), shot.Entry}, []int64{0, 0, int64(3 * (n + 1))})
	}
}

func snapshotPruned(b *fixture) {
	b.submit()
	b.run("a")
	b.prune(b.now.Add(time.Hour), 10)
	b.same("journal", len(b.journal()), 0)
	b.same("entry", b.snapshot(1).Entry, int64(4))
}

func snapshotNoAlias(b *fixture) {
	b.submits(2)
	b.claim("a")
	b.pause(signalbox.Pause{Queue: "pool:k"})
	shot := b.snapshot(1)
	shot.Counts.Queues["work"], shot.Counts.Limits["work"], shot.Counts.InFlight["x"] = 9, 9, 9
	shot.InFlight[0].ID, shot.Slots[0].Agent, shot.Heads["work"][0].ID, shot.Pauses[0].Queue = "?", "?", "?", "?"
	again := b.snapshot(1)
	b.same("ids", []string{again.InFlight[0].ID, again.Slots[0].Agent, again.Heads["work"][0].ID, again.Pauses[0].Queue}, []string{id(1), "a", id(2), "pool:k"})
	b.same("counts", again.Counts.Queues["work"], 1)
}

// snapshotOneMoment takes snapshots while others write as fast as they can. All parts of a snapshot must be
// consistent, and match the journal up to its entry.
func snapshotOneMoment(b *fixture) {
	const writers, readers, heads = 6, 3, 10_000
	var subs [writers][]store.Submission
	for n := range writers {
		for k := range 40 {
			subs[n] = append(subs[n], b.submission(inQueue(someQueues[(n+k)%4])))
		}
	}
	now, stop := b.now, make(chan struct{})
	var shots [readers + writers][]store.Snapshot
	var errs [readers]error
	look := func(n int) error {
		shot, err := b.Snapshot(b.ctx, heads)
		shots[n] = append(shots[n], shot)
		return err
	}
	// make test takes a snapshot after each write, concurrently with the next ones. make soak takes them all
	// the time: some ten thousand, at sixty moments.
	moved := make(chan struct{})
	write := func() { moved <- struct{}{} }
	if soak.On() {
		close(moved)
		write = func() {}
	}
	var reading sync.WaitGroup
	for n := range readers {
		reading.Go(func() {
			for done := false; !done; {
				select {
				case <-stop: // and once more at the end
					done = true
				case <-moved:
				}
				if errs[n] == nil {
					errs[n] = look(n)
				}
			}
		})
	}
	wrote := together(writers, func(n int) error {
		return snapshotWriter(b, n, subs[n], now, write, func() error { return look(readers + n) })
	})
	close(stop)
	reading.Wait()
	for _, err := range append(wrote, errs[:]...) {
		b.must(err)
	}
	entries := b.journal()
	seen := map[int64]bool{}
	for n := range shots {
		for i := range shots[n] {
			b.must(fitsTogether(&shots[n][i]))
			b.must(fitsJournal(&shots[n][i], entries))
			seen[shots[n][i].Entry] = true
			if i > 0 && shots[n][i].Entry < shots[n][i-1].Entry {
				b.Fatalf("entry %d after entry %d", shots[n][i].Entry, shots[n][i-1].Entry)
			}
		}
	}
	if len(seen) < writers {
		b.Fatalf("%d moments were seen: that proves too little", len(seen))
	}
}

// snapshotWriter submits tasks and moves waiting ones to some end. It calls wrote after each write, and takes
// a snapshot now and then.
func snapshotWriter(b *fixture, n int, subs []store.Submission, now time.Time, wrote func(), look func() error) error {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for k, sub := range subs {
		if k%8 == n {
			if err := look(); err != nil {
				return err
			}
		}
		if _, err := b.Submit(b.ctx, sub); err != nil {
			return err
		}
		wrote()
		got, err := b.Claim(b.ctx, store.ClaimRequest{Agent: fmt.Sprint("w", n), Slots: 3, Queues: someQueues, Now: now, Expires: now.Add(time.Hour)})
		if err != nil || !got.Found {
			return err
		}
		wrote()
		events := []signalbox.Event{{Kind: signalbox.EventBusy}}
		if k%4 > 0 {
			events = []signalbox.Event{{Kind: signalbox.EventAccept}, {Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted}}
		}
		t := got.Task
		for _, ev := range events[:1+random.IntN(len(events))] {
			ev.Now, ev.Fence = now, t.Fence
			c, err := signalbox.Next(t, ev)
			if err != nil {
				return err
			}
			if t, err = b.Apply(b.ctx, c, now); err != nil {
				return err
			}
			wrote()
		}
	}
	return nil
}

// fitsTogether checks that the parts of a snapshot, whose heads are whole queues, are consistent.
func fitsTogether(s *store.Snapshot) error {
	states, holders := map[signalbox.State]int{}, map[string]signalbox.Task{}
	for _, t := range s.InFlight {
		states[t.State]++
		holders[t.ID] = t
	}
	if d := diff(states, s.Counts.InFlight); d != "" {
		return fmt.Errorf("the counts of what runs differ from the list (-list +counts):\n%s", d)
	}
	used := 0
	for _, slot := range s.Slots {
		if slot.Withheld {
			continue
		}
		used++
		if t := holders[slot.TaskID]; t.Agent != slot.Agent || t.Slot != slot.Slot || t.Fence != slot.Fence {
			return fmt.Errorf("slot %+v is held by no task in flight", slot)
		}
	}
	if used != len(s.InFlight) {
		return fmt.Errorf("%d slots are in use and %d tasks in flight", used, len(s.InFlight))
	}
	queues, limits, pending := map[string]int{}, map[string]int{}, 0
	for queue, list := range s.Heads {
		for i, t := range list {
			if t.State != signalbox.Pending || t.Queue != queue || (i > 0 && !store.CursorOf(&list[i-1]).Before(store.CursorOf(&list[i]))) {
				return fmt.Errorf("task %d of queue %s is %+v", i, queue, t)
			}
			queues[queue]++
			limits[t.Limit]++
			pending++
		}
	}
	if d := diff([]any{queues, limits, pending}, []any{s.Counts.Queues, s.Counts.Limits, s.Counts.Pending}); d != "" {
		return fmt.Errorf("the counts of what waits differ from the lists (-lists +counts):\n%s", d)
	}
	return nil
}

// fitsJournal wants a snapshot to have exactly the tasks that are waiting and in flight by the journal up to
// its entry.
func fitsJournal(s *store.Snapshot, entries []signalbox.Entry) error {
	want := map[string]signalbox.State{}
	for _, e := range entries {
		if e.Seq > s.Entry {
			break
		}
		if want[e.QueueID] = e.State; e.State.Terminal() {
			delete(want, e.QueueID)
		}
	}
	got := map[string]signalbox.State{}
	for _, list := range append(slices.Collect(maps.Values(s.Heads)), s.InFlight) {
		for _, t := range list {
			got[t.ID] = t.State
		}
	}
	if d := diff(want, got); d != "" {
		return fmt.Errorf("at entry %d the journal and the snapshot differ (-journal +snapshot):\n%s", s.Entry, d)
	}
	return nil
}
