package engine

import (
	"context"

	"github.com/signalbox-ai/signalbox"
)

// To submit is not to read: what a caller gets done with a task of somebody else,
// or in a conversation of somebody else, shows what is in it.

// mayRead reports whether a caller may read what belongs to owner. The director
// itself may, and whoever asks it while it is open.
func mayRead(by signalbox.Principal, owner string) bool { return by.Kind == "" || by.MayRead(owner) }

func notOwn(by signalbox.Principal, what, id string) error {
	return signalbox.Errorf(signalbox.CodeForbidden, "%s %s is somebody else's: that needs the scope %s, which %s does not have", what, clip(id), signalbox.ScopeRead, by.String())
}

// checkTalk refuses a turn in a conversation of somebody else. A conversation is
// its first submitter's. One that is not named is the agent's current one: where
// that is somebody else's, a new one is begun.
func (e *Engine) checkTalk(ctx context.Context, n *NewTask) error {
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
	return notOwn(n.By, "session", id)
}

// sessionOwner returns whose a conversation is: who began it, or, before an agent
// has it, who waits for its first turn.
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
