package engine

import (
	"context"
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
	s, err := e.store.Session(ctx, id)
	if err != nil {
		return s, err
	}
	turns, err := e.store.SessionTasks(ctx, id, 1)
	if err != nil {
		return s, err
	}
	if len(turns) > 0 {
		return s, signalbox.Errorf(signalbox.CodeConflict, "session %s has a turn under way, %s (%s): wait for it or cancel it first", id, turns[0].ID, turns[0].State)
	}
	s.State, s.Current = signalbox.SessionArchived, false
	return s, e.putSession(ctx, s, by, "archived")
}

// RestoreSession makes a conversation the current one of its agent again.
//
// Errors: CodeNotFound; CodeConflict where its agent no longer has it.
func (e *Engine) RestoreSession(ctx context.Context, id, by string) (signalbox.Session, error) {
	s, err := e.store.Session(ctx, id)
	if err != nil {
		return s, err
	}
	if s.State == signalbox.SessionGone {
		return s, signalbox.Errorf(signalbox.CodeConflict, "agent %s no longer has session %s: begin a new one", s.Agent, id)
	}
	s.State, s.Current = signalbox.SessionActive, true
	return s, e.putSession(ctx, s, by, "restored")
}

func (e *Engine) putSession(ctx context.Context, s signalbox.Session, by, what string) error {
	err := e.store.PutSession(ctx, s, signalbox.Entry{
		At: e.Now(), Kind: signalbox.EventSession, Agent: s.Agent, Message: "session " + s.ID + " " + what, By: by, Owner: s.Owner,
	})
	e.hub.noted()
	return err
}

// TakeSession makes the conversation in which an agent ran chat t, as it says,
// the one that its chats go on with: for agents that name their conversations
// themselves. One that another agent holds, or that someone has put away,
// stays as it is.
func (e *Engine) TakeSession(ctx context.Context, t signalbox.Task, id string) error {
	s, err := e.store.Session(ctx, id)
	switch {
	case signalbox.CodeOf(err) == signalbox.CodeNotFound:
		now := e.Now()
		s = signalbox.Session{
			ID: id, Agent: t.Agent, Source: t.Source, Owner: t.Owner, Title: t.Preview, State: signalbox.SessionActive,
			Turns: 1, CreatedAt: now, LastUsed: now,
		}
	case err != nil:
		return err
	case s.Agent != t.Agent || s.State == signalbox.SessionArchived || s.Current:
		return nil
	}
	s.State, s.Current = signalbox.SessionActive, true
	return e.putSession(ctx, s, "", "is the current one")
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
			if !there[s.ID] && !s.LastUsed.Before(asked) {
				continue // it may have begun after the list was made
			}
			if err := e.reconcile(ctx, s, there[s.ID]); err != nil {
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

func (e *Engine) reconcile(ctx context.Context, s signalbox.Session, there bool) error {
	switch {
	case there && s.State == signalbox.SessionGone:
		s.State = signalbox.SessionActive
		return e.putSession(ctx, s, "", "is back")
	case there || s.State == signalbox.SessionGone || s.Turns == 0:
		return nil
	}
	turns, err := e.store.SessionTasks(ctx, s.ID, 1)
	if err != nil || len(turns) > 0 {
		return err
	}
	s.State, s.Current = signalbox.SessionGone, false
	return e.putSession(ctx, s, "", "is gone: agent "+s.Agent+" no longer has it")
}

// adopt makes a conversation known that the agent has and nobody here began.
// One that another agent holds stays with that one.
func (e *Engine) adopt(ctx context.Context, agent string, s signalbox.Session) error {
	if !signalbox.ValidSessionID(s.ID) {
		return nil
	}
	if _, err := e.store.Session(ctx, s.ID); signalbox.CodeOf(err) != signalbox.CodeNotFound {
		return err
	}
	s.Agent, s.Source, s.State, s.Current = agent, signalbox.SourceAgent, signalbox.SessionActive, false
	if s.CreatedAt.IsZero() {
		s.CreatedAt = s.LastUsed
	}
	return e.putSession(ctx, s, "", "was found at its agent")
}
