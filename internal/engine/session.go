package engine

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// CurrentSession returns the id of the conversation that chats with an agent continue; ""
// if there is none.
func (e *Engine) CurrentSession(ctx context.Context, agent string) (string, error) {
	page, err := e.store.Sessions(ctx, store.SessionQuery{Agent: agent, Current: true, Limit: 1})
	if err != nil || len(page.Sessions) == 0 {
		return "", err
	}
	return page.Sessions[0].ID, nil
}

// ArchiveSession archives a conversation: chats no longer continue it. Archiving twice is
// not an error.
//
// Errors: CodeNotFound; CodeConflict while a turn of it waits or runs.
func (e *Engine) ArchiveSession(ctx context.Context, id, by string) (signalbox.Session, error) {
	for {
		s, err := e.changeSession(ctx, id, by, func(s *signalbox.Session, missing error) (string, error) {
			s.State, s.Current = signalbox.SessionArchived, false
			return "archived", missing
		})
		if signalbox.CodeOf(err) != signalbox.CodeConflict {
			return s, err
		}
		turns, err := e.store.SessionTasks(ctx, id, 1)
		if err != nil {
			return s, err
		}
		if len(turns) > 0 { // else it has ended: retry
			return s, signalbox.Errorf(signalbox.CodeConflict, "session %s has a turn under way, %s (%s): wait for it or cancel it first", id, turns[0].ID, turns[0].State)
		}
	}
}

// RestoreSession makes a conversation the current one of its agent again.
//
// Errors: CodeNotFound; CodeConflict where its agent no longer has it.
func (e *Engine) RestoreSession(ctx context.Context, id, by string) (signalbox.Session, error) {
	return e.changeSession(ctx, id, by, func(s *signalbox.Session, missing error) (string, error) {
		if missing == nil && s.State == signalbox.SessionGone {
			return "", signalbox.Errorf(signalbox.CodeConflict, "agent %s no longer has session %s: begin a new one", s.Agent, id)
		}
		s.State, s.Current = signalbox.SessionActive, true
		return "restored", missing
	})
}

// AdoptSession makes the conversation in which an agent says it ran chat t the agent's
// current one; for agents that choose their own session ids. A session that another agent
// holds, or that was archived, is left unchanged.
func (e *Engine) AdoptSession(ctx context.Context, t signalbox.Task, id string) error {
	_, err := e.changeSession(ctx, id, "", func(s *signalbox.Session, missing error) (string, error) {
		if missing != nil {
			now := e.Now()
			*s = signalbox.Session{ID: id, Agent: t.Agent, Source: t.Source, Owner: t.Owner, Title: t.Preview, Turns: 1, CreatedAt: now, LastUsed: now}
		} else if s.Agent != t.Agent || s.State == signalbox.SessionArchived || s.Current {
			return "", nil
		}
		s.State, s.Current = signalbox.SessionActive, true
		return "is the current one", nil
	})
	return err
}

// ReconcileSessions updates the stored sessions of an agent to the list that it gave when
// asked. Sessions that it no longer has become gone, unless a turn is under way or the
// session was used after asked; gone sessions that it has become active again; sessions
// unknown here are added.
func (e *Engine) ReconcileSessions(ctx context.Context, agent string, has []signalbox.Session, asked time.Time) error {
	present := make(map[string]bool, len(has))
	for _, s := range has {
		present[s.ID] = true
	}
	known := map[string]bool{}
	for before := ""; ; {
		page, err := e.store.Sessions(ctx, store.SessionQuery{Agent: agent, Before: before, Limit: batchSize})
		if err != nil {
			return err
		}
		for _, s := range page.Sessions {
			known[s.ID] = true
			if listed := s; reconcile(&listed, present[s.ID], asked) == "" {
				continue // the common case, without another read
			}
			_, err := e.changeSession(ctx, s.ID, "", func(now *signalbox.Session, _ error) (string, error) {
				if now.Agent != s.Agent {
					return "", nil // it moved to another agent, or was deleted
				}
				return reconcile(now, present[s.ID], asked), nil
			})
			// While a turn is under way, its end will show whether the session exists.
			if err != nil && signalbox.CodeOf(err) != signalbox.CodeConflict {
				return err
			}
		}
		if before = page.Next; before == "" {
			break
		}
	}
	for _, found := range has {
		if known[found.ID] || !signalbox.ValidSessionID(found.ID) {
			continue
		}
		found.Agent, found.Source, found.State, found.Current = agent, signalbox.SourceAgent, signalbox.SessionActive, false
		if found.CreatedAt.IsZero() {
			found.CreatedAt = found.LastUsed
		}
		_, err := e.changeSession(ctx, found.ID, "", func(s *signalbox.Session, missing error) (string, error) {
			if missing == nil { // another agent holds it
				return "", nil
			}
			*s = found
			return "was found at its agent", nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reconcile updates a session, given whether its agent has it. note is "" if it is
// unchanged.
func reconcile(s *signalbox.Session, present bool, asked time.Time) (note string) {
	switch {
	case present && s.State == signalbox.SessionGone:
		s.State = signalbox.SessionActive
		return "is back"
	case present, s.State == signalbox.SessionGone, s.Turns == 0:
		return ""
	case !s.LastUsed.Before(asked): // it may have started after the list was made
		return ""
	}
	s.State, s.Current = signalbox.SessionGone, false
	return "is gone: agent " + s.Agent + " no longer has it"
}

// changeSession stores a session as change leaves it, and returns the stored row. change
// returns a note for the journal; "" leaves the session unchanged. missing is the error if
// there is no such session: s is zero then. If the row changed in the meantime, it is read
// and changed again, so that a concurrent turn is not undone.
func (e *Engine) changeSession(ctx context.Context, id, by string, change func(s *signalbox.Session, missing error) (note string, err error)) (signalbox.Session, error) {
	for {
		before, missing := e.store.Session(ctx, id)
		if missing != nil && signalbox.CodeOf(missing) != signalbox.CodeNotFound {
			return before, missing
		}
		after := before
		note, err := change(&after, missing)
		if err != nil || note == "" {
			return before, err
		}
		err = e.store.PutSession(ctx, before, after, signalbox.Entry{
			At: e.Now(), Kind: signalbox.EventSession, Agent: after.Agent, Message: "session " + id + " " + note, By: by, Owner: after.Owner,
		})
		if err == nil {
			e.hub.journalGrew()
			return after, nil
		}
		if !errors.Is(err, store.ErrStale) {
			return before, err
		}
	}
}

// A caller that gets work done on another owner's task or conversation can learn its content, so that
// requires the right to read.

// mayRead reports whether a caller may read what belongs to owner. The director itself may,
// and so may anyone while the director is open.
func mayRead(by signalbox.Principal, owner string) bool { return by.Kind == "" || by.MayRead(owner) }

func errNotOwner(by signalbox.Principal, what, id string) error {
	return signalbox.Errorf(signalbox.CodeForbidden, "%s %s belongs to somebody else: that needs the scope %s, which %s does not have", what, signalbox.Clip(id), signalbox.ScopeRead, by.String())
}

// checkSessionAccess refuses a turn in another owner's conversation. A conversation belongs
// to its first submitter. If no session is named and the agent's current one belongs to
// someone else, the chat starts a new one.
func (e *Engine) checkSessionAccess(ctx context.Context, n *NewTask) error {
	if mayRead(n.By, "") || n.NewSession {
		return nil
	}
	id := n.SessionID
	if id == "" && n.Mode == signalbox.ModeChat {
		var err error
		if id, err = e.CurrentSession(ctx, n.Agent); err != nil {
			return err
		}
	}
	if id == "" {
		return nil
	}
	owner, known, err := e.sessionOwner(ctx, id)
	switch {
	case err != nil || !known || mayRead(n.By, owner):
		return err
	case n.SessionID == "":
		n.NewSession = true
		return nil
	}
	return errNotOwner(n.By, "session", id)
}

// sessionOwner returns the owner of a conversation: its first submitter, or, before an
// agent has it, the submitter of its first waiting turn.
func (e *Engine) sessionOwner(ctx context.Context, id string) (owner string, known bool, err error) {
	s, err := e.store.Session(ctx, id)
	if signalbox.CodeOf(err) != signalbox.CodeNotFound {
		return s.Owner, err == nil, err
	}
	turns, err := e.store.SessionTasks(ctx, id, 1)
	if err != nil || len(turns) == 0 {
		return "", false, err
	}
	return turns[0].Owner, true, nil
}
