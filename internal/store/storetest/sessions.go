package storetest

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func sessionsRules() []rule {
	return []rule{
		{"a session is stored by id, as it is", sessionsStored},
		{"the entry is written when something differs", sessionsEntry},
		{"one session of an agent is current", sessionsCurrent},
		{"the last used is listed first, then the highest id", sessionsOrder},
		{"each filter selects", sessionsFilters},
		{"pages have no gaps and nothing twice", sessionsPages},
		{"the limit of a page is 1 to 1,000", sessionsLimit},
		{"an invalid cursor is refused", sessionsBadCursor},
		{"a turn is counted when it is accepted, and once", sessionsTurns},
		{"a session named at the end of a turn counts it", sessionsTurnAtEnd},
		{"a session that its agent runs is active again", sessionsActiveAgain},
		{"a session that goes to another agent is not current there", sessionsMove},
		{"a turn changes neither source, owner, title nor creation", sessionsKeep},
		{"an unused archived session is pruned", sessionsPruned},
		{"a session that changed since it was read is stale", sessionsStale},
		{"a session with a turn in progress is not archived", sessionsUnderWay},
		{"a session is archived or continued, not both", sessionsRace},
		{"changes made at once lose nothing", sessionsLostUpdate},
	}
}

func aSession(name string) signalbox.Session {
	return signalbox.Session{
		ID: name, Agent: "a", Source: signalbox.SourceWeb, Owner: "user:ann", Title: "about " + name,
		State: signalbox.SessionActive, Turns: 3, CreatedAt: start.Add(-time.Hour), LastUsed: start,
	}
}

func (b *fixture) putSession(s signalbox.Session) {
	b.Helper()
	before, err := b.Session(b.ctx, s.ID)
	if err != nil {
		b.refused(err, signalbox.CodeNotFound)
	}
	b.must(b.changeSession(before, s))
}

func (b *fixture) changeSession(before, after signalbox.Session) error {
	return b.PutSession(b.ctx, before, after, signalbox.Entry{At: b.now, Kind: signalbox.EventSession, Agent: after.Agent})
}

// sessions reads all pages.
func (b *fixture) sessions(q store.SessionQuery) []string {
	b.Helper()
	list, err := sessionPages(b.ctx, b.Store, q)
	b.must(err)
	var names []string
	for _, s := range list {
		names = append(names, s.ID)
	}
	return names
}

func sessionsStored(b *fixture) {
	for _, h := range append(hostile(), "s") {
		s := aSession(h)
		s.Owner, s.Title, s.Agent = h, h, h
		b.putSession(s)
		b.same("session", b.session(h), s)
		s.Turns, s.State, s.LastUsed = 0, signalbox.SessionGone, start.Add(time.Second)
		b.putSession(s)
		b.same("session", b.session(h), s)
	}
	b.putSession(signalbox.Session{ID: "plain", Agent: "a", LastUsed: start})
	b.same("without a state", b.session("plain"), signalbox.Session{ID: "plain", Agent: "a", State: signalbox.SessionActive, LastUsed: start})
}

func sessionsEntry(b *fixture) {
	s := aSession("s")
	b.putSession(s)
	b.putSession(s)
	b.same("entries", kinds(b.journal()), []signalbox.EventKind{"session"})
	for n, change := range []func(){
		func() { s.Agent = "b" }, func() { s.Source = "cli" }, func() { s.Owner = "" }, func() { s.Title = "t" },
		func() { s.State = signalbox.SessionArchived }, func() { s.Turns++ }, func() { s.CreatedAt = start },
		func() { s.LastUsed = start.Add(1e6) }, func() { s.Current = true },
	} {
		change()
		b.putSession(s)
		b.same("entries", len(b.journal()), n+2)
	}
}

func sessionsCurrent(b *fixture) {
	put := func(name, agent string, current bool) {
		s := aSession(name)
		s.Agent, s.Current = agent, current
		b.putSession(s)
	}
	put("s", "a", true)
	put("r", "a", true)
	put("q", "b", true)
	b.current("a", "r")
	b.current("b", "q")
	put("q", "a", true) // moved to the other agent
	b.current("a", "q")
	b.current("b", "")
	put("q", "a", false)
	b.current("a", "")
	b.same("entries: of what was put", len(b.journal()), 5)
}

func sessionsOrder(b *fixture) {
	for n, name := range []string{"b", "a", "C", "z"} {
		s := aSession(name)
		s.LastUsed = start.Add(time.Duration(n/3) * time.Second)
		b.putSession(s)
	}
	for _, agent := range []string{"", "a"} {
		b.same("sessions", b.sessions(store.SessionQuery{Agent: agent, Limit: 2}), []string{"z", "b", "a", "C"})
	}
}

func sessionsFilters(b *fixture) {
	for n, change := range []func(*signalbox.Session){
		func(*signalbox.Session) {}, func(s *signalbox.Session) { s.Agent = "b" }, func(s *signalbox.Session) { s.Owner = "" },
		func(s *signalbox.Session) { s.Source = "cli" }, func(s *signalbox.Session) { s.State = signalbox.SessionArchived },
		func(s *signalbox.Session) { s.Current = true },
	} {
		s := aSession(fmt.Sprint("s", n))
		change(&s)
		b.putSession(s)
	}
	for _, c := range []struct {
		name  string
		query store.SessionQuery
		want  []string
	}{
		{"agent", store.SessionQuery{Agent: "b"}, []string{"s1"}},
		{"owner", store.SessionQuery{Owner: "user:ann", Agent: "a"}, []string{"s5", "s4", "s3", "s0"}},
		{"source", store.SessionQuery{Source: "cli"}, []string{"s3"}},
		{"state", store.SessionQuery{State: signalbox.SessionArchived}, []string{"s4"}},
		{"active", store.SessionQuery{State: signalbox.SessionActive, Agent: "a"}, []string{"s5", "s3", "s2", "s0"}},
		{"current", store.SessionQuery{Current: true}, []string{"s5"}},
		{"current of an agent", store.SessionQuery{Current: true, Agent: "a"}, []string{"s5"}},
		{"current, and else", store.SessionQuery{Current: true, Agent: "a", Source: "cli"}, nil},
		{"nothing fits", store.SessionQuery{Agent: "nobody"}, nil},
	} {
		for _, limit := range []int{1, 2, 10} {
			c.query.Limit = limit
			b.same(fmt.Sprintf("%s, pages of %d", c.name, limit), b.sessions(c.query), c.want)
		}
	}
}

func sessionsPages(b *fixture) {
	for n := range 20 {
		s := aSession(fmt.Sprintf("s_%02d", n))
		s.LastUsed = start.Add(time.Duration(n/5) * time.Second)
		b.putSession(s)
	}
	want := b.sessions(store.SessionQuery{Limit: 1000})
	b.same("length", len(want), 20)
	for _, size := range []int{1, 3, 10, 19} {
		b.same(fmt.Sprintf("pages of %d", size), b.sessions(store.SessionQuery{Limit: size}), want)
	}
}

func sessionsLimit(b *fixture) {
	for _, limit := range []int{-1, 0, 1001} {
		_, err := b.Sessions(b.ctx, store.SessionQuery{Limit: limit})
		b.refused(err, signalbox.CodeValidation)
	}
}

func sessionsBadCursor(b *fixture) {
	b.putSession(aSession("s"))
	for _, cursor := range []string{"x", "-", "1", "_s", "x_s", "'; DROP TABLE sessions; --", "\x00"} {
		_, err := b.Sessions(b.ctx, store.SessionQuery{Limit: 1, Before: cursor})
		b.refused(err, signalbox.CodeValidation)
	}
}

func sessionsTurns(b *fixture) {
	for n := range 3 {
		t := b.bind("a", "s")
		b.same("turns at the acceptance", b.session("s").Turns, n+1)
		b.acceptIn(t.ID, "s") // the agent reports the same session again
		b.happen(t.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, SessionID: "s"})
		b.same("turns at the end", b.session("s").Turns, n+1)
	}
}

func sessionsTurnAtEnd(b *fixture) {
	end := signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, SessionID: "s"}
	for n := range 2 {
		t := b.submit()
		b.claim("a")
		b.accept(t.ID)
		b.happen(t.ID, end)
		b.same("turns, named at the end", b.session("s").Turns, n+1)
	}
	t := b.submit(inSession("s"))
	b.claim("a")
	b.happen(t.ID, end)
	b.same("turns, never accepted before its end", b.session("s").Turns, 3)
}

func sessionsActiveAgain(b *fixture) {
	for _, state := range []signalbox.SessionState{signalbox.SessionGone, signalbox.SessionArchived} {
		s := aSession("s")
		s.State = state
		b.putSession(s)
		b.finish(b.bind("a", "s").ID)
		b.same("state", b.session("s").State, signalbox.SessionActive)
	}
}

func sessionsMove(b *fixture) {
	s := aSession("s")
	s.Current = true
	b.putSession(s)
	r := aSession("r")
	r.Agent, r.Current = "b", true
	b.putSession(r)
	b.bind("b", "s")
	b.current("a", "")
	b.current("b", "r")
}

func sessionsKeep(b *fixture) {
	s := aSession("s")
	s.Current = true
	b.putSession(s)
	b.pass(time.Minute)
	b.bind("a", "s")
	s.Turns, s.LastUsed = s.Turns+1, b.now
	b.same("session", b.session("s"), s)
}

func sessionsPruned(b *fixture) {
	s := aSession("s")
	s.State = signalbox.SessionArchived
	b.putSession(s)
	b.prune(start, 10)
	b.session("s")
	b.prune(start.Add(time.Millisecond), 10)
	_, err := b.Session(b.ctx, "s")
	b.refused(err, signalbox.CodeNotFound)
}

// stale wants a change of a session to be refused, without effect, because the stored row differs from the
// one that it was made from.
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
			b.must(b.changeSession(b.session("s"), s)) // unchanged
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

	b.submit(inSession("s")) // not a chat: it may wait there
	b.refused(b.changeSession(s, s), signalbox.CodeConflict)
}

// sessionsRace submits a chat in a session while the session is archived: one of the two is refused.
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
		// The chat came first: it made the session current, or a turn is in flight.
		if errs[0] != store.ErrStale {
			b.refused(errs[0], signalbox.CodeConflict)
		}
		b.must(errs[1])
		b.same("state of a session with a turn under way", b.session("s").State, signalbox.SessionActive)
		b.happen(turns[0].ID, signalbox.Event{Kind: signalbox.EventCancel})
	}
}

// sessionsLostUpdate changes a session concurrently: what one caller read is stale as soon as another one has
// written.
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
