package engine

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// CurrentSession returns the id of the conversation that chats of an agent go
// on with, "" if there is none.
func (e *Engine) CurrentSession(ctx context.Context, agent string) (string, error) {
	page, err := e.store.Sessions(ctx, store.SessionQuery{Agent: agent, Current: true, Limit: 1})
	if err != nil || len(page.Sessions) == 0 {
		return "", err
	}
	return page.Sessions[0].ID, nil
}

// ArchiveSession puts a conversation away: chats no longer go on with it.
// Archiving twice is no error.
//
// Errors: CodeNotFound; CodeConflict while a turn of it waits or runs.
func (e *Engine) ArchiveSession(ctx context.Context, id, by string) (signalbox.Session, error) {
	for {
		s, err := e.changeSession(ctx, id, by, func(s signalbox.Session, missing error) (signalbox.Session, string, error) {
			s.State, s.Current = signalbox.SessionArchived, false
			return s, "archived", missing
		})
		if signalbox.CodeOf(err) != signalbox.CodeConflict {
			return s, err
		}
		turns, err := e.store.SessionTasks(ctx, id, 1)
		if err != nil {
			return s, err
		}
		if len(turns) > 0 { // else it has ended since
			return s, signalbox.Errorf(signalbox.CodeConflict, "session %s has a turn under way, %s (%s): wait for it or cancel it first", id, turns[0].ID, turns[0].State)
		}
	}
}

// RestoreSession makes a conversation the current one of its agent again.
//
// Errors: CodeNotFound; CodeConflict where its agent no longer has it.
func (e *Engine) RestoreSession(ctx context.Context, id, by string) (signalbox.Session, error) {
	return e.changeSession(ctx, id, by, func(s signalbox.Session, missing error) (signalbox.Session, string, error) {
		if missing == nil && s.State == signalbox.SessionGone {
			return s, "", signalbox.Errorf(signalbox.CodeConflict, "agent %s no longer has session %s: begin a new one", s.Agent, id)
		}
		s.State, s.Current = signalbox.SessionActive, true
		return s, "restored", missing
	})
}

// decision is what becomes of a session, and how that is told; "" leaves it as
// it is. missing is the error where there is none: s is zero then.
type decision func(s signalbox.Session, missing error) (after signalbox.Session, told string, err error)

// changeSession stores what is decided about a session as it is now. Where it
// changed in the meantime it is read and decided anew: what an agent accepts
// at the same time is not undone. It returns the session as stored.
func (e *Engine) changeSession(ctx context.Context, id, by string, decide decision) (signalbox.Session, error) {
	for {
		before, missing := e.store.Session(ctx, id)
		if missing != nil && signalbox.CodeOf(missing) != signalbox.CodeNotFound {
			return before, missing
		}
		after, told, err := decide(before, missing)
		if err != nil || told == "" {
			return before, err
		}
		err = e.store.PutSession(ctx, before, after, signalbox.Entry{
			At: e.Now(), Kind: signalbox.EventSession, Agent: after.Agent, Message: "session " + id + " " + told, By: by, Owner: after.Owner,
		})
		switch {
		case errors.Is(err, store.ErrStale):
			continue
		case err != nil:
			return before, err
		}
		e.hub.noted()
		return after, nil
	}
}

// TakeSession makes the conversation in which an agent ran chat t, as it says,
// the one that its chats go on with: for agents that name their conversations
// themselves. One that another agent holds, or that someone has put away,
// stays as it is.
func (e *Engine) TakeSession(ctx context.Context, t signalbox.Task, id string) error {
	_, err := e.changeSession(ctx, id, "", func(s signalbox.Session, missing error) (signalbox.Session, string, error) {
		if missing != nil {
			now := e.Now()
			s = signalbox.Session{
				ID: id, Agent: t.Agent, Source: t.Source, Owner: t.Owner, Title: t.Preview, Turns: 1, CreatedAt: now, LastUsed: now,
			}
		} else if s.Agent != t.Agent || s.State == signalbox.SessionArchived || s.Current {
			return s, "", nil
		}
		s.State, s.Current = signalbox.SessionActive, true
		return s, "is the current one", nil
	})
	return err
}

// ReconcileSessions makes the stored sessions of an agent agree with those
// that it said it had when it was asked: what it no longer has is gone, unless
// a turn of it is under way, or it was not used before that; what was thought
// gone and is there is active again; what it has and nobody knew becomes
// known, as of this agent.
func (e *Engine) ReconcileSessions(ctx context.Context, agent string, has []signalbox.Session, asked time.Time) error {
	there := make(map[string]bool, len(has))
	for _, s := range has {
		there[s.ID] = true
	}
	known := map[string]bool{}
	for before := ""; ; {
		page, err := e.store.Sessions(ctx, store.SessionQuery{Agent: agent, Before: before, Limit: batch})
		if err != nil {
			return err
		}
		for _, s := range page.Sessions {
			known[s.ID] = true
			if err := e.reconcile(ctx, s, there[s.ID], asked); err != nil {
				return err
			}
		}
		if before = page.Next; before == "" {
			break
		}
	}
	for _, s := range has {
		if known[s.ID] {
			continue
		}
		if err := e.adopt(ctx, agent, s); err != nil {
			return err
		}
	}
	return nil
}

// reconcile makes one session, which is listed as s, agree with its agent.
func (e *Engine) reconcile(ctx context.Context, s signalbox.Session, there bool, asked time.Time) error {
	if _, told := agree(s, there, asked); told == "" {
		return nil // as most are: none of them is read again
	}
	_, err := e.changeSession(ctx, s.ID, "", func(now signalbox.Session, _ error) (signalbox.Session, string, error) {
		if now.Agent != s.Agent {
			return now, "", nil // it went while we looked, to another or for good
		}
		after, told := agree(now, there, asked)
		return after, told, nil
	})
	if signalbox.CodeOf(err) == signalbox.CodeConflict {
		return nil // a turn of it is under way: that will show whether it is there
	}
	return err
}

// agree is what becomes of a session whose agent said whether it has it.
func agree(s signalbox.Session, there bool, asked time.Time) (after signalbox.Session, told string) {
	switch {
	case there && s.State == signalbox.SessionGone:
		s.State = signalbox.SessionActive
		return s, "is back"
	case there, s.State == signalbox.SessionGone, s.Turns == 0:
		return s, ""
	case !s.LastUsed.Before(asked):
		return s, "" // it may have begun after the list was made
	}
	s.State, s.Current = signalbox.SessionGone, false
	return s, "is gone: agent " + s.Agent + " no longer has it"
}

// adopt makes a conversation known that the agent has and nobody here began.
// One that another agent holds stays with that one.
func (e *Engine) adopt(ctx context.Context, agent string, found signalbox.Session) error {
	if !signalbox.ValidSessionID(found.ID) {
		return nil
	}
	found.Agent, found.Source, found.State, found.Current = agent, signalbox.SourceAgent, signalbox.SessionActive, false
	if found.CreatedAt.IsZero() {
		found.CreatedAt = found.LastUsed
	}
	_, err := e.changeSession(ctx, found.ID, "", func(s signalbox.Session, missing error) (signalbox.Session, string, error) {
		if missing == nil {
			return s, "", nil
		}
		return found, "was found at its agent", nil
	})
	return err
}
