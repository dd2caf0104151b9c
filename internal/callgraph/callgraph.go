// Package callgraph detects whether a call between agents would wait for its own caller,
// directly or through others.
//
// An execution is stuck while any call that it waits for is stuck. A call in a queue is
// stuck while all agents that serve the queue are, and a call of a conversation also while
// its running turn is. An agent is stuck while all of its slots are held by stuck
// executions.
//
//	execution ──any──▶ its calls ──▶ the execution of a call that has begun
//	                       └──▶ queue ──all──▶ agents ──all──▶ executions
//
// The part of the graph that the call can reach is read once, and each edge is visited
// twice, so the search takes linear time.
package callgraph

import "slices"

// Run is an execution that holds a slot of an agent.
type Run struct{ ID, Agent, Session string }

// Call is a task that an execution has submitted and waits for.
type Call struct {
	ID      string
	Queue   string
	Session string // the conversation whose turn it waits for; "" for none
	Agent   string // the agent that runs it: the call is itself an execution; "" while it waits
}

// Graph says who waits for whom at one point in time.
type Graph interface {
	// Servers returns the agents that may claim from a queue.
	Servers(queue string) []string
	// Slots returns how many executions an agent may run at once; known is false if that is
	// unknown.
	Slots(agent string) (n int, known bool)
	// Holders returns the executions that hold the slots of an agent.
	Holders(agent string) []Run
	// Turns returns the executions of a conversation.
	Turns(session string) []Run
	// Calls returns the calls that an execution waits for.
	Calls(run string) ([]Call, error)
}

// FindCycle reports whether a call of the execution caller could not start before caller
// has ended. Then it returns the executions on the path from the call to caller, or into
// another cycle that it would wait for.
func FindCycle(g Graph, caller string, call Call) (path []Run, err error) {
	s := search{g: g, caller: caller, index: map[key]int{}}
	start := s.queueNode(call.Queue, call.Session)
	for i := 0; i < len(s.nodes); i++ {
		if err := s.read(i); err != nil {
			return nil, err
		}
	}
	s.markFree()
	if s.nodes[start].free {
		return nil, nil
	}
	return s.path(start), nil
}

type kind int8

const (
	kindRun   kind = iota // stuck while any of its calls is
	kindQueue             // stuck while all agents that serve it are
	kindTurn              // an agent and a session: stuck while a turn of the session is, or the agent
	kindAgent             // stuck while all executions that hold its slots are
)

type key struct {
	kind    kind
	name    string // of an execution, queue or agent
	session string
}

type node struct {
	key
	run      *Run // for kindRun
	waitsFor []int
	waiters  []int
	blocked  int  // number of waitsFor that are not free; for kindRun and kindTurn
	free     bool // not stuck
}

// search is the part of the graph that a call can reach.
type search struct {
	g      Graph
	caller string
	nodes  []node
	index  map[key]int
}

// node returns the node of a key, creating it if needed; r is the execution of a kindRun.
func (s *search) node(k key, r *Run) int {
	i, known := s.index[k]
	if !known {
		i = len(s.nodes)
		s.index[k] = i
		s.nodes = append(s.nodes, node{key: k, run: r})
	}
	return i
}

func (s *search) agentNode(name string) int { return s.node(key{kind: kindAgent, name: name}, nil) }
func (s *search) runNode(r *Run) int        { return s.node(key{kind: kindRun, name: r.ID}, r) }

// queueNode returns the node of a queue. The session counts only while a turn of it is
// running; otherwise all calls in a queue share a node.
func (s *search) queueNode(queue, session string) int {
	if session != "" && len(s.g.Turns(session)) == 0 {
		session = ""
	}
	return s.node(key{kind: kindQueue, name: queue, session: session}, nil)
}

// read determines what a node waits for.
func (s *search) read(i int) error {
	n := s.nodes[i]
	var on []int
	switch n.kind {
	case kindRun:
		if n.name == s.caller {
			return nil
		}
		calls, err := s.g.Calls(n.name)
		if err != nil {
			return err
		}
		for _, c := range calls {
			if c.Agent != "" {
				on = append(on, s.runNode(&Run{ID: c.ID, Agent: c.Agent, Session: c.Session}))
			} else {
				on = append(on, s.queueNode(c.Queue, c.Session))
			}
		}
	case kindQueue:
		servers := s.g.Servers(n.name)
		on = make([]int, 0, len(servers))
		for _, agent := range servers {
			if n.session == "" {
				on = append(on, s.agentNode(agent))
			} else {
				on = append(on, s.node(key{kind: kindTurn, name: agent, session: n.session}, nil))
			}
		}
	case kindTurn:
		turns := s.g.Turns(n.session)
		for i := range turns {
			if turns[i].Agent == n.name {
				on = append(on, s.runNode(&turns[i]))
			}
		}
		on = append(on, s.agentNode(n.name))
	case kindAgent:
		holders := s.g.Holders(n.name)
		if slots, known := s.g.Slots(n.name); known && len(holders) >= slots {
			for i := range holders {
				on = append(on, s.runNode(&holders[i]))
			}
		}
	}
	s.nodes[i].waitsFor, s.nodes[i].blocked = on, len(on)
	for _, j := range on {
		s.nodes[j].waiters = append(s.nodes[j].waiters, i)
	}
	return nil
}

// markFree starts with every node stuck and frees nodes until nothing changes. A node that
// waits for nothing is free, except caller.
func (s *search) markFree() {
	var next []int
	free := func(i int) {
		if !s.nodes[i].free {
			s.nodes[i].free = true
			next = append(next, i)
		}
	}
	for i := range s.nodes {
		if len(s.nodes[i].waitsFor) == 0 && !s.isCaller(i) {
			free(i)
		}
	}
	for len(next) > 0 {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		for _, j := range s.nodes[i].waiters {
			n := &s.nodes[j]
			n.blocked--
			if n.kind == kindQueue || n.kind == kindAgent || n.blocked == 0 {
				free(j)
			}
		}
	}
}

func (s *search) isCaller(i int) bool {
	return s.nodes[i].kind == kindRun && s.nodes[i].name == s.caller
}

// path returns the executions on the shortest path from a stuck node to caller or, if there
// is none, into another cycle.
func (s *search) path(start int) []Run {
	from := map[int]int{start: -1}
	last := start // the last execution visited
	for next := []int{start}; len(next) > 0; next = next[1:] {
		at := next[0]
		if s.nodes[at].kind == kindRun {
			last = at
		}
		if s.isCaller(at) {
			break
		}
		for _, j := range s.nodes[at].waitsFor {
			if _, seen := from[j]; !seen && !s.nodes[j].free {
				from[j] = at
				next = append(next, j)
			}
		}
	}
	var path []Run
	for i := last; i >= 0; i = from[i] {
		if s.nodes[i].kind == kindRun {
			path = append(path, *s.nodes[i].run)
		}
	}
	slices.Reverse(path)
	return path
}
