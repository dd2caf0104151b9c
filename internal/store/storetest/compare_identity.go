package storetest

import (
	"context"
	"fmt"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// room is a room for a task, or nil.
func (p *pair) room(t *rapid.T) *store.Room {
	if rapid.Bool().Draw(t, "no room") {
		return nil
	}
	r := &store.Room{
		Queues: pick(t, "room's queues", []string{"agent:a", "work"}, []string{"bypass:a"}, someQueues, nil),
		Fleet:  pick(t, "room's fleet", 0, 0, 1, 4), Isolated: rapid.Bool().Draw(t, "room is isolated"),
		Must: rapid.IntRange(0, 3).Draw(t, "must") == 0,
	}
	for _, agent := range someAgents[:rapid.IntRange(1, len(someAgents)).Draw(t, "room's agents")] {
		r.Agents = append(r.Agents, store.RoomAgent{Name: agent, Slots: rapid.IntRange(0, 3).Draw(t, "room's slots")})
	}
	return r
}

// chat submits a turn of an agent's conversation.
func (p *pair) chat(t *rapid.T) {
	p.n++
	agent := pick(t, "agent", someAgents...)
	p.store(t, store.Submission{
		Task: signalbox.Task{
			ID: id(p.n), State: signalbox.Pending, Mode: signalbox.ModeChat, Queue: signalbox.AgentQueue(agent),
			Limit: signalbox.LimitChat(agent), SessionID: pick(t, "asked for", "", "", "", "s", "x"), MaxAttempts: 3,
			Owner: pick(t, "owner", "", "user:ann"), Source: signalbox.SourceWeb, Preview: "hello", CreatedAt: p.now,
		},
		Request: signalbox.Request{Prompt: "hello"}, Cap: pick(t, "cap", 0, 3), Room: p.room(t), Now: p.now,
		Chat: &store.ChatSession{Agent: agent, Continue: rapid.Bool().Draw(t, "continue"), New: pick(t, "new", "", "s", "r", id(p.n))},
	})
}

// session stores a session, one that tasks name or another, with its current or an earlier row.
func (p *pair) session(t *rapid.T) {
	s := signalbox.Session{
		ID: pick(t, "session", "s", "r", "x"), Agent: pick(t, "agent", someAgents...), Source: pick(t, "source", "", signalbox.SourceWeb),
		Owner: pick(t, "owner", "", "user:ann"), Title: "about", Turns: rapid.IntRange(0, 2).Draw(t, "turns"),
		State:     pick(t, "state", "", signalbox.SessionActive, signalbox.SessionArchived, signalbox.SessionGone),
		CreatedAt: p.soon(t, "created"), LastUsed: p.now, Current: rapid.Bool().Draw(t, "current"),
	}
	e := signalbox.Entry{At: p.now, Kind: signalbox.EventSession, Agent: s.Agent}
	var before signalbox.Session
	if held, err := p.a.Session(p.ctx, s.ID); err == nil && rapid.IntRange(0, 4).Draw(t, "read first") > 0 {
		before = held
	}
	if rapid.IntRange(0, 9).Draw(t, "read long ago") == 0 {
		before.Turns++
	}
	_, _ = both(t, p, "PutSession", func(to store.Store) (bool, error) { return true, to.PutSession(p.ctx, before, s, e) })
}

func (p *pair) keepStale(t *rapid.T) {
	name, s := p.anyID(t), aStale(int64(rapid.IntRange(1, 20).Draw(t, "fence")))
	s.At = p.now
	_, _ = both(t, p, "KeepStale", func(to store.Store) (bool, error) { return true, to.KeepStale(p.ctx, name, s) })
}

// credential adds, changes or removes a token or a user.
func (p *pair) credential(t *rapid.T) {
	name := pick(t, "id", "x", "y")
	token, user := aToken(name), aUser(name)
	token.Name, token.RevokedAt, user.Disabled = pick(t, "name", "", "n"), p.soon(t, "revoked"), rapid.Bool().Draw(t, "disabled")
	what := pick(t, "what", "put token", "delete token", "put user", "delete user")
	_, _ = both(t, p, what, func(s store.Store) (bool, error) {
		switch what {
		case "put token":
			return true, s.PutToken(p.ctx, token)
		case "delete token":
			return s.DeleteToken(p.ctx, name)
		case "put user":
			return true, s.PutUser(p.ctx, user)
		}
		return s.DeleteUser(p.ctx, name)
	})
}

func (p *pair) audit(t *rapid.T) {
	a := anAudit(0)
	a.At, a.Action, a.UserID = p.now, pick(t, "action", "x", "y"), pick(t, "user", "", "ann")
	_, _ = both(t, p, "AppendAudit", func(s store.Store) (signalbox.Audit, error) { return s.AppendAudit(p.ctx, a) })
}

// identityPages compares pages of sessions and of the audit log.
func (p *pair) identityPages(t *rapid.T, limit int) {
	q := store.SessionQuery{Limit: limit}
	if rapid.Bool().Draw(t, "sessions filtered") {
		q.Agent, q.Owner = pick(t, "agent", "", "a"), pick(t, "owner", "", "user:ann")
		q.State, q.Current = pick(t, "state", "", signalbox.SessionActive), rapid.Bool().Draw(t, "current")
	}
	_, _ = both(t, p, fmt.Sprintf("Sessions %+v", q), func(s store.Store) ([]signalbox.Session, error) { return sessionPages(p.ctx, s, q) })
	a := store.AuditQuery{
		After: int64(rapid.IntRange(0, 5).Draw(t, "after")), Newest: rapid.Bool().Draw(t, "newest"), Limit: limit,
		Action: pick(t, "action", "", "x"), UserID: pick(t, "user", "", "ann"), Since: p.soon(t, "since"),
	}
	_, _ = both(t, p, fmt.Sprintf("AuditLog %+v", a), func(s store.Store) ([]signalbox.Audit, error) { return s.AuditLog(p.ctx, a) })
	_, _ = both(t, p, "Children", func(s store.Store) ([]signalbox.Task, error) { return s.Children(p.ctx, id(1), limit) })
}

// sessionPages reads all pages as one list, since each store may cut it differently.
func sessionPages(ctx context.Context, s store.Store, q store.SessionQuery) ([]signalbox.Session, error) {
	var all []signalbox.Session
	for {
		page, err := s.Sessions(ctx, q)
		if err == nil && len(page.Sessions) > q.Limit {
			err = fmt.Errorf("a page of %d has %d sessions", q.Limit, len(page.Sessions))
		}
		all = append(all, page.Sessions...)
		if err != nil || page.Next == "" {
			return all, err
		}
		if page.Next == q.Before {
			return all, fmt.Errorf("the list of sessions does not get past the cursor %q", page.Next)
		}
		q.Before = page.Next
	}
}
