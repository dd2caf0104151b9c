package storetest

import (
	"time"

	"github.com/signalbox-ai/signalbox"
)

func kinds(entries []signalbox.Entry) []signalbox.EventKind {
	var list []signalbox.EventKind
	for _, e := range entries {
		list = append(list, e.Kind)
	}
	return list
}

func agentRules() []rule {
	return []rule{
		{"an agent is stored by name", agentStored},
		{"the entry is written when something differs", agentEntry},
		{"the time of the first registration is kept", agentCreated},
		{"agents are listed by name", agentsSorted},
		{"a removed agent is gone", agentRemoved},
		{"an unknown agent cannot be removed", agentUnknown},
		{"an agent that holds slots is not removed", agentHoldsSlots},
		{"an agent with a withheld slot is not removed", agentHoldsWithheld},
	}
}

func anAgent(name string) signalbox.Agent {
	return signalbox.Agent{
		Name: name, Kind: "coder", URL: "http://" + name, Slots: 2, Fencing: true, Proof: true, Source: signalbox.AgentRegistered,
		SealedToken: []byte("sealed"), WorkDir: "/w", Version: "1", CreatedAt: start, Account: "max",
	}
}

func (b *fixture) put(a signalbox.Agent) {
	b.Helper()
	b.must(b.PutAgent(b.ctx, a, signalbox.Entry{At: b.now, Kind: signalbox.EventAgentAdded, Agent: a.Name}))
}

func (b *fixture) remove(name string) error {
	return b.RemoveAgent(b.ctx, name, signalbox.Entry{At: b.now, Kind: signalbox.EventAgentRemoved, Agent: name})
}

func (b *fixture) agents() []signalbox.Agent {
	b.Helper()
	list, err := b.Agents(b.ctx)
	b.must(err)
	return list
}

func agentStored(b *fixture) {
	b.put(anAgent("a"))
	b.same("agents", b.agents(), []signalbox.Agent{anAgent("a")})
	changed := anAgent("a")
	changed.URL, changed.SealedToken = "http://elsewhere", nil
	b.put(changed)
	b.same("agents", b.agents(), []signalbox.Agent{changed})
}

func agentEntry(b *fixture) {
	a := anAgent("a")
	b.put(a)
	b.put(a)
	b.same("entries", len(b.journal()), 1)
	for n, change := range []func(*signalbox.Agent){
		func(a *signalbox.Agent) { a.Kind = "k" }, func(a *signalbox.Agent) { a.URL = "u" },
		func(a *signalbox.Agent) { a.Slots = 9 }, func(a *signalbox.Agent) { a.Fencing = false }, func(a *signalbox.Agent) { a.Proof = false },
		func(a *signalbox.Agent) { a.Source = signalbox.AgentChild }, func(a *signalbox.Agent) { a.SealedToken = []byte("t") },
		func(a *signalbox.Agent) { a.WorkDir = "w" }, func(a *signalbox.Agent) { a.Version = "2" },
		func(a *signalbox.Agent) { a.Account = "pro" },
	} {
		change(&a)
		b.put(a)
		b.same("entries", len(b.journal()), n+2)
	}
}

func agentCreated(b *fixture) {
	b.put(anAgent("a"))
	again := anAgent("a")
	again.CreatedAt = start.Add(time.Hour)
	b.put(again)
	b.same("agents", b.agents(), []signalbox.Agent{anAgent("a")})
	b.same("entries", len(b.journal()), 1)
	again.URL = "http://elsewhere"
	b.put(again)
	again.CreatedAt = start
	b.same("agents after a change", b.agents(), []signalbox.Agent{again})
}

func agentsSorted(b *fixture) {
	for _, name := range []string{"b", "a", "C", "a.1"} {
		b.put(anAgent(name))
	}
	var names []string
	for _, a := range b.agents() {
		names = append(names, a.Name)
	}
	b.same("names, byte by byte", names, []string{"C", "a", "a.1", "b"})
}

func agentRemoved(b *fixture) {
	b.put(anAgent("a"))
	b.must(b.remove("a"))
	b.same("agents", b.agents(), []signalbox.Agent(nil))
	b.same("entries", kinds(b.journal()), []signalbox.EventKind{"agent_added", "agent_removed"})
	again := anAgent("a")
	again.CreatedAt = start.Add(time.Hour)
	b.put(again)
	b.same("agents", b.agents(), []signalbox.Agent{again})
}

func agentUnknown(b *fixture) {
	b.refused(b.remove("a"), signalbox.CodeNotFound)
	b.same("entries", len(b.journal()), 0)
}

func agentHoldsSlots(b *fixture) {
	b.put(anAgent("a"))
	b.submit()
	t := b.claim("a")
	b.refused(b.remove("a"), signalbox.CodeConflict)
	b.same("agents", len(b.agents()), 1)
	b.same("entries", len(b.journal()), 3)
	b.finish(t.ID)
	b.must(b.remove("a"))
}

func agentHoldsWithheld(b *fixture) {
	b.put(anAgent("a"))
	t := b.withheld()
	b.refused(b.remove("a"), signalbox.CodeConflict)
	b.freeSlot("a", 0, t.Fence)
	b.must(b.remove("a"))
}

func pauseRules() []rule {
	return []rule{
		{"a pause is stored by queue", pauseStored},
		{"pauses are listed by queue, all first", pausesSorted},
		{"each setting writes its entry", pauseEntries},
		{"resume reports whether there was a pause, and journals it", pauseResume},
		{"resuming all leaves the pauses of queues", pauseResumeAll},
		{"a pause that is over stays listed until someone resumes", pauseOver},
	}
}

func (b *fixture) pause(p signalbox.Pause) {
	b.Helper()
	b.must(b.SetPause(b.ctx, p, signalbox.Entry{At: b.now, Kind: signalbox.EventPaused, Queue: p.Queue}))
}

func (b *fixture) resume(queue string) bool {
	b.Helper()
	was, err := b.Resume(b.ctx, queue, signalbox.Entry{At: b.now, Kind: signalbox.EventResumed, Queue: queue})
	b.must(err)
	return was
}

func (b *fixture) pauses() []signalbox.Pause {
	b.Helper()
	list, err := b.Pauses(b.ctx)
	b.must(err)
	return list
}

func pauseStored(b *fixture) {
	p := signalbox.Pause{Queue: "work", Reason: "repairs", By: "me", AtMS: start.UnixMilli(), UntilMS: start.UnixMilli() + 5}
	b.pause(p)
	b.same("pauses", b.pauses(), []signalbox.Pause{p})
	p.Reason, p.UntilMS = "longer repairs", 0
	b.pause(p)
	b.same("pauses", b.pauses(), []signalbox.Pause{p})
}

func pausesSorted(b *fixture) {
	for _, q := range []string{"work", "agent:b", "", "agent:a"} {
		b.pause(signalbox.Pause{Queue: q})
	}
	b.same("pauses", b.pauses(), []signalbox.Pause{{Queue: ""}, {Queue: "agent:a"}, {Queue: "agent:b"}, {Queue: "work"}})
}

func pauseEntries(b *fixture) {
	b.pause(signalbox.Pause{Queue: "work"})
	b.pause(signalbox.Pause{Queue: "work"})
	b.same("entries", kinds(b.journal()), []signalbox.EventKind{"queue_paused", "queue_paused"})
}

func pauseResume(b *fixture) {
	b.same("was paused", b.resume("work"), false)
	b.pause(signalbox.Pause{Queue: "work"})
	b.same("was paused", b.resume("work"), true)
	b.same("was paused", b.resume("work"), false)
	b.same("pauses", b.pauses(), []signalbox.Pause(nil))
	b.same("entries", kinds(b.journal()), []signalbox.EventKind{"queue_paused", "queue_resumed"})
}

func pauseResumeAll(b *fixture) {
	b.pause(signalbox.Pause{Queue: "work"})
	b.pause(signalbox.Pause{})
	b.same("was paused", b.resume(""), true)
	b.same("pauses", b.pauses(), []signalbox.Pause{{Queue: "work"}})
}

func pauseOver(b *fixture) {
	b.pause(signalbox.Pause{Queue: "work", UntilMS: 1})
	b.same("pauses", len(b.pauses()), 1)
	b.same("was paused", b.resume("work"), true)
}
