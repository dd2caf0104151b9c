package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// watchedStore is a store in which something can happen between the read of a session and the write based on
// it: the race, without waiting for it.
type watchedStore struct {
	store.Store
	between atomic.Pointer[func()] // before the next PutSession or Submit, once
}

func (w *watchedStore) meanwhile(f func()) { w.between.Store(&f) }

func (w *watchedStore) now() {
	if f := w.between.Swap(nil); f != nil {
		(*f)()
	}
}

func (w *watchedStore) PutSession(ctx context.Context, before, after signalbox.Session, e signalbox.Entry) error {
	w.now()
	return w.Store.PutSession(ctx, before, after, e)
}

func (w *watchedStore) Submit(ctx context.Context, s store.Submission) (store.Submitted, error) {
	w.now()
	return w.Store.Submit(ctx, s)
}

// newWatchedStore returns a fixture over a watchedStore, with an agent coder whose only session has had a
// turn.
func newWatchedStore(t *testing.T) (*fixture, *watchedStore, signalbox.Agent, string) {
	t.Helper()
	b := newFixture(t)
	w := &watchedStore{Store: b.store}
	b.Engine = engine.New(w, engine.Options{Sealer: newSealer(t), Now: b.clock})
	b.SetLive(b)
	a := b.talker("coder", 1)
	session := b.submit(chat("coder", "hello")).SessionID
	b.run(a, 0)
	return b, w, a, session
}

func (b *fixture) session(id string) signalbox.Session {
	b.t.Helper()
	s, err := b.Read().Session(b.t.Context(), id)
	b.must(err)
	return s
}

func inSession(id string) engine.NewTask {
	n := chat("coder", "again")
	n.SessionID = id
	return n
}

func TestSessionChangeDoesNotUndoATurn(t *testing.T) {
	type verbs struct {
		*fixture
		session string
	}
	for _, tt := range []struct {
		name    string
		call    func(v verbs) error
		gone    bool // the session is gone before the call
		running bool // the turn still runs when the change is stored
		code    signalbox.Code
		state   signalbox.SessionState
	}{
		{name: "archive", call: func(v verbs) error { return second(v.ArchiveSession(v.t.Context(), v.session, "")) }, state: "archived"},
		{name: "restore", call: func(v verbs) error { return second(v.RestoreSession(v.t.Context(), v.session, "")) }, state: "active"},
		{name: "archive during the turn", running: true, code: signalbox.CodeConflict, state: "active",
			call: func(v verbs) error { return second(v.ArchiveSession(v.t.Context(), v.session, "")) }},
		{name: "the agent lost it", state: "gone",
			call: func(v verbs) error { return v.ReconcileSessions(v.t.Context(), "coder", nil, v.clock().Add(1e9)) }},
		{name: "the agent lost it, it said before the turn", state: "active",
			call: func(v verbs) error { return v.ReconcileSessions(v.t.Context(), "coder", nil, v.clock()) }},
		{name: "the agent lost it during the turn", running: true, state: "active",
			call: func(v verbs) error { return v.ReconcileSessions(v.t.Context(), "coder", nil, v.clock().Add(1e9)) }},
		{name: "it is back", gone: true, state: "active", call: func(v verbs) error {
			return v.ReconcileSessions(v.t.Context(), "coder", []signalbox.Session{{ID: v.session}}, v.clock())
		}},
		{name: "the agent chose it", gone: true, state: "active", call: func(v verbs) error {
			return v.AdoptSession(v.t.Context(), signalbox.Task{Agent: "coder"}, v.session)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, w, a, session := newWatchedStore(t)
			b.pass(1e9)
			if tt.gone {
				b.must(b.ReconcileSessions(t.Context(), "coder", nil, b.clock()))
			}
			w.meanwhile(func() {
				b.submit(engine.NewTask{Agent: "coder", SessionID: session})
				if tt.running {
					b.work(a)
				} else {
					b.run(a, 0)
				}
			})
			if err := tt.call(verbs{b, session}); signalbox.CodeOf(err) != tt.code {
				t.Fatalf("got %v, want %q", err, tt.code)
			}
			if s := b.session(session); s.Turns != 2 || !s.LastUsed.Equal(b.clock()) || s.State != tt.state {
				t.Errorf("session: %+v; want 2 turns, the last one now, %s", s, tt.state)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestConcurrentlyCreatedSessionIsNotCreatedTwice(t *testing.T) {
	b, w, a, _ := newWatchedStore(t)
	run := signalbox.Task{Agent: "coder"}
	b.submit(engine.NewTask{Agent: "coder"})
	w.meanwhile(func() {
		c := b.claim(a)
		_, err := b.Accept(t.Context(), c.Task, "", "made")
		b.must(err)
	})
	b.must(b.AdoptSession(t.Context(), run, "made"))
	if s := b.session("made"); s.Turns != 1 || !s.Current {
		t.Errorf("session: %+v", s)
	}
	w.meanwhile(func() { b.must(b.AdoptSession(t.Context(), run, "found")) })
	b.must(b.ReconcileSessions(t.Context(), "coder", []signalbox.Session{{ID: "found"}}, b.clock()))
	if s := b.session("found"); s.Turns != 1 || !s.Current {
		t.Errorf("session: %+v", s)
	}
}

// A chat that was checked before the session was archived is refused like one that comes after.
func TestChatInAConcurrentlyArchivedSession(t *testing.T) {
	b, w, _, session := newWatchedStore(t)
	w.meanwhile(func() {
		_, err := b.ArchiveSession(t.Context(), session, "")
		b.must(err)
	})
	meanwhile := b.refusedAs(signalbox.CodeConflict, inSession(session))
	if after := b.refusedAs(signalbox.CodeConflict, inSession(session)); meanwhile.Error() != after.Error() {
		t.Errorf("the refusals differ: %q and %q", meanwhile, after)
	}
	if turns, err := b.Read().SessionTasks(t.Context(), session, 1); err != nil || len(turns) > 0 {
		t.Errorf("an archived session has the turn %v, %v", turns, err)
	}
}

// TestSessionsUnderChats archives, restores and reconciles a session while chats in it are submitted,
// accepted and finished.
func TestSessionsUnderChats(t *testing.T) {
	const chats = 60
	b, _, a, session := newWatchedStore(t)
	var stopped atomic.Bool
	var others sync.WaitGroup
	meddle := func(f func() error) {
		others.Go(func() {
			for !stopped.Load() {
				if err := f(); err != nil && signalbox.CodeOf(err) != signalbox.CodeConflict {
					t.Error(err)
					return
				}
			}
		})
	}
	meddle(func() error { return second(b.ArchiveSession(t.Context(), session, "")) })
	meddle(func() error { return second(b.RestoreSession(t.Context(), session, "")) })
	meddle(func() error { return b.ReconcileSessions(t.Context(), "coder", nil, b.clock().Add(1e9)) })
	meddle(func() error {
		return b.ReconcileSessions(t.Context(), "coder", []signalbox.Session{{ID: session}}, b.clock())
	})
	meddle(func() error { return b.AdoptSession(t.Context(), signalbox.Task{Agent: "coder"}, session) })

	stays := func(when string) { // during a turn, the state of its session stays until the turn ends
		if s, err := b.Read().Session(t.Context(), session); err != nil || s.State != signalbox.SessionActive {
			t.Errorf("%s its session is %s (%v)", when, s.State, err)
		}
	}
	for stored := 0; stored < chats && !t.Failed(); {
		_, err := b.Submit(t.Context(), inSession(session))
		if signalbox.CodeOf(err) == signalbox.CodeConflict {
			continue // it is archived or gone just now
		}
		if err != nil {
			t.Error(err)
			break
		}
		stored++
		stays("while a chat waits")
		run := b.work(a)
		stays("while a chat runs")
		b.finish(run, signalbox.ReasonCompleted)
	}
	stopped.Store(true)
	others.Wait()
	if s := b.session(session); s.Turns != 1+chats {
		t.Errorf("%d turns are counted of %d", s.Turns, 1+chats)
	}
}
