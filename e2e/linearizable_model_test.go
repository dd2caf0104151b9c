package e2e_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// The sequential model of a queue and its agents with one slot each. A history
// of the real program is correct if some order of its requests, each between
// its call and its answer, fits the model.

// linIn is a request.
type linIn struct {
	verb   string // submit, cancel, read, unpark; for an agent: claim, accept, busy, forgot, finish, park
	agent  string
	id     string
	key    string // submit: the Idempotency-Key
	body   string // submit: the prompt
	prio   int
	fence  int64
	taskID string // accept, finish, park: the agent's own ID
	word   string // finish: completed, failed, cancelled
	next   int64  // submit, busy, forgot: the fence of the claim that takes the task next; 0: none
}

// linOut is the answer to a request.
type linOut struct {
	lost     bool   // the connection broke: the request may or may not have been executed
	code     string // of an error
	id       string
	body     string // claim
	state    string // submit, read, cancel
	fence    int64  // claim, read
	begun    bool   // cancel: the task no longer waited
	replayed bool   // submit: the key was known
	ask      bool   // claim: the agent is asked about an execution
}

// Special fences: of a claim whose answer was lost, and of an answer without
// a fence.
const (
	fenceUnseen = -1
	fenceUnsaid = -2
)

type linTask struct {
	key, body string
	id        string // "" until an answer has named it
	state     string
	prio      int
	top       int   // above 0: it is ahead of all tasks with a lower value, whatever their priority
	fence     int64 // 0: never claimed
	floor     int64 // for fenceUnseen: the fence is above this
	agent     string
	taskID    string
	cancel    bool
	next      int64 // while it is pending, as in linIn
}

func (t *linTask) ended() bool {
	return slices.Contains([]string{"completed", "failed", "cancelled"}, t.state)
}

func (t *linTask) waits() bool { return t.state == "pending" || t.state == "parked" }

func (t *linTask) inFlight() bool { return !t.ended() && !t.waits() }

// linState is immutable.
type linState struct {
	live  []linTask // in the order in which they are claimed; those in flight keep their place
	ended []linTask // by key
	fence int64     // the highest seen
	text  string    // identifies the state: equal states have equal texts
}

func (s *linState) with(change func(*linState)) *linState {
	n := &linState{live: slices.Clone(s.live), ended: slices.Clone(s.ended), fence: s.fence}
	change(n)
	still := n.live[:0]
	for _, t := range n.live {
		if t.ended() {
			n.ended = append(n.ended, t)
		} else {
			still = append(still, t)
		}
	}
	n.live = still
	slices.SortStableFunc(n.live, func(a, b linTask) int { return cmp.Or(b.top-a.top, b.prio-a.prio) })
	slices.SortFunc(n.ended, func(a, b linTask) int { return strings.Compare(a.key, b.key) })
	n.text = fmt.Sprint(n.live, n.ended, n.fence)
	return n
}

// set replaces the task with the same key.
func (s *linState) set(t linTask) *linState {
	return s.with(func(n *linState) {
		for _, list := range [][]linTask{n.live, n.ended} {
			for i := range list {
				if list[i].key == t.key {
					list[i] = t
				}
			}
		}
		n.fence = max(n.fence, t.fence)
	})
}

func (s *linState) find(is func(*linTask) bool) (linTask, bool) {
	for _, list := range [][]linTask{s.live, s.ended} {
		for i := range list {
			if is(&list[i]) {
				return list[i], true
			}
		}
	}
	return linTask{}, false
}

func (s *linState) byKey(key string) (linTask, bool) {
	return s.find(func(t *linTask) bool { return t.key == key })
}

func (s *linState) byID(id string) (linTask, bool) {
	return s.find(func(t *linTask) bool { return t.id == id })
}

// held is the task that an agent has in flight.
func (s *linState) held(agent string) (linTask, bool) {
	return s.find(func(t *linTask) bool { return t.inFlight() && t.agent == agent })
}

// head is the next task to be claimed.
func (s *linState) head() (linTask, bool) {
	for _, t := range s.live {
		if t.state == "pending" {
			return t, true
		}
	}
	return linTask{}, false
}

// named reports whether a task can have this ID and this fence, and stores
// them.
func (s *linState) named(t *linTask, id string, fence int64) bool {
	if _, taken := s.byID(id); t.id == "" && !taken && id != "" {
		t.id = id
	}
	if t.fence == fenceUnseen && fence > t.floor {
		t.fence = fence
	}
	return t.id == id && (fence == fenceUnsaid || t.fence == fence)
}

// one is the state after an answer that fits; none is used for an answer that
// does not fit.
func one(s *linState) []any { return []any{s} }

var none []any

var linVerbs = map[string]func(*linState, *linIn, *linOut) []any{
	"submit": linSubmit, "cancel": linCancel, "read": linRead, "unpark": linUnpark, "claim": linClaim,
	"accept": linReport, "busy": linReport, "forgot": linReport, "finish": linReport, "park": linReport,
}

func linStep(state, input, output any) []any {
	s, in, out := state.(*linState), input.(linIn), output.(linOut)
	do := linVerbs[in.verb]
	if out.lost {
		do = linLost
	}
	return slices.DeleteFunc(do(s, &in, &out), func(s any) bool { return s.(*linState).hopeless() })
}

// hopeless reports whether tasks wait in an order in which, according to the
// rest of the history, they are not claimed. Claims come in the order of their
// fences, so each such state fails in the end: detecting it here shortens the
// search.
func (s *linState) hopeless() bool {
	last := int64(0)
	for _, t := range s.live {
		if t.state != "pending" || t.next == 0 {
			continue
		}
		if t.next < last {
			return true
		}
		last = t.next
	}
	return false
}

// foretold adds to each request that queues a task the fence of the claim that
// takes it.
func foretold(history []porcupine.Operation) []porcupine.Operation {
	ids, fences := map[string]string{}, map[string][]int64{} // by body; by ID
	for _, op := range history {
		switch in, out := op.Input.(linIn), op.Output.(linOut); {
		case in.verb == "submit" && out.id != "":
			ids[in.body] = out.id
		case in.verb == "claim" && out.id != "":
			fences[out.id] = append(fences[out.id], out.fence)
			if out.body != "" {
				ids[out.body] = out.id
			}
		}
	}
	history = slices.Clone(history)
	for i, op := range history {
		in := op.Input.(linIn)
		id := in.id
		if in.verb == "submit" {
			id = ids[in.body]
		}
		for _, f := range fences[id] {
			if f > in.fence && (in.next == 0 || f < in.next) {
				in.next = f
			}
		}
		history[i].Input = in
	}
	return history
}

func linModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init:  func() []any { return one((&linState{}).with(func(*linState) {})) },
		Step:  linStep,
		Equal: func(a, b any) bool { return a.(*linState).text == b.(*linState).text },
		Hash: func(s any) uint64 {
			h := fnv.New64a()
			h.Write([]byte(s.(*linState).text))
			return h.Sum64()
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
		DescribeState:     func(s any) string { return s.(*linState).text },
	}
	return m.ToModel()
}
