package storetest

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func chatRules() []rule {
	return []rule{
		{"a chat begins a session, which becomes the current one", chatBegins},
		{"a chat continues the current session", chatContinues},
		{"a chat that asks for a new session gets one", chatNew},
		{"without a session to continue or begin, a chat has none", chatNeither},
		{"each agent has its own current session", chatOwn},
		{"a requested session becomes current and is not changed otherwise", chatAsked},
		{"a requested session that does not exist is created", chatAskedUnknown},
		{"an archived or gone session accepts no chat", chatAskedAway},
		{"a current session that is not active is not continued", chatCurrentAway},
		{"a session of another agent is not changed", chatAskedElsewhere},
		{"a replay changes nothing", chatReplay},
		{"a refused chat changes nothing", chatRefused},
		{"one turn of a new session is ready at a time", chatOneTurn},
		{"64 concurrent chats begin one session", chatRace},
		{"a session that the agent chose for a chat becomes current", chatAgentsChoice},
		{"a session that the agent chose for another task does not", chatNotCurrent},
		{"a turn of an older session does not make it current again", chatOlderTurn},
	}
}

// talking makes a submission a chat with agent a.
func talking(k store.ChatSession) option {
	return func(s *store.Submission) {
		s.Task.Mode, s.Task.Queue = signalbox.ModeChat, signalbox.AgentQueue(k.Agent)
		s.Chat = &k
	}
}

// chat submits a chat with agent a that continues its session, or starts the session begin.
func (b *fixture) chat(begin string) signalbox.Task {
	b.Helper()
	return b.submit(talking(store.ChatSession{Agent: "a", Continue: true, New: begin}))
}

func (b *fixture) session(id string) signalbox.Session {
	b.Helper()
	s, err := b.Session(b.ctx, id)
	b.must(err)
	return s
}

// current wants the agent's current session to be want; "" is none.
func (b *fixture) current(agent, want string) {
	b.Helper()
	page, err := b.Sessions(b.ctx, store.SessionQuery{Agent: agent, Current: true, Limit: 10})
	b.must(err)
	var got, wanted []string
	for _, s := range page.Sessions {
		got = append(got, s.ID)
	}
	if want != "" {
		wanted = []string{want}
	}
	b.same("current session of "+agent, got, wanted)
}

func chatBegins(b *fixture) {
	t := b.submit(talking(store.ChatSession{Agent: "a", Continue: true, New: "s"}), func(s *store.Submission) {
		s.Task.Owner, s.Task.Preview, s.Task.Source = "user:ann", "Guten Tag", signalbox.SourceWeb
	})
	b.same("session of the task", [2]string{t.SessionID, t.Queue}, [2]string{"s", "agent:a"})
	b.same("session", b.session("s"), signalbox.Session{
		ID: "s", Agent: "a", Source: signalbox.SourceWeb, Owner: "user:ann", Title: "Guten Tag", State: signalbox.SessionActive,
		CreatedAt: b.now, LastUsed: b.now, Current: true,
	})
	b.current("a", "s")
	b.same("entries", kinds(b.journal()), []signalbox.EventKind{"submit"})
}

func chatContinues(b *fixture) {
	b.chat("s")
	b.pass(time.Second)
	b.same("session", b.chat("r").SessionID, "s")
	_, err := b.Session(b.ctx, "r")
	b.refused(err, signalbox.CodeNotFound)
	b.same("last used: at a turn, not at a submit", b.session("s").LastUsed, start)
}

func chatNew(b *fixture) {
	b.chat("s")
	t := b.submit(talking(store.ChatSession{Agent: "a", New: "r"}))
	b.same("session", t.SessionID, "r")
	b.current("a", "r")
	b.same("the old one", [2]any{b.session("s").Current, b.session("s").State}, [2]any{false, signalbox.SessionActive})
	b.same("session of the next", b.chat("q").SessionID, "r")
}

func chatNeither(b *fixture) {
	b.same("session", b.chat("").SessionID, "")
	b.current("a", "")
}

func chatOwn(b *fixture) {
	b.chat("s")
	t := b.submit(talking(store.ChatSession{Agent: "b", Continue: true, New: "r"}))
	b.same("session", t.SessionID, "r")
	b.current("a", "s")
	b.current("b", "r")
}

func chatAsked(b *fixture) {
	b.finish(b.bind("a", "s").ID)
	was := b.session("s")
	b.chat("r")
	b.pass(time.Minute)
	t := b.submit(inSession("s"), talking(store.ChatSession{Agent: "a", Continue: true, New: "q"}))
	b.same("session of the task", t.SessionID, "s")
	was.Current = true
	b.same("session", b.session("s"), was)
	b.current("a", "s")
}

func chatAskedUnknown(b *fixture) {
	b.chat("r")
	b.submit(inSession("s"), talking(store.ChatSession{Agent: "a", Continue: true}))
	b.current("a", "s")
	b.same("title", b.session("s").Title, "task 2")
}

func chatAskedAway(b *fixture) {
	for _, agent := range []string{"a", "b"} {
		for _, state := range []signalbox.SessionState{signalbox.SessionArchived, signalbox.SessionGone} {
			s := aSession("s")
			s.Agent, s.State = agent, state
			b.putSession(s)
			before := everything(b)
			ask := []option{inSession("s"), talking(store.ChatSession{Agent: "a", Continue: true, New: "q"}), capped("chat:a", 1)}
			_, err := b.Submit(b.ctx, b.submission(ask...))
			b.refused(err, signalbox.CodeConflict)
			b.same("what is stored", everything(b), before)
		}
	}
	b.submit(inSession("s")) // not a chat
}

func chatCurrentAway(b *fixture) {
	for _, state := range []signalbox.SessionState{signalbox.SessionArchived, signalbox.SessionGone} {
		s := aSession("s")
		s.State, s.Current = state, true
		b.putSession(s)
		b.same("session", b.chat("").SessionID, "")
		b.current("a", "s")
		b.same("session", b.chat(string(state)).SessionID, string(state))
		b.current("a", string(state))
	}
}

func chatAskedElsewhere(b *fixture) {
	b.finish(b.bind("b", "s").ID)
	was := b.session("s")
	b.chat("r")
	b.same("session of the task", b.submit(inSession("s"), talking(store.ChatSession{Agent: "a"})).SessionID, "s")
	b.same("session", b.session("s"), was)
	b.current("a", "r")
	b.current("b", "")
}

func chatReplay(b *fixture) {
	first := b.submit(keyed("k", "h"), talking(store.ChatSession{Agent: "a", New: "s"}))
	got, err := b.Submit(b.ctx, b.submission(keyed("k", "h"), talking(store.ChatSession{Agent: "a", New: "r"})))
	b.must(err)
	b.same("replay", got, store.Submitted{Task: first, Replayed: true})
	_, err = b.Session(b.ctx, "r")
	b.refused(err, signalbox.CodeNotFound)
	b.current("a", "s")
}

func chatRefused(b *fixture) {
	b.submit(talking(store.ChatSession{Agent: "a", New: "s"}), capped("chat:a", 1))
	_, err := b.Submit(b.ctx, b.submission(talking(store.ChatSession{Agent: "a", New: "r"}), capped("chat:a", 1)))
	b.refused(err, signalbox.CodeQueueFull)
	_, err = b.Session(b.ctx, "r")
	b.refused(err, signalbox.CodeNotFound)
	b.current("a", "s")
}

func chatOneTurn(b *fixture) {
	first, second := b.chat("s"), b.chat("s")
	b.ready(first.ID)
	b.claimed(b.offerSlots("a", 2))
	b.noClaim(b.offerSlots("a", 2))
	b.acceptIn(first.ID, "s")
	b.finish(first.ID)
	b.ready(second.ID)
}

func chatRace(b *fixture) {
	const n = 64
	var subs []store.Submission
	for i := range n {
		subs = append(subs, b.submission(talking(store.ChatSession{Agent: "a", Continue: true, New: id(1000 + i)})))
	}
	got := make([]store.Submitted, n)
	for _, err := range together(n, func(i int) (err error) { got[i], err = b.Submit(b.ctx, subs[i]); return err }) {
		b.must(err)
	}
	ready := 0
	for _, g := range got {
		b.same("session", g.Task.SessionID, got[0].Task.SessionID)
		if b.task(g.Task.ID).Ready {
			ready++
		}
	}
	page, err := b.Sessions(b.ctx, store.SessionQuery{Limit: 100})
	b.must(err)
	b.same("sessions and ready turns", [2]int{len(page.Sessions), ready}, [2]int{1, 1})
}

func chatAgentsChoice(b *fixture) {
	t := b.chat("")
	b.claimID("a", t.ID)
	b.acceptIn(t.ID, "s")
	b.current("a", "s")
	b.finish(t.ID)
	second := b.chat("")
	b.same("session of the next", second.SessionID, "s")
	b.claimID("a", second.ID)
	b.acceptIn(second.ID, "s")
	b.finish(second.ID)
	b.current("a", "s")
	b.same("turns", b.session("s").Turns, 2)
}

func chatNotCurrent(b *fixture) {
	b.chat("s")
	b.finish(b.claim("a").ID)
	t := b.submit()
	b.claimID("a", t.ID)
	b.acceptIn(t.ID, "r")
	b.current("a", "s")
	b.same("session", [2]any{b.session("r").Current, b.session("r").Turns}, [2]any{false, 1})
}

func chatOlderTurn(b *fixture) {
	first := b.chat("s")
	b.submit(talking(store.ChatSession{Agent: "a", New: "r"}))
	b.claimID("a", first.ID)
	b.acceptIn(first.ID, "s")
	b.current("a", "r")
}
