package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/mcptools"
	"github.com/signalbox-ai/signalbox/steplimit"
)

// toolsWait is how long a run waits for the first tools of servers that are
// still starting.
const toolsWait = 5 * time.Second

// listWait is how long a run waits for a tool that a list of the agent names,
// unless Patience is set.
const listWait = 30 * time.Second

// findTools prepares the tools. Only the run's director gets the run's own
// token.
func (r *llmRun) findTools() error {
	if r.o.Tools == "none" {
		return nil
	}
	director := strings.TrimRight(env(r.task.Env, "SIGNALBOX_DIRECTOR"), "/")
	at := r.o.Tools
	auto := at == "auto"
	if auto || at == "director" {
		if director == "" && auto {
			r.without = "this agent knows no director"
			return nil
		}
		if director == "" {
			return errors.New("this agent knows no director to have tools from: start it with --director URL, or set agent.llm.tools to the URL of an MCP endpoint, or to none")
		}
		at = director + "/mcp"
	}
	o := mcptools.Options{URL: at, Allowed: r.allows, Progress: r.progress, Patience: r.o.Patience}
	if sameOrigin(at, director) {
		o.Token = env(r.task.Env, "SIGNALBOX_TOKEN")
	}
	if o.Token != "" { // the director accepts an execution only from its agent, and refuses it from others
		o.Execution = env(r.task.Env, "SIGNALBOX_QUEUE_ID")
	}
	o.Trace = env(r.task.Env, "TRACEPARENT")
	tools, err := mcptools.New(o)
	if err != nil {
		return fmt.Errorf("agent.llm.tools: %w", err)
	}
	r.tools = &startingTools{
		set: tools, auto: auto, say: r.emit, wants: r.task.AllowedTools, lists: r.o.toolLists(),
		wait: cmp.Or(r.o.Patience, listWait),
	}
	return nil
}

func sameOrigin(a, b string) bool {
	u, err := url.Parse(a)
	v, other := url.Parse(b)
	return err == nil && other == nil && u.Host != "" && u.Scheme == v.Scheme && u.Host == v.Host
}

// allows reports whether the agent has a tool and the task lets the run use
// it: a task may narrow the agent's tools, not widen them.
func (r *llmRun) allows(name string) bool {
	return inList(r.o.Allowed, name) && inList(r.task.AllowedTools, name)
}

// inList reports whether a list of tools contains a tool; an empty list
// contains all.
func inList(list []string, name string) bool { return len(list) == 0 || matches(list, name) }

// matches reports whether a pattern of a list matches a tool.
func matches(list []string, name string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool { return signalbox.MatchTool(pattern, name) })
}

// called returns a predicate for calls of the tools that a list matches.
func called(list []string) func(steplimit.Call) bool {
	return func(c steplimit.Call) bool { return matches(list, c.Name) }
}

// startingTools waits until the first list is not empty: a gateway that has
// just started is up before its servers.
type startingTools struct {
	set   *mcptools.Tools
	auto  bool // a director without tools is not an error
	say   func(format string, args ...any)
	wants []string
	once  sync.Once
	none  atomic.Bool // the director has none

	lists   []toolList
	checked atomic.Bool // each entry of lists has matched a tool
	wait    time.Duration
}

// toolList is a list of tools in the configuration.
type toolList struct {
	key     string
	entries []string
}

// listError reports an entry that matches no tool.
type listError struct{ key, entry, near string }

func (e *listError) Error() string {
	text := fmt.Sprintf("%s: no tool that is offered is named %q", e.key, e.entry)
	if strings.Contains(e.entry, "*") {
		text = fmt.Sprintf("%s: no tool that is offered fits %q", e.key, e.entry)
	}
	if e.near != "" {
		text += fmt.Sprintf("; did you mean %q?", e.near)
	} else {
		text += "."
	}
	return text + " The run stops, because such a list guards nothing: correct the name, remove it, or start the server that has the tool"
}

// check returns an error if an entry of the agent's lists matches none of the
// offered tools. If no tools are offered, there is nothing to guard.
func (s *startingTools) check() error {
	offered := s.set.Offered()
	if s.checked.Load() || len(offered) == 0 {
		return nil
	}
	for _, l := range s.lists {
		for _, entry := range l.entries {
			if !slices.ContainsFunc(offered, func(name string) bool { return signalbox.MatchTool(entry, name) }) {
				return &listError{l.key, entry, signalbox.Nearest(entry, offered)}
			}
		}
	}
	s.checked.Store(true)
	return nil
}

func (s *startingTools) Tools(ctx context.Context) (list []llm.Tool, err error) {
	first := false
	s.once.Do(func() { first = true })
	if s.none.Load() {
		return nil, nil
	}
	list, err = s.set.Tools(ctx)
	if !first {
		if err == nil {
			err = s.check()
		}
		return list, err
	}
	if s.auto && noSuchEndpoint(err) {
		s.none.Store(true)
		s.say(noToolsText, "the director has none")
		return nil, nil
	}
	for began := time.Now(); err == nil && s.mayStillStart(list, time.Since(began)); {
		if !pause(ctx, 200*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
		list, err = s.set.Tools(ctx)
	}
	if err == nil {
		err = s.check()
	}
	if what := s.missing(list); err == nil && what != "" {
		s.say("%s", what)
	}
	return list, err
}

// mayStillStart reports whether servers that are still starting may bring the
// missing tools. A tool that a list of the agent names is waited for longer,
// because the run fails without it.
func (s *startingTools) mayStillStart(list []llm.Tool, waited time.Duration) bool {
	return s.missing(list) != "" && waited < toolsWait || s.check() != nil && waited < s.wait
}

// noToolsText is the message of a run without tools with agent.llm.tools:
// auto.
const noToolsText = "this run has no tools: %s"

// noSuchEndpoint reports whether a director has no tools at all, as opposed
// to none for this agent at this time.
func noSuchEndpoint(err error) bool {
	var refused *mcptools.Refused
	return errors.As(err, &refused) && refused.Status == http.StatusNotFound
}

// Call runs a tool.
func (s *startingTools) Call(ctx context.Context, c llm.ToolCall) (string, bool, error) {
	return s.set.Call(ctx, c)
}

// missing describes what a list lacks, or is "".
func (s *startingTools) missing(list []llm.Tool) string {
	known := map[string]bool{}
	for _, t := range list {
		known[t.Name] = true
	}
	for _, name := range s.wants {
		if !strings.Contains(name, "*") && !known[name] {
			return fmt.Sprintf("allowed_tools: there is no tool %s", name)
		}
	}
	if len(list) == 0 {
		return "no tools are offered at this time"
	}
	return ""
}

// toolsHint says what to do if tools cannot be listed.
func toolsHint(err error) string {
	var refused *mcptools.Refused
	if !errors.As(err, &refused) {
		return "see that the director, or what agent.llm.tools names, runs; or set agent.llm.tools to none"
	}
	switch refused.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "give this agent a token of its own in SIGNALBOX_TOKEN; an admin of the director creates it with: signalbox tokens create NAME --agent NAME. Or set agent.llm.tools to none for an agent without tools"
	case http.StatusNotFound:
		return "give the director tools (signalbox up --tools FILE), or set agent.llm.tools to auto or none"
	}
	return "see agent.llm.tools and agent.llm.allowed_tools"
}
