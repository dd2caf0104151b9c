// Package callgraph answers one question about agents that call one another:
// would a call wait for its own caller, directly or by way of others?
//
// An execution waits for the calls that it has made and waits for. A call that
// waits in a queue waits for all agents that serve it; an agent for all
// executions that hold its slots, if none is free; and a call of a conversation
// for the turn that is running. Whatever waits only for what cannot go on is
// stuck.
//
//	execution ──any──▶ its calls ──▶ the execution of a call that has begun
//	                       └──▶ queue ──all──▶ agents ──all──▶ executions
//
// The graph is read once, as far as the call can reach, and each edge is looked
// at twice: the answer takes linear time.
package callgraph

import "slices"

// Run is an execution that holds a slot of an agent.
type Run struct{ ID, Agent, Session string }

// Call is a task that an execution called and waits for.
type Call struct {
	ID      string
	Queue   string
	Session string // the conversation whose turn it waits for; "" for none
	Agent   string // that runs it: the call is an execution itself; "" while it waits
}

// Graph is who waits for whom at one moment.
type Graph interface {
	// Servers returns the agents that may take what waits in a queue.
	Servers(queue string) []string
	// Slots returns how many executions an agent may run at once; known is false
	// where nobody can say.
	Slots(agent string) (n int, known bool)
	// Holders returns the executions that hold the slots of an agent.
	Holders(agent string) []Run
	// Turns returns the executions of a conversation.
	Turns(session string) []Run
	// Calls returns the calls that an execution waits for.
	Calls(run string) ([]Call, error)
}

// Circle reports whether a call of the execution caller could not begin before
// caller has ended: then it returns the executions on the way from the call to
// caller, or into a circle of others that it would wait for.
func Circle(g Graph, caller string, call Call) (path []Run, err error) {
	s := search{g: g, caller: caller, index: map[key]int{}, runs: map[string]int{}, full: map[string]int{}}
	from := s.line(call.Queue, call.Session)
	for i := 0; i < len(s.nodes); i++ {
		if err := s.read(i); err != nil {
			return nil, err
		}
	}
	s.free()
	if s.nodes[from].free {
		return nil, nil
	}
	return s.path(from), nil
}

type kind int8

const (
	ofRun  kind = iota // stuck while any of its calls is
	ofLine             // a queue: stuck while all agents that serve it are
	ofTurn             // an agent and a conversation: stuck while a turn of it is, or the agent
	ofFull             // an agent: stuck while all executions that hold its slots are
)

type key struct {
	kind kind
	name string // of the execution, queue or agent
	with string // the conversation
}

type node struct {
	key
	run  *Run  // of ofRun
	on   []int // what it waits for
	by   []int // who waits for it
	left int   // of on, those that are not free; for ofRun and ofTurn
	free bool  // it can go on
}

// search is the part of the graph that a call can reach.
type search struct {
	g      Graph
	caller string
	nodes  []node
	index  map[key]int
	runs   map[string]int // of index, those by one name: most nodes
	full   map[string]int
}

func (s *search) node(k key) int { return find(s, s.index, k, k, nil) }

// find returns the node of a key, and makes it where it is new.
func find[K comparable](s *search, index map[K]int, at K, k key, r *Run) int {
	i, known := index[at]
	if !known {
		i = len(s.nodes)
		index[at] = i
		s.nodes = append(s.nodes, node{key: k, run: r})
	}
	return i
}

func (s *search) agent(name string) int {
	return find(s, s.full, name, key{kind: ofFull, name: name}, nil)
}

func (s *search) run(r *Run) int { return find(s, s.runs, r.ID, key{kind: ofRun, name: r.ID}, r) }

// line is the node of a queue. A conversation counts only where a turn of it is
// running: otherwise all calls that wait in a queue share a node.
func (s *search) line(queue, session string) int {
	if session != "" && len(s.g.Turns(session)) == 0 {
		session = ""
	}
	return s.node(key{kind: ofLine, name: queue, with: session})
}

// read finds what a node waits for.
func (s *search) read(i int) error {
	n := s.nodes[i]
	var on []int
	switch n.kind {
	case ofRun:
		if n.name == s.caller {
			return nil
		}
		calls, err := s.g.Calls(n.name)
		if err != nil {
			return err
		}
		for _, c := range calls {
			if c.Agent != "" {
				on = append(on, s.run(&Run{ID: c.ID, Agent: c.Agent, Session: c.Session}))
			} else {
				on = append(on, s.line(c.Queue, c.Session))
			}
		}
	case ofLine:
		servers := s.g.Servers(n.name)
		on = make([]int, 0, len(servers))
		for _, agent := range servers {
			if n.with == "" {
				on = append(on, s.agent(agent))
			} else {
				on = append(on, s.node(key{kind: ofTurn, name: agent, with: n.with}))
			}
		}
	case ofTurn:
		turns := s.g.Turns(n.with)
		for i := range turns {
			if turns[i].Agent == n.name {
				on = append(on, s.run(&turns[i]))
			}
		}
		on = append(on, s.agent(n.name))
	case ofFull:
		holders := s.g.Holders(n.name)
		if slots, known := s.g.Slots(n.name); known && len(holders) >= slots {
			for i := range holders {
				on = append(on, s.run(&holders[i]))
			}
		}
	}
	s.nodes[i].on, s.nodes[i].left = on, len(on)
	for _, j := range on {
		s.nodes[j].by = append(s.nodes[j].by, i)
	}
	return nil
}

// free takes all for stuck, and strikes out whatever can go on until nothing
// changes. What waits for nothing can; caller cannot.
func (s *search) free() {
	var next []int
	strike := func(i int) {
		if !s.nodes[i].free {
			s.nodes[i].free = true
			next = append(next, i)
		}
	}
	for i := range s.nodes {
		if len(s.nodes[i].on) == 0 && !s.isCaller(i) {
			strike(i)
		}
	}
	for len(next) > 0 {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		for _, j := range s.nodes[i].by {
			n := &s.nodes[j]
			n.left--
			if n.kind == ofLine || n.kind == ofFull || n.left == 0 {
				strike(j)
			}
		}
	}
}

func (s *search) isCaller(i int) bool {
	return s.nodes[i].kind == ofRun && s.nodes[i].name == s.caller
}

// path returns the executions on the shortest way from a stuck node to caller;
// where there is none, on a way into another circle.
func (s *search) path(from int) []Run {
	came := map[int]int{from: -1}
	last := from // execution that was come by
	for next := []int{from}; len(next) > 0; next = next[1:] {
		at := next[0]
		if s.nodes[at].kind == ofRun {
			last = at
		}
		if s.isCaller(at) {
			break
		}
		for _, j := range s.nodes[at].on {
			if _, met := came[j]; !met && !s.nodes[j].free {
				came[j] = at
				next = append(next, j)
			}
		}
	}
	var path []Run
	for i := last; i >= 0; i = came[i] {
		if s.nodes[i].kind == ofRun {
			path = append(path, *s.nodes[i].run)
		}
	}
	slices.Reverse(path)
	return path
}
