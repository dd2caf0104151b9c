package store

import (
	"cmp"
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// SessionWriter changes sessions.
type SessionWriter interface {
	// PutSession stores after by its id where the stored row is still before
	// (the zero before: where there is none), else ErrStale. One that is not
	// to be active is refused with CodeConflict while a turn of it is pending
	// or in flight. One that is Current takes that from the agent's other
	// sessions; one without a State is active. The entry is written when it is
	// new or differs from what was stored.
	PutSession(ctx context.Context, before, after signalbox.Session, entry signalbox.Entry) error
}

// SessionReader reads sessions.
type SessionReader interface {
	// Session returns the row of a session, or CodeNotFound.
	Session(ctx context.Context, id string) (signalbox.Session, error)

	// Sessions lists sessions, the last used first; of those used at the same
	// time the one with the highest id, byte by byte.
	Sessions(ctx context.Context, q SessionQuery) (SessionPage, error)

	// SessionTasks lists pending and in-flight tasks of a session by order.
	SessionTasks(ctx context.Context, sessionID string, limit int) ([]signalbox.Task, error)
}

// BeginSession is the row of a conversation that a task begins at an agent.
func BeginSession(t *signalbox.Task, agent string, now time.Time) signalbox.Session {
	return signalbox.Session{
		ID: t.SessionID, Agent: agent, Source: t.Source, Owner: t.Owner, Title: t.Preview,
		State: signalbox.SessionActive, CreatedAt: now, LastUsed: now,
	}
}

// CheckTalk refuses a chat in a conversation that was put away, or that its
// agent no longer has.
func CheckTalk(s *signalbox.Session) error {
	switch s.State {
	case signalbox.SessionArchived:
		return signalbox.Errorf(signalbox.CodeConflict, "session %s is archived: restore it first (signalbox sessions restore %s)", s.ID, s.ID)
	case signalbox.SessionGone:
		return signalbox.Errorf(signalbox.CodeConflict, "agent %s no longer has session %s: leave session_id out, or begin a new one with new_session", s.Agent, s.ID)
	}
	return nil
}

// PutSession is what Store.PutSession does to the row of a session: was is the
// stored one, where there is one, and busy whether a turn of it is under way.
// It returns the row to store; write is false where that is the stored one.
func PutSession(was *signalbox.Session, before, after signalbox.Session, busy bool) (row signalbox.Session, write bool, err error) {
	after.State = cmp.Or(after.State, signalbox.SessionActive)
	var stored signalbox.Session
	if was != nil {
		stored = *was
	}
	switch {
	case !sameSession(stored, before):
		return after, false, ErrStale
	case busy && after.State != signalbox.SessionActive:
		return after, false, signalbox.Errorf(signalbox.CodeConflict, "session %s has a turn under way: wait for it or cancel it first", after.ID)
	}
	return after, !sameSession(stored, after), nil
}

// sameSession compares times as times: a caller may have them in its own zone.
func sameSession(a, b signalbox.Session) bool {
	if !a.CreatedAt.Equal(b.CreatedAt) || !a.LastUsed.Equal(b.LastUsed) {
		return false
	}
	b.CreatedAt, b.LastUsed = a.CreatedAt, a.LastUsed
	return a == b
}

// NotTheirs reports whether an agent names, for a task that came without a
// conversation, one that another agent holds. It is not believed: an agent
// could have the turns of any conversation sent to it whose id it knows. The
// task stays without one, and the session as it was.
func NotTheirs(held *signalbox.Session, before, after *signalbox.Task) bool {
	return held != nil && before.SessionID == "" && held.Agent != after.Agent
}

// BindSession is the row of a session after a change bound it: before and
// after are the rows of the task, was is the session's row, where there is
// one.
//
// A turn is counted once: when the agent accepts it, or when it names the
// session later, at the end. A session that its agent runs is active again,
// whatever was thought of it. One that another agent holds from now on is no
// longer the current one of its old agent; one that an agent chose for a chat
// is the one that its chats go on with.
func BindSession(was *signalbox.Session, before, after *signalbox.Task, now time.Time) signalbox.Session {
	var s signalbox.Session
	if was != nil {
		s = *was
	} else {
		s = BeginSession(after, after.Agent, now)
	}
	if s.Agent != after.Agent {
		s.Agent, s.Current = after.Agent, false
	}
	s.LastUsed, s.State = now, signalbox.SessionActive
	if before.State == signalbox.Dispatching || before.SessionID == "" || s.Turns == 0 {
		s.Turns++
	}
	if after.Mode == signalbox.ModeChat && before.SessionID == "" {
		s.Current = true
	}
	return s
}
