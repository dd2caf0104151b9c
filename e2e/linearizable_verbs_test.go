package e2e_test

// The requests of the model: possible answers and their effects.

func linSubmit(s *linState, in *linIn, out *linOut) []any {
	t, known := s.byKey(in.key)
	switch {
	case known && t.body != in.body:
		if out.code == "idempotency_conflict" {
			return one(s)
		}
		return none
	case known:
		if out.code == "" && out.replayed && out.state == t.state && s.named(&t, out.id, fenceUnsaid) {
			return one(s.set(t))
		}
		return none
	}
	if _, taken := s.byID(out.id); taken || out.code != "" || out.replayed || out.state != "pending" {
		return none
	}
	return one(s.add(in, out.id))
}

func (s *linState) add(in *linIn, id string) *linState {
	return s.with(func(n *linState) {
		n.live = append(n.live, linTask{key: in.key, body: in.body, id: id, state: "pending", prio: in.prio, next: in.next})
	})
}

func linRead(s *linState, in *linIn, out *linOut) []any {
	t, known := s.byID(in.id)
	fence := out.fence
	if t.waits() && fence == 0 { // a waiting task does not show the fence of its last claim
		fence = fenceUnsaid
	}
	if !known || out.code != "" || out.state != t.state || !s.named(&t, in.id, fence) {
		return none
	}
	return one(s.set(t))
}

func linCancel(s *linState, in *linIn, out *linOut) []any {
	t, known := s.byID(in.id)
	switch {
	case !known:
		return none
	case t.ended():
		if out.code == "already_ended" {
			return one(s)
		}
		return none
	case out.code != "" || out.begun != t.inFlight() || (!out.begun && out.state != "cancelled"):
		return none // a separate read checks the state of a task in flight
	}
	return one(s.cancelled(t))
}

func (s *linState) cancelled(t linTask) *linState {
	switch t.state {
	case "pending", "parked":
		t.state, t.next = "cancelled", 0
	case "working":
		t.state = "cancelling"
	}
	t.cancel = true
	return s.set(t)
}

// linUnpark lets a waiting task run anyway: it is then the first in its queue.
func linUnpark(s *linState, in *linIn, out *linOut) []any {
	t, known := s.byID(in.id)
	switch {
	case !known:
		return none
	case t.waits():
		if out.code == "" { // a separate read checks the state
			return one(s.topped(t))
		}
		return none
	case out.code == "already_ended" && t.ended(), out.code == "conflict" && t.inFlight():
		return one(s)
	}
	return none
}

func (s *linState) topped(t linTask) *linState {
	t.state, t.next = "pending", 0
	for _, list := range [][]linTask{s.live, s.ended} {
		for _, other := range list {
			t.top = max(t.top, other.top+1)
		}
	}
	return s.set(t)
}

func linClaim(s *linState, in *linIn, out *linOut) []any {
	held, holds := s.held(in.agent)
	head, waits := s.head()
	switch {
	case out.code != "":
		return none
	case out.id == "": // no task was available
		if holds || waits {
			return none
		}
		return one(s)
	case out.ask:
		if !holds || (held.state == "dispatching" && !held.cancel) || !s.named(&held, out.id, out.fence) {
			return none
		}
		return one(s.set(held))
	case holds: // the answer to the last claim was lost
		if held.state != "dispatching" || held.cancel || held.body != out.body || !s.named(&held, out.id, out.fence) {
			return none
		}
		return one(s.set(held))
	}
	if !waits || head.body != out.body || out.fence <= s.fence || !s.named(&head, out.id, fenceUnsaid) {
		return none
	}
	return one(s.given(head, in.agent, out.fence))
}

func (s *linState) given(t linTask, agent string, fence int64) *linState {
	t.state, t.agent, t.fence, t.floor, t.taskID, t.next = "dispatching", agent, fence, 0, "", 0
	if fence == fenceUnseen {
		t.floor = s.fence
	}
	return s.set(t)
}

// linReport is an agent's report on an execution: accept, busy, forgot, finish, park.
func linReport(s *linState, in *linIn, out *linOut) []any {
	t, known := s.byID(in.id)
	if !known || (out.code != "" && out.code != "stale_fence") {
		return none
	}
	ok := out.code == ""
	if !t.inFlight() || t.agent != in.agent || t.fence != in.fence {
		if in.verb == "park" { // repeated, it changes nothing
			return one(s)
		}
		again := in.verb == "finish" && t.ended() && t.fence == in.fence && t.taskID == in.taskID
		if ok == again { // a repeated final report is accepted and changes nothing
			return one(s)
		}
		return none
	}
	next, legal := s.reported(t, in)
	if !ok || !legal {
		return none
	}
	return one(next)
}

func (s *linState) reported(t linTask, in *linIn) (next *linState, legal bool) {
	switch {
	case in.verb == "accept":
		t.taskID = in.taskID
		t.state = map[bool]string{false: "working", true: "cancelling"}[t.cancel]
	case in.verb == "finish":
		t.taskID, t.state = in.taskID, in.word
	case in.verb == "park":
		t.taskID, t.state = in.taskID, map[bool]string{false: "parked", true: "cancelled"}[t.cancel]
	case t.state != "dispatching":
		return nil, false // the agents of this test have not accepted tasks that they send back
	case t.cancel:
		t.state = "cancelled"
	case in.verb == "forgot": // to its old place
		t.state, t.next = "pending", in.next
	default: // busy: to the back
		t.state, t.next = "pending", in.next
		return s.with(func(n *linState) {
			n.live = append(removeKey(n.live, t.key), t)
		}), true
	}
	return s.set(t), true
}

func removeKey(list []linTask, key string) (rest []linTask) {
	for _, t := range list {
		if t.key != key {
			rest = append(rest, t)
		}
	}
	return rest
}

// linLost are the possible states after a request whose answer was lost.
func linLost(s *linState, in *linIn, _ *linOut) []any {
	states := one(s)
	t, known := s.byID(in.id)
	switch in.verb {
	case "submit":
		if _, known := s.byKey(in.key); !known {
			states = append(states, s.add(in, ""))
		}
	case "claim":
		_, holds := s.held(in.agent)
		if head, waits := s.head(); waits && !holds {
			states = append(states, s.given(head, in.agent, fenceUnseen))
		}
	case "cancel":
		if known && !t.ended() {
			states = append(states, s.cancelled(t))
		}
	case "unpark":
		if known && t.waits() {
			states = append(states, s.topped(t))
		}
	default:
		if known && t.inFlight() && t.agent == in.agent && t.fence == in.fence {
			if next, legal := s.reported(t, in); legal {
				states = append(states, next)
			}
		}
	}
	return states
}
