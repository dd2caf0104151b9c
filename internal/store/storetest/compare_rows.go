package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

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

// someToolQueues are the tool queues of histories, with their number of slots.
var someToolQueues = map[string]int{"q": 1, "r": 2}

// beat sends the heartbeat of one of a few directors; sometimes one that was restarted, has another version
// or key, or leaves.
func (p *pair) beat(t *rapid.T) {
	name := pick(t, "director", "x:1", "y:1", "y:1", "z:1")
	d := store.Director{
		ID: name, Run: pick(t, "run", "1", "1", "1", "2"), URL: "http://" + name, StartedAt: start, Expires: p.now.Add(directorLease),
		Version: pick(t, "version", "1.2.3", "1.2.3", "1.2.3", "1.2.4", "1.3.0"), Key: pick(t, "key", "k", "k", "k", "k", "other"),
	}
	if d.Run == "2" {
		d.StartedAt = start.Add(time.Second)
	}
	if rapid.IntRange(0, 9).Draw(t, "leaves") == 0 {
		d.Expires = p.now
	}
	b := store.Beat{Director: d, Take: p.agentsOf(t, "take"), Drop: p.agentsOf(t, "drop"), Now: p.now}
	for _, agent := range p.agentsOf(t, "heard") {
		b.Heard = append(b.Heard, store.Heard{
			Agent: agent, At: p.now.Add(-pick(t, "ago", 0, time.Second, time.Hour, 2*store.ForgetAfter)), Status: []byte(pick(t, "said", "", "{}")),
		})
	}
	answer, err := both(t, p, "Beat", func(s store.Store) (store.Peers, error) { return s.Beat(p.ctx, b) })
	if err == nil {
		p.checkTaken(t, &b, &answer)
	}
}

func (p *pair) agentsOf(t *rapid.T, what string) []string {
	return pick(t, what, nil, nil, []string{"a"}, []string{"b", "a"}, someAgents)
}

// checkTaken: an agent has one live holder, and it is the one that was told so.
func (p *pair) checkTaken(t *rapid.T, b *store.Beat, answer *store.Peers) {
	held, err := p.a.Holders(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range b.Take {
		took, holder := slices.Contains(answer.Taken, agent), held[agent]
		alive := slices.ContainsFunc(answer.Directors, func(d store.Director) bool { return d.ID == holder })
		switch {
		case took && holder != b.Director.ID:
			t.Fatalf("%s took agent %s, which %q holds", b.Director.ID, agent, holder)
		case !took && b.Director.Alive(b.Now) && !alive:
			t.Fatalf("%s could not take agent %s, which nobody holds who lives", b.Director.ID, agent)
		}
	}
}

// tickets takes a step of a tool queue, with new calls and with earlier ones.
func (p *pair) tickets(t *rapid.T) {
	queue := pick(t, "tool queue", "q", "r", "r")
	s := store.TicketStep{
		Queue: queue, Concurrent: someToolQueues[queue], MaxWaiters: pick(t, "max waiters", 0, 0, 2),
		LeaseIdle: pick(t, "idle bound", 0, time.Minute), LeaseHold: pick(t, "hold bound", 0, 0, time.Hour),
		Leave: p.callsOf(t, "leave"), Keep: p.callsOf(t, "keep"), Idle: p.callsOf(t, "idle"), Unused: p.callsOf(t, "unused"),
		Take: pick(t, "rate", nil, everySecond), MaxKeys: pick(t, "max keys", 0, 2),
		EndSessions: pick(t, "end sessions", nil, nil, nil, nil, []string{"s"}), Now: p.now, Expires: p.now.Add(ticketLease),
	}
	for range rapid.IntRange(0, 2).Draw(t, "calls") {
		p.called++
		session := pick(t, "session", "", "", "s", "r")
		s.Enter = append(s.Enter, store.Ticket{
			Queue: queue, ID: callID(p.called), Owner: pick(t, "owner", "x:1", "y:1"), Session: session, Agent: "a", Tool: "report", Key: pick(t, "key", "", "", "k"),
			Execution: id(p.called), Leased: session != "" && rapid.Bool().Draw(t, "leased"),
		})
	}
	switch key := pick(t, "gate", "", "k", "none", "none", "none"); {
	case key == "none":
	case rapid.Bool().Draw(t, "open"):
		s.Gates = []store.ToolGate{{Key: key}}
	default:
		s.Gates = []store.ToolGate{{Key: key, Until: p.now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "closed for")) * time.Millisecond), Why: "429"}}
	}
	what := fmt.Sprintf("Tickets %+v", s)
	_, _ = both(t, p, what, func(to store.Store) (store.ToolLine, error) { return to.Tickets(p.ctx, s) })
}

// everySecond is a rate of one start per second, with a burst of two.
func everySecond(full, now time.Duration) (time.Duration, bool) {
	if full = max(full, now); full-now > time.Second {
		return full, false
	}
	return full + time.Second, true
}

func callID(n int) string { return fmt.Sprintf("call-%d", n) }

func (p *pair) callsOf(t *rapid.T, what string) (list []string) {
	for range pick(t, what, 0, 0, 1, 2) {
		list = append(list, callID(max(1, p.called-rapid.IntRange(0, 9).Draw(t, "call"))))
	}
	return list
}

// peers reads the directors, the holders of agents, and the tool queues.
func (s *survey) peers() {
	list, err := s.r.Directors(s.ctx)
	s.say("Directors", list, err)
	held, err := s.r.Holders(s.ctx)
	s.say("Holders", held, err)
	to, steps := s.r.(store.Writer)
	if !steps {
		return
	}
	for queue := range someToolQueues {
		line, err := to.Tickets(s.ctx, store.TicketStep{Queue: queue})
		s.say("Tickets "+queue, line, err)
	}
}

// mostHolders is the highest number of tickets of one key that hold a slot.
func mostHolders(line []store.Ticket) (most int) {
	of := map[string]int{}
	for _, t := range line {
		if t.Fence > 0 {
			of[t.Key]++
			most = max(most, of[t.Key])
		}
	}
	return most
}

// checkTickets: a slot of a tool queue is held by one ticket at a time, and a ticket waits only if no slot
// was free.
func checkTickets(t interface{ Fatalf(string, ...any) }, all map[string]any) {
	for queue, slots := range someToolQueues {
		state, _ := all["Tickets "+queue].(store.ToolLine)
		line := state.Tickets
		fences, places := map[int64]bool{}, map[int64]bool{}
		for _, x := range line {
			if x.Queue != queue || places[x.Place] && x.Fence == 0 {
				t.Fatalf("tool queue %s has the ticket %+v", queue, x)
			}
			places[x.Place] = true
			if x.Fence > 0 && fences[x.Fence] {
				t.Fatalf("fence %d of tool queue %s is held twice", x.Fence, queue)
			}
			fences[x.Fence] = x.Fence > 0
		}
		if n := mostHolders(line); n > slots {
			t.Fatalf("%d tickets hold the %d slots of tool queue %s", n, slots, queue)
		}
	}
}
