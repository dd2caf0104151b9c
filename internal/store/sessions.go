package store

import (
	"cmp"
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// SessionWriter changes sessions.
type SessionWriter interface {
	// PutSession stores after by its id if the stored row is still before (the zero before:
	// if there is none), else ErrStale. If after is not active, it is refused with
	// CodeConflict while a turn of it is pending or in flight. If it is Current, the
	// agent's other sessions no longer are; without a State it is active. The entry is
	// written if the session is new or has changed.
	PutSession(ctx context.Context, before, after signalbox.Session, entry signalbox.Entry) error
}

// SessionReader reads sessions.
type SessionReader interface {
	// Session returns the row of a session, or CodeNotFound.
	Session(ctx context.Context, id string) (signalbox.Session, error)

	// Sessions lists sessions, last used first; at equal times the highest id, byte by
	// byte, first.
	Sessions(ctx context.Context, q SessionQuery) (SessionPage, error)

	// SessionTasks lists pending and in-flight tasks of a session by order.
	SessionTasks(ctx context.Context, sessionID string, limit int) ([]signalbox.Task, error)
}

// BeginSession returns the row of a session that a task starts at an agent.
func BeginSession(t *signalbox.Task, agent string, now time.Time) signalbox.Session {
	return signalbox.Session{
		ID: t.SessionID, Agent: agent, Source: t.Source, Owner: t.Owner, Title: t.Preview,
		State: signalbox.SessionActive, CreatedAt: now, LastUsed: now,
	}
}

// CheckChatSession refuses a chat in a session that was archived, or that its agent no
// longer has.
func CheckChatSession(s *signalbox.Session) error {
	switch s.State {
	case signalbox.SessionArchived:
		return signalbox.Errorf(signalbox.CodeConflict, "session %s is archived: restore it first (signalbox sessions restore %s)", s.ID, s.ID)
	case signalbox.SessionGone:
		return signalbox.Errorf(signalbox.CodeConflict, "agent %s no longer has session %s: leave session_id out, or begin a new one with new_session", s.Agent, s.ID)
	}
	return nil
}

// PutSession implements the rules of Store.PutSession: was is the stored row, if any, and
// busy whether a turn of it is under way. It returns the row to store; write is false if it
// equals the stored one.
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

// sameSession compares times as instants, since a caller may use its own zone.
func sameSession(a, b signalbox.Session) bool {
	if !a.CreatedAt.Equal(b.CreatedAt) || !a.LastUsed.Equal(b.LastUsed) {
		return false
	}
	b.CreatedAt, b.LastUsed = a.CreatedAt, a.LastUsed
	return a == b
}

// HeldByOther reports whether an agent names, for a task submitted without a session, a session that another
// agent holds. The report is ignored, or an agent could divert the turns of any session whose id it knows.
// The task stays without a session, and the session unchanged.
func HeldByOther(held *signalbox.Session, before, after *signalbox.Task) bool {
	return held != nil && before.SessionID == "" && held.Agent != after.Agent
}

// BindSession returns the row of a session after a change bound it: before and after are
// the rows of the task, was is the session's row, if any.
//
// A turn is counted once: when the agent accepts it, or when the agent names the session
// later, at the end. A session that its agent runs becomes active again. If another agent
// holds it from now on, it is no longer the current one of its old agent; a session that an
// agent chose for a chat becomes its current one.
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
