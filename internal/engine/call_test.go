package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// agentPrincipal is an agent with the rights of its token.
func agentPrincipal(name string) signalbox.Principal {
	return signalbox.Principal{Kind: signalbox.PrincipalAgent, ID: name, Scopes: []signalbox.Scope{signalbox.ScopeRead, signalbox.ScopeSubmit, signalbox.ScopeTool, signalbox.ScopeAgent}}
}

// as is a chat that an agent submits from an execution and waits for.
func as(caller, agent string) engine.NewTask {
	n := chat(agent, caller+" asks "+agent)
	n.By, n.Waits = agentPrincipal(caller), true
	return n
}

func (b *fixture) refused(code signalbox.Code, n engine.NewTask, says ...string) {
	b.t.Helper()
	err := b.refusedAs(code, n)
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			b.t.Errorf("the refusal does not say %q: %v", s, err)
		}
	}
}

func TestCallKnowsItsParent(t *testing.T) {
	b := newFixture(t)
	one, two := b.talker("one", 1), b.talker("two", 1)
	b.submit(chat("one", "begin"))
	root := b.work(one)
	b.submit(as("one", "two"))
	child := b.work(two)
	if child.ParentID != root.ID || child.Depth != 1 || !child.Waits || child.Source != signalbox.SourceAgent || child.Owner != "agent:one" {
		t.Errorf("the call is %+v", child)
	}
	kids, err := b.Read().Children(t.Context(), root.ID, 10)
	b.must(err)
	if len(kids) != 1 || kids[0].ID != child.ID {
		t.Errorf("%s has the children %v", root.ID, kids)
	}
}

func TestCallFromOutsideAnyExecution(t *testing.T) {
	b := newFixture(t)
	b.talker("one", 1)
	b.talker("two", 1)
	if c := b.submit(as("one", "two")); c.ParentID != "" || c.Depth != 0 || c.Waits {
		t.Errorf("a call from no execution has the parent %q at depth %d", c.ParentID, c.Depth)
	}
}

func TestCallNamesItsExecution(t *testing.T) {
	b := newFixture(t)
	one, two := b.talker("one", 2), b.talker("two", 1)
	b.submit(chat("one", "a"))
	fresh := chat("one", "b")
	fresh.NewSession = true
	b.submit(fresh)
	b.work(one)
	second := b.work(one)
	b.refused(signalbox.CodeValidation, as("one", "two"), "runs 2 executions", "X-Signalbox-Execution")
	named := as("one", "two")
	named.CallerID = second.ID
	if c := b.submit(named); c.ParentID != second.ID {
		t.Errorf("the parent is %s, want %s", c.ParentID, second.ID)
	}
	run := b.work(two)
	forged := as("one", "two")
	forged.CallerID = run.ID
	b.refused(signalbox.CodeForbidden, forged, "does not run an execution "+run.ID)
}

func TestCallOfItselfIsRefused(t *testing.T) {
	b := newFixture(t)
	one := b.talker("one", 1)
	b.submit(chat("one", "begin"))
	root := b.work(one)
	b.refused(signalbox.CodeCallCycle, as("one", "one"), "one ("+root.ID+") → one")
	later := as("one", "one")
	later.Waits = false // it does not wait, so the task runs when this one has ended
	b.submit(later)
}

func TestCallThatWouldWaitForItselfIsRefused(t *testing.T) {
	b := newFixture(t)
	agents := map[string]signalbox.Agent{}
	for _, name := range []string{"a", "b", "c"} {
		agents[name] = b.talker(name, 1)
	}
	b.submit(chat("a", "begin"))
	b.work(agents["a"])
	b.submit(as("a", "b"))
	inB := b.work(agents["b"])
	b.submit(as("b", "c"))
	inC := b.work(agents["c"])
	b.refused(signalbox.CodeCallCycle, as("c", "a"), fmt.Sprintf("c (%s) → a (", inC.ID), fmt.Sprintf("→ b (%s) → c", inB.ID))
	b.refused(signalbox.CodeCallCycle, as("c", "b"))
	b.finish(inC, signalbox.ReasonCompleted)
	b.submit(as("b", "c")) // c is free again, so there is no cycle
}

// Two unrelated trees can deadlock: each waits for the slot that the other's root holds.
func TestCallsOfTwoTreesThatWouldDeadlock(t *testing.T) {
	b := newFixture(t)
	one, two := b.talker("one", 1), b.talker("two", 1)
	b.submit(chat("one", "first tree"))
	b.work(one)
	b.submit(chat("two", "second tree"))
	b.work(two)
	b.submit(as("one", "two")) // it waits for the second tree to end
	b.refused(signalbox.CodeCallCycle, as("two", "one"), "two (", "→ one (", "→ two")
}

func TestCallMayWaitWhereAnotherSlotComesFree(t *testing.T) {
	b := newFixture(t)
	one, two := b.talker("one", 2), b.talker("two", 1)
	b.submit(chat("one", "first"))
	caller := b.work(one)
	fresh := chat("one", "not in the cycle")
	fresh.NewSession = true
	b.submit(fresh)
	b.work(one)
	call := as("one", "two")
	call.CallerID = caller.ID
	b.submit(call)
	b.work(two)
	back := as("two", "one")
	back.NewSession = true
	b.submit(back) // both slots of one are in use, but the second becomes free by itself
}

// A free slot does not help a turn of a conversation that the caller's own turn blocks.
func TestCallThatWouldWaitForItsOwnSession(t *testing.T) {
	b := newFixture(t)
	one, two := b.talker("one", 2), b.talker("two", 1)
	b.submit(chat("one", "begin"))
	root := b.work(one)
	b.submit(as("one", "two"))
	b.work(two)
	b.refused(signalbox.CodeCallCycle, as("two", "one"), "two (", "→ one ("+root.ID+") → two")
	named := as("two", "one")
	named.SessionID = root.SessionID
	b.refused(signalbox.CodeCallCycle, named)
	fresh := as("two", "one")
	fresh.NewSession = true
	b.submit(fresh)
}

// An incident of the seed's system: chains of calls were unbounded.
func TestIncidentNoCallDepthGuard(t *testing.T) {
	b := newFixture(t)
	last := b.talker("agent-0", 1)
	b.submit(chat(last.Name, "begin"))
	b.work(last)
	for depth := 1; depth <= signalbox.MaxCallDepth; depth++ {
		next := b.talker(fmt.Sprintf("agent-%d", depth), 1)
		if c := b.submit(as(last.Name, next.Name)); c.Depth != depth {
			t.Fatalf("depth %d, want %d", c.Depth, depth)
		}
		b.work(next)
		last = next
	}
	b.talker("one-too-many", 1)
	b.refused(signalbox.CodeCallDepth, as(last.Name, "one-too-many"), "8 agents have called one another")
}

// queued is a task that an agent submits from an execution and waits for.
func queued(caller string, n engine.NewTask) engine.NewTask {
	n.By, n.Waits = agentPrincipal(caller), true
	return n
}

func TestSubmitThatWaitsForItselfIsRefused(t *testing.T) {
	b := newFixture(t)
	one := b.talker("one", 1)
	b.submit(chat("one", "begin"))
	run := b.work(one)
	b.refused(signalbox.CodeCallCycle, queued("one", engine.NewTask{Prompt: "x", Agent: "one"}), "one ("+run.ID+")")
	b.refused(signalbox.CodeCallCycle, queued("one", engine.NewTask{Prompt: "x"})) // no other agent serves work
	b.refused(signalbox.CodeCallCycle, queued("one", engine.NewTask{Prompt: "x", SessionID: run.SessionID}))
	b.refused(signalbox.CodeCallCycle, queued("one", engine.NewTask{Prompt: "x", Kind: "claude"}))
	b.talker("two", 1)
	b.submit(queued("one", engine.NewTask{Prompt: "x"}))
	b.submit(queued("one", engine.NewTask{Prompt: "x", Kind: "claude"}))
}

// Replaying the key of a call that was made without waiting, now with waiting, closes the cycle, too.
func TestReplayThatWaitsForItselfIsRefused(t *testing.T) {
	b := newFixture(t)
	one := b.talker("one", 1)
	b.submit(chat("one", "begin"))
	run := b.work(one)
	call := as("one", "one")
	call.Waits, call.IdempotencyKey = false, "k"
	first := b.submit(call)
	call.Waits = true
	b.refused(signalbox.CodeCallCycle, call)
	b.finish(run, signalbox.ReasonCompleted)
	if again := b.submit(call); again.ID != first.ID {
		t.Errorf("the key found %s, want %s", again.ID, first.ID)
	}
}
