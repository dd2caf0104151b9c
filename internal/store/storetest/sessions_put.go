package storetest

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// stale wants a change of a session to be refused because the stored row is
// another one than it was made from, and to leave no trace.
func (b *fixture) stale(what string, before, after signalbox.Session) {
	b.Helper()
	stored := everything(b)
	if err := b.changeSession(before, after); err != store.ErrStale {
		b.Fatalf("%s: got %v, want ErrStale", what, err)
	}
	b.same(what+": what is stored", everything(b), stored)
}

func sessionsStale(b *fixture) {
	none, s := signalbox.Session{}, aSession("s")
	b.stale("there is none", s, s)
	b.must(b.changeSession(none, s))
	b.stale("there is one", none, s)
	for n, change := range []func(*signalbox.Session){
		func(s *signalbox.Session) { s.Agent = "b" }, func(s *signalbox.Session) { s.Source = "cli" },
		func(s *signalbox.Session) { s.Owner = "" }, func(s *signalbox.Session) { s.Title = "t" },
		func(s *signalbox.Session) { s.State = signalbox.SessionGone }, func(s *signalbox.Session) { s.Turns++ },
		func(s *signalbox.Session) { s.CreatedAt = start }, func(s *signalbox.Session) { s.LastUsed = start.Add(time.Second) },
		func(s *signalbox.Session) { s.Current = true }, func(s *signalbox.Session) { s.ID = "r" },
	} {
		other := aSession("s")
		change(&other)
		b.stale("it is another", other, s)
		b.same("entries", len(b.journal()), 1)
		if n == 0 {
			b.must(b.changeSession(b.session("s"), s)) // as it is
		}
	}

	before := b.session("s")
	b.finish(b.bind("a", "s").ID)
	after := before
	after.State = signalbox.SessionArchived
	b.stale("a turn was run since", before, after)
	b.same("turns", b.session("s").Turns, before.Turns+1)

	elsewhere := b.session("s")
	elsewhere.LastUsed = elsewhere.LastUsed.In(time.FixedZone("", 3600))
	b.must(b.changeSession(elsewhere, after)) // the same moment
	b.same("session", b.session("s"), after)
}

func sessionsUnderWay(b *fixture) {
	s := aSession("s")
	b.putSession(s)
	t := b.submit(inSession("s"), notBefore(start.Add(time.Minute)))
	kept := func(when string) {
		b.Helper()
		now, stored := b.session("s"), everything(b)
		for _, state := range []signalbox.SessionState{signalbox.SessionArchived, signalbox.SessionGone} {
			away := now
			away.State = state
			b.refused(b.changeSession(now, away), signalbox.CodeConflict)
			b.same(when, everything(b), stored)
			away.Turns++
			b.stale(when+", read long ago", away, away)
		}
		now.Title = "still to be changed " + when
		b.must(b.changeSession(b.session("s"), now))
	}
	kept("before its time has come")
	b.pass(time.Minute)
	b.wake(10, t.ID)
	kept("while a turn is ready")
	b.claim("a")
	kept("while a turn is offered")
	b.acceptIn(t.ID, "s")
	kept("while a turn runs")
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventCancel})
	kept("while a turn is cancelled")
	b.submit(inSession("r"))
	b.submit()
	b.finish(t.ID)
	s = b.session("s")
	s.State = signalbox.SessionArchived
	b.putSession(s)
	b.same("state", b.session("s").State, signalbox.SessionArchived)

	b.submit(inSession("s")) // no chat: it may wait there
	b.refused(b.changeSession(s, s), signalbox.CodeConflict)
}

// sessionsRace stores a chat in a session while that is put away: one of the
// two is refused.
func sessionsRace(b *fixture) {
	for range 30 {
		b.putSession(aSession("s"))
		s := b.session("s")
		away := s
		away.State = signalbox.SessionArchived
		chat := b.submission(inSession("s"), talking(store.ChatSession{Agent: "a"}))
		errs := together(2, func(i int) error {
			if i == 0 {
				return b.changeSession(s, away)
			}
			return second(b.Submit(b.ctx, chat))
		})
		turns, err := b.SessionTasks(b.ctx, "s", 10)
		b.must(err)
		if errs[0] == nil {
			b.refused(errs[1], signalbox.CodeConflict)
			b.same("turns of a session that was put away", len(turns), 0)
			continue
		}
		// The chat came first: it made the session current, or is under way.
		if errs[0] != store.ErrStale {
			b.refused(errs[0], signalbox.CodeConflict)
		}
		b.must(errs[1])
		b.same("state of a session with a turn under way", b.session("s").State, signalbox.SessionActive)
		b.happen(turns[0].ID, signalbox.Event{Kind: signalbox.EventCancel})
	}
}

// sessionsLostUpdate counts in a session from many sides: what one of them
// read is stale as soon as another one has written.
func sessionsLostUpdate(b *fixture) {
	b.putSession(aSession("s"))
	const writers = 16
	for _, err := range together(writers, func(int) error {
		for {
			before, err := b.Session(b.ctx, "s")
			if err != nil {
				return err
			}
			after := before
			after.Turns++
			if err = b.changeSession(before, after); err != store.ErrStale {
				return err
			}
		}
	}) {
		b.must(err)
	}
	b.same("turns", b.session("s").Turns, aSession("s").Turns+writers)
	b.same("entries", len(b.journal()), 1+writers)
}
