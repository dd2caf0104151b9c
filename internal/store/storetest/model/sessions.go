package model

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// chooseSession sets the session of a chat that names none.
func (s *Store) chooseSession(t *signalbox.Task, k *store.ChatSession) {
	if k == nil || t.SessionID != "" {
		return
	}
	t.SessionID = k.New
	if !k.Continue {
		return
	}
	for id, held := range s.sessions {
		if held.Current && held.Agent == k.Agent && held.State == signalbox.SessionActive {
			t.SessionID = id
		}
	}
}

// setCurrentSession makes the session of a chat the agent's current one, and creates it if it does not exist.
func (s *Store) setCurrentSession(t *signalbox.Task, k *store.ChatSession, now time.Time) {
	if k == nil || t.SessionID == "" {
		return
	}
	held, known := s.sessions[t.SessionID]
	switch {
	case !known:
		held = store.BeginSession(t, k.Agent, now)
	case held.Agent != k.Agent:
		return
	}
	held.Current = true
	s.keepSession(held)
}

// keepSession stores the row of a session. If it is current, the agent's other sessions no longer are.
func (s *Store) keepSession(held signalbox.Session) {
	if held.Current {
		for id, other := range s.sessions {
			if other.Current && other.Agent == held.Agent {
				other.Current = false
				s.sessions[id] = other
			}
		}
	}
	s.sessions[held.ID] = held
}

// checkChatSession refuses a chat in a session that is not active.
func (s *Store) checkChatSession(t *signalbox.Task, k *store.ChatSession) error {
	if held, known := s.sessions[t.SessionID]; known && k != nil {
		return store.CheckChatSession(&held)
	}
	return nil
}

// PutSession stores a session if it is unchanged since before was read.
func (s *Store) PutSession(ctx context.Context, before, after signalbox.Session, e signalbox.Entry) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	var was *signalbox.Session
	if held, known := s.sessions[after.ID]; known {
		was = &held
	}
	row, write, err := store.PutSession(was, before, after, s.turns[after.ID] != nil)
	if err != nil || !write {
		return err
	}
	s.keepSession(row)
	s.note(e)
	return nil
}

// Session returns the row of a session, or CodeNotFound.
func (s *Store) Session(ctx context.Context, id string) (signalbox.Session, error) {
	if err := s.lock(ctx); err != nil {
		return signalbox.Session{}, err
	}
	defer s.mu.Unlock()
	held, ok := s.sessions[id]
	if !ok {
		return signalbox.Session{}, signalbox.Errorf(signalbox.CodeNotFound, "no agent holds session %q", id)
	}
	return held, nil
}

// Sessions lists sessions, last used first.
func (s *Store) Sessions(ctx context.Context, q store.SessionQuery) (store.SessionPage, error) {
	if err := s.lock(ctx); err != nil {
		return store.SessionPage{}, err
	}
	defer s.mu.Unlock()
	var page store.SessionPage
	if q.Limit < 1 || q.Limit > 1000 {
		return page, signalbox.Invalid("limit", "the limit of a page is 1 to 1000, not %d", q.Limit)
	}
	from, err := store.ParseSessionCursor(q.Before)
	if err != nil {
		return page, err
	}
	for _, held := range s.sessionsBefore(from) {
		if !q.Matches(&held) {
			continue
		}
		if len(page.Sessions) == q.Limit {
			page.Next = placeOf(page.Sessions[q.Limit-1]).Cursor()
			break
		}
		page.Sessions = append(page.Sessions, held)
	}
	return page, nil
}

// sessionsBefore returns the sessions that follow a position in the list.
func (s *Store) sessionsBefore(from store.SessionCursor) []signalbox.Session {
	var list []signalbox.Session
	for _, held := range s.sessions {
		if comparePlaces(from, placeOf(held)) < 0 {
			list = append(list, held)
		}
	}
	slices.SortFunc(list, func(a, b signalbox.Session) int { return comparePlaces(placeOf(a), placeOf(b)) })
	return list
}

// placeOf is the position of a session in the list.
func placeOf(s signalbox.Session) store.SessionCursor {
	return store.SessionCursor{Used: s.LastUsed.UnixMilli(), ID: s.ID}
}

// comparePlaces is negative if a comes before b in the list: the last used is first.
func comparePlaces(a, b store.SessionCursor) int {
	return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(b.ID, a.ID))
}
