package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/mcptools"
)

// toolsWait is how long a run waits for the first tools of servers that are
// still starting.
const toolsWait = 5 * time.Second

// findTools prepares the tools. The run's own token goes to its director and
// to nobody else.
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
	if o.Token != "" { // the execution is believed from its agent alone, and refused from others
		o.Execution = env(r.task.Env, "SIGNALBOX_QUEUE_ID")
	}
	o.Trace = env(r.task.Env, "TRACEPARENT")
	tools, err := mcptools.New(o)
	if err != nil {
		return fmt.Errorf("agent.llm.tools: %w", err)
	}
	r.tools = &startingTools{set: tools, auto: auto, say: r.say, wants: r.task.AllowedTools}
	return nil
}

func sameOrigin(a, b string) bool {
	u, err := url.Parse(a)
	v, other := url.Parse(b)
	return err == nil && other == nil && u.Host != "" && u.Scheme == v.Scheme && u.Host == v.Host
}

// allows reports whether the agent has a tool and the task lets the run have
// it: a task may narrow what the agent has, not widen it.
func (r *llmRun) allows(name string) bool {
	return among(r.o.Allowed, name) && among(r.task.AllowedTools, name)
}

// among reports whether a list of tools, if there is one, has a tool.
func among(list []string, name string) bool {
	if len(list) == 0 {
		return true
	}
	for _, a := range list {
		start, all := strings.CutSuffix(a, "*")
		if name == a || all && strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}

// startingTools waits for the first list to have something in it: a gateway
// that was just started serves before its servers do.
type startingTools struct {
	set   *mcptools.Tools
	auto  bool // a director that has no tools is no error
	say   func(format string, args ...any)
	wants []string
	once  sync.Once
	none  atomic.Bool // it has none
}

func (s *startingTools) Tools(ctx context.Context) (list []llm.Tool, err error) {
	first := false
	s.once.Do(func() { first = true })
	if s.none.Load() {
		return nil, nil
	}
	list, err = s.set.Tools(ctx)
	if !first {
		return list, err
	}
	if s.auto && noSuchEndpoint(err) {
		s.none.Store(true)
		s.say(noToolsText, "the director has none")
		return nil, nil
	}
	give := time.Now().Add(toolsWait)
	for err == nil && s.missing(list) != "" && time.Now().Before(give) {
		if !pause(ctx, 200*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
		list, err = s.set.Tools(ctx)
	}
	if what := s.missing(list); err == nil && what != "" {
		s.say("%s", what)
	}
	return list, err
}

// noToolsText tells of a run that has no tools with agent.llm.tools: auto.
const noToolsText = "this run has no tools: %s"

// noSuchEndpoint reports whether a director has no tools at all, rather than
// none that this agent may have at this time.
func noSuchEndpoint(err error) bool {
	var refused *mcptools.Refused
	return errors.As(err, &refused) && refused.Status == http.StatusNotFound
}

// Call runs a tool.
func (s *startingTools) Call(ctx context.Context, c llm.ToolCall) (string, bool, error) {
	return s.set.Call(ctx, c)
}

// missing says what a list lacks, or "".
func (s *startingTools) missing(list []llm.Tool) string {
	known := map[string]bool{}
	for _, t := range list {
		known[t.Name] = true
	}
	for _, name := range s.wants {
		if !strings.HasSuffix(name, "*") && !known[name] {
			return fmt.Sprintf("allowed_tools: there is no tool %s", name)
		}
	}
	if len(list) == 0 {
		return "no tools are offered at this time"
	}
	return ""
}

// toolsCure says what a person can do about tools that cannot be had.
func toolsCure(err error) string {
	var refused *mcptools.Refused
	if !errors.As(err, &refused) {
		return "see that the director, or what agent.llm.tools names, runs; or set agent.llm.tools to none"
	}
	switch refused.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "give this agent a token of its own in SIGNALBOX_TOKEN; who administers the director makes it with: signalbox tokens create NAME --agent NAME. Or set agent.llm.tools to none for an agent without tools"
	case http.StatusNotFound:
		return "give the director tools (signalbox up --tools FILE), or set agent.llm.tools to auto or none"
	}
	return "see agent.llm.tools and agent.llm.allowed_tools"
}
