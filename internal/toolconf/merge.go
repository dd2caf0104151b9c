package toolconf

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// merge collects the content of the files.
type merge struct {
	problems conffile.Problems
	notes    []Note

	blocks  []string        // where a file defines queues
	named   map[string]bool // queues that are defined, including those with mistakes
	queues  map[string]Queue
	servers map[string]Server
	rest    map[string]RestTool
	openapi map[string]OpenAPI
	refs    []reference

	commands      map[string]CommandTool
	maxConcurrent int // the greatest in any file
}

// reference is a place that names a queue.
type reference struct{ where, key, queue string }

func newMerge() *merge {
	return &merge{
		named: map[string]bool{}, queues: map[string]Queue{}, servers: map[string]Server{}, rest: map[string]RestTool{}, openapi: map[string]OpenAPI{},
		commands: map[string]CommandTool{},
	}
}

func (m *merge) problem(where, key, text string) {
	m.problems = append(m.problems, conffile.Problem{Where: where, Key: key, Text: text})
}

func (m *merge) note(where, key, text string, warning bool) {
	m.notes = append(m.notes, Note{Where: where, Key: key, Text: text, Warning: warning})
}

// addQueue keeps the greater of each limit: a file can only raise the limits of
// another one. A queue is shared if any file says so.
func (m *merge) addQueue(name string, q Queue) {
	if have, ok := m.queues[name]; ok {
		if have.Per != q.Per || have.Argument != q.Argument {
			m.problem(q.Where, keyQueues+"."+name, "its per is not the same as at "+have.Where+": want the same in both, for what each the limits hold")
		}
		q = Queue{
			Rate: have.Rate.Greater(q.Rate), Per: have.Per, Argument: have.Argument,
			Concurrent: max(have.Concurrent, q.Concurrent), MaxWait: max(have.MaxWait, q.MaxWait), MaxWaiters: max(have.MaxWaiters, q.MaxWaiters),
			LeaseIdle: max(have.LeaseIdle, q.LeaseIdle), LeaseHold: max(have.LeaseHold, q.LeaseHold), Shared: have.Shared || q.Shared, Where: have.Where,
		}
	}
	m.queues[name] = q
}

func (m *merge) addServer(s Server) {
	if other, ok := m.openapi[s.Name]; ok {
		m.taken(s.Where, keyServers+"."+s.Name, "a description", other.Where)
	} else {
		add(m, m.servers, s, s.Name, keyServers, "another server")
	}
}

func (m *merge) addOpenAPI(o OpenAPI) {
	if other, ok := m.servers[o.Name]; ok {
		m.taken(o.Where, keyOpenAPI+"."+o.Name, "a server", other.Where)
	} else {
		add(m, m.openapi, o, o.Name, keyOpenAPI, "another description")
	}
}

// add adds an entry. Another one with the same name is an error unless it is
// identical.
func add[T any, P interface {
	*T
	place() *string
}](m *merge, all map[string]T, entry T, name, key, what string) {
	have, ok := all[name]
	if !ok {
		all[name] = entry
		return
	}
	first, where := *P(&have).place(), *P(&entry).place()
	if *P(&have).place() = where; !reflect.DeepEqual(have, entry) {
		m.taken(where, key+"."+name, what, first)
	}
}

func (s *Server) place() *string      { return &s.Where }
func (t *RestTool) place() *string    { return &t.Where }
func (o *OpenAPI) place() *string     { return &o.Where }
func (t *CommandTool) place() *string { return &t.Where }

func (m *merge) taken(where, key, what, first string) {
	m.problem(where, key, fmt.Sprintf("there is already %s of that name, at %s: give one of them another name, or switch it off with enabled: false", what, first))
}

// finish makes the checks that need all files.
func (m *merge) finish() (Config, conffile.Problems) {
	tools := len(m.servers)+len(m.rest)+len(m.openapi)+len(m.commands) > 0
	switch {
	case len(m.blocks) > 0 && !m.named[toolqueue.Default]:
		m.problem(m.blocks[0], keyQueues, fmt.Sprintf("there is no queue named %s, which is for the tools that name none: want %s: {concurrent: %d} beside the others",
			toolqueue.Default, toolqueue.Default, toolqueue.DefaultConcurrent))
		m.named[toolqueue.Default] = true // already reported
	case len(m.blocks) == 0 && (tools || len(m.refs) > 0):
		m.named[toolqueue.Default] = true
		m.queues[toolqueue.Default] = Queue{Concurrent: toolqueue.DefaultConcurrent}
	}
	names := slices.Sorted(maps.Keys(m.named))
	for _, r := range m.refs {
		if !m.named[r.queue] {
			m.problem(r.where, r.key, fmt.Sprintf("there is no tool queue named %s: want it under %s, or one of %s%s",
				r.queue, keyQueues, strings.Join(names, ", "), conffile.Suggest(r.queue, names)))
		}
	}
	m.prefixes()
	if len(m.problems) > 0 {
		return Config{}, m.problems
	}
	c := Config{Servers: sorted(m.servers), Rest: sorted(m.rest), OpenAPI: sorted(m.openapi), Commands: sorted(m.commands), MaxConcurrent: m.maxConcurrent, Notes: m.notes}
	if len(m.queues) > 0 {
		c.Queues = m.queues
	}
	return c, nil
}

// prefixes reports commands whose names begin with the prefix of a server's tools.
func (m *merge) prefixes() {
	for _, t := range sorted(m.commands) {
		server, _, ok := strings.Cut(t.Name, "__")
		if s, there := m.servers[server]; ok && there {
			m.problem(t.Where, "", "want another name than "+t.Name+": those of the tools of the server at "+s.Where+" begin with "+server+"__")
		}
	}
}

func sorted[T any](m map[string]T) []T {
	var out []T
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[name])
	}
	return out
}

// ToolQueues converts the queues for toolqueue.Configure.
func (c Config) ToolQueues() map[string]toolqueue.Config {
	out := make(map[string]toolqueue.Config, len(c.Queues))
	for name, q := range c.Queues {
		out[name] = toolqueue.Config{
			Concurrent: q.Concurrent, MaxWait: q.MaxWait, MaxWaiters: q.MaxWaiters,
			Lease: toolqueue.Lease{Idle: q.LeaseIdle, MaxHold: q.LeaseHold}, Shared: q.Shared,
			Rate: q.Rate, PerKey: q.Per != "",
		}
	}
	return out
}
