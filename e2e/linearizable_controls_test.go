package e2e_test

import (
	"math"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// The controls: a correct history is spoilt by hand, in each of the ways in
// which a queue must never fail. A check that accepts one is useless.

// spoilt is a way to spoil a history; ok is false if this history lacks what
// it needs.
type spoilt struct {
	how string
	do  func(history []porcupine.Operation) (bad []porcupine.Operation, ok bool)
	// rare: not every history has what it needs.
	rare bool
}

var linControls = []spoilt{
	{how: "a task is claimed by two at once", do: doubledClaim},
	{how: "a task is claimed again after its end", do: claimedAfterItsEnd},
	{how: "an acknowledged submit is lost, and the line is seen empty", do: lostSubmit},
	{how: "two tasks of one line are taken in the wrong order", do: swappedOrder, rare: true},
	{how: "the second of two is taken first", do: func(h []porcupine.Operation) ([]porcupine.Operation, bool) { return twoMore(h, 0, 0, "b"), true }},
	{how: "a lower priority is taken first", do: func(h []porcupine.Operation) ([]porcupine.Operation, bool) { return twoMore(h, 0, 10, "a"), true }},
	{how: "an ended task works again", do: worksAgain},
	{how: "an ended task ends in another way", do: endsOtherwise},
	{how: "a key makes a second task", do: secondTask},
	{how: "a key takes another body", do: otherBody},
	{how: "a stale fence is heard", do: staleHeard},
	{how: "nothing comes though a task waits", do: nothingComes},
	{how: "a parked task is claimed before its gate opens", do: claimedWhileParked, rare: true},
}

func wantEachControlIllegal(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	for _, right := range [][]porcupine.Operation{twoMore(slices.Clone(history), 0, 0, "a"), twoMore(slices.Clone(history), 0, 10, "b")} {
		if got := porcupine.CheckOperationsTimeout(linModel(), foretold(right), linLimit); got != porcupine.Ok {
			t.Errorf("two more tasks, taken in their order: the check says %s, want Ok", got)
		}
	}
	for _, c := range linControls {
		bad, ok := c.do(slices.Clone(history))
		if !ok {
			if !c.rare {
				t.Errorf("%s: the history has nothing to show it with", c.how)
			}
			continue
		}
		if got := porcupine.CheckOperationsTimeout(linModel(), foretold(bad), linLimit); got != porcupine.Illegal {
			t.Errorf("%s: the check says %s, want Illegal", c.how, got)
		}
	}
}

func inOf(op porcupine.Operation) linIn   { return op.Input.(linIn) }
func outOf(op porcupine.Operation) linOut { return op.Output.(linOut) }

// seen finds an answered request.
func seen(history []porcupine.Operation, is func(in linIn, out linOut) bool) int {
	return slices.IndexFunc(history, func(op porcupine.Operation) bool { return !outOf(op).lost && is(inOf(op), outOf(op)) })
}

// claimed finds the claim of a task that was accepted and then ended by its
// agent.
func claimed(history []porcupine.Operation) (claim, finish int, ok bool) {
	for finish = range history {
		in, out := inOf(history[finish]), outOf(history[finish])
		if in.verb != "finish" || out.lost || out.code != "" {
			continue
		}
		claim = seen(history, func(c linIn, o linOut) bool {
			return c.verb == "claim" && o.id == in.id && o.fence == in.fence && !o.ask
		})
		if claim >= 0 && history[claim].Return < history[finish].Call {
			return claim, finish, true
		}
	}
	return 0, 0, false
}

// after appends a request to the history.
func after(history []porcupine.Operation, in linIn, out linOut) []porcupine.Operation {
	end := int64(math.MinInt64)
	for _, op := range history {
		end = max(end, op.Return)
	}
	return append(history, porcupine.Operation{Input: in, Call: end + 1, Output: out, Return: end + 2})
}

func doubledClaim(h []porcupine.Operation) ([]porcupine.Operation, bool) {
	claim, finish, ok := claimed(h)
	if !ok {
		return nil, false
	}
	out := outOf(h[claim])
	out.fence = math.MaxInt64 / 2
	return append(h, porcupine.Operation{
		Input: linIn{verb: "claim", agent: "another"}, Call: h[claim].Return + 1, Output: out, Return: h[finish].Call - 1,
	}), h[claim].Return+1 < h[finish].Call
}

func claimedWhileParked(h []porcupine.Operation) ([]porcupine.Operation, bool) {
	for i := range h {
		park, id := h[i], inOf(h[i]).id
		opened := seen(h, func(in linIn, out linOut) bool { return in.verb == "unpark" && in.id == id && out.code == "" })
		if inOf(park).verb != "park" || outOf(park).lost || outOf(park).code != "" || opened < 0 || park.Return+1 >= h[opened].Call {
			continue
		}
		out := linOut{id: id, fence: math.MaxInt64 / 2}
		for _, op := range h {
			if in, o := inOf(op), outOf(op); in.verb == "claim" && o.id == id && o.body != "" {
				out.body = o.body
			}
		}
		return append(h, porcupine.Operation{
			Input: linIn{verb: "claim", agent: "another"}, Call: park.Return + 1, Output: out, Return: h[opened].Call - 1,
		}), true
	}
	return nil, false
}

func claimedAfterItsEnd(h []porcupine.Operation) ([]porcupine.Operation, bool) {
	claim, _, ok := claimed(h)
	if !ok {
		return nil, false
	}
	out := outOf(h[claim])
	out.fence = math.MaxInt64 / 2
	return after(h, linIn{verb: "claim", agent: "another"}, out), true
}

func lostSubmit(h []porcupine.Operation) ([]porcupine.Operation, bool) {
	_, finish, ok := claimed(h)
	if !ok {
		return nil, false
	}
	id := inOf(h[finish]).id
	return slices.DeleteFunc(h, func(op porcupine.Operation) bool {
		return inOf(op).id == id || inOf(op).verb == "claim" && outOf(op).id == id
	}), true
}

// swappedOrder finds two tasks that waited at the same time and exchanges
// their histories.
func swappedOrder(h []porcupine.Operation) ([]porcupine.Operation, bool) {
	for a, first := range h {
		for b, second := range h {
			if made(first) && made(second) && first.Return < second.Call && inOf(first).prio == inOf(second).prio && waited(h, a, b) {
				return exchanged(h, outOf(first).id, outOf(second).id, inOf(first).body, inOf(second).body), true
			}
		}
	}
	return nil, false
}

func made(op porcupine.Operation) bool {
	out := outOf(op)
	return inOf(op).verb == "submit" && !out.lost && out.code == "" && !out.replayed
}

// waited reports whether two tasks that were each claimed once were both
// waiting when the first was claimed, and no answer about them was lost.
func waited(h []porcupine.Operation, a, b int) bool {
	var claims [2]porcupine.Operation
	for i, n := range []int{a, b} {
		id, times := outOf(h[n]).id, 0
		for _, op := range h {
			switch in := inOf(op); {
			case in.key == inOf(h[n]).key && in.key != "" && outOf(op).lost, in.id == id && (outOf(op).lost || in.verb == "cancel" || in.verb == "busy"):
				return false
			case in.verb == "claim" && outOf(op).id == id:
				claims[i] = op
				times++
			}
		}
		if times != 1 {
			return false
		}
	}
	return h[b].Return < claims[0].Call && claims[0].Return < claims[1].Call
}

// exchanged exchanges the claims and reports of two tasks. Other requests about
// them are removed, so that only their order is wrong.
func exchanged(h []porcupine.Operation, id1, id2, body1, body2 string) []porcupine.Operation {
	other := map[string]string{id1: id2, id2: id1, body1: body2, body2: body1}
	h = slices.DeleteFunc(h, func(op porcupine.Operation) bool {
		in, out := inOf(op), outOf(op)
		return in.verb == "read" && other[in.id] != "" || out.replayed && other[out.id] != ""
	})
	for i, op := range h {
		in, out := inOf(op), outOf(op)
		if in.verb == "submit" {
			continue
		}
		for _, s := range []*string{&in.id, &out.id, &out.body} {
			if o := other[*s]; o != "" {
				*s = o
			}
		}
		h[i].Input, h[i].Output = in, out
	}
	return h
}

// twoMore submits two more tasks, a and b, and has one of them claimed.
func twoMore(h []porcupine.Operation, prioA, prioB int, taken string) []porcupine.Operation {
	for _, in := range []linIn{{key: "a", prio: prioA}, {key: "b", prio: prioB}} {
		in.verb, in.body = "submit", "task "+in.key
		h = after(h, in, linOut{id: "queue-" + in.key, state: "pending"})
	}
	return after(h, linIn{verb: "claim", agent: "another"}, linOut{id: "queue-" + taken, body: "task " + taken, fence: math.MaxInt64 / 2})
}

func worksAgain(h []porcupine.Operation) ([]porcupine.Operation, bool) {
	_, finish, ok := claimed(h)
	in := inOf(h[finish])
	return after(h, linIn{verb: "read", id: in.id}, linOut{id: in.id, state: "working", fence: in.fence}), ok
}

func endsOtherwise(h []porcupine.Operation) ([]porcupine.Operation, bool) {
	other := map[string]string{"completed": "failed", "failed": "completed", "cancelled": "completed"}
	n := seen(h, func(in linIn, out linOut) bool { return in.verb == "read" && other[out.state] != "" })
	if n < 0 {
		return nil, false
	}
	out := outOf(h[n])
	out.state = other[out.state]
	return after(h, inOf(h[n]), out), true
}

func secondTask(h []porcupine.Operation) ([]porcupine.Operation, bool) {
	n := seen(h, func(_ linIn, out linOut) bool { return out.replayed })
	if n < 0 {
		return nil, false
	}
	out := outOf(h[n])
	out.id, out.replayed, out.state = "queue-another", false, "pending"
	h[n].Output = out
	return h, true
}

func otherBody(h []porcupine.Operation) ([]porcupine.Operation, bool) {
	n := seen(h, func(_ linIn, out linOut) bool { return out.code == "idempotency_conflict" })
	if n < 0 {
		return nil, false
	}
	h[n].Output = linOut{id: "queue-another", state: "pending"}
	return h, true
}

func staleHeard(h []porcupine.Operation) ([]porcupine.Operation, bool) {
	n := seen(h, func(in linIn, out linOut) bool { return in.verb == "finish" && out.code == "stale_fence" })
	if n < 0 {
		return nil, false
	}
	h[n].Output = linOut{}
	return h, true
}

func nothingComes(h []porcupine.Operation) ([]porcupine.Operation, bool) {
	n := slices.IndexFunc(h, made)
	if n < 0 {
		return nil, false
	}
	in, out := inOf(h[n]), outOf(h[n])
	in.key, in.body, out.id = "one-more", "one more", "queue-one-more"
	h = after(h, in, out)
	return after(h, linIn{verb: "claim", agent: "another"}, linOut{}), true
}
