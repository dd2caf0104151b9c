package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// ownKinds are the kinds of agents that Signalbox has itself: tasks may wait for
// one before it is there.
var ownKinds = []string{"claude", "codex", "opencode", "command", "llm", "demo"}

// agentsOf are the agents that the director knows. Whoever may not list them has
// a director that judges what they ask for.
func agentsOf(ctx context.Context, c *client.Client) ([]api.Agent, bool) {
	all, err := c.AgentsAndExecutors(ctx)
	return all.Agents, err == nil
}

// knownKind refuses a misspelt kind: a task for it would wait for ever. Of one
// that is only unknown it is said that the task waits.
func (a *app) knownKind(ctx context.Context, c *client.Client, flag, kind string) error {
	if kind == "" || slices.Contains(ownKinds, kind) {
		return nil
	}
	agents, ok := agentsOf(ctx, c)
	if !ok {
		return nil
	}
	known := slices.Clone(ownKinds)
	for _, g := range agents {
		known = append(known, g.Kind)
	}
	if slices.Contains(known, kind) {
		return nil
	}
	if near := signalbox.Nearest(kind, known); near != "" {
		return usage("%s: no agent is of kind %q; did you mean %s?", flag, kind, near)
	}
	if !a.json {
		a.note("No agent is of kind %s yet: what is for it waits until one comes.", kind)
	}
	return nil
}

// knownAgent refuses the name of an agent that is not there.
func (a *app) knownAgent(ctx context.Context, c *client.Client, what, name string) error {
	agents, ok := agentsOf(ctx, c)
	if !ok {
		return nil
	}
	names := namesOf(agents)
	if slices.Contains(names, name) {
		return nil
	}
	f := usage("%s: there is no agent %q", what, name)
	if near := signalbox.Nearest(name, names); near != "" {
		return f.hinted("did you mean %s?", near)
	}
	return f.hinted("signalbox agents lists them")
}

// knownQueue refuses a queue of an agent or kind that is misspelt.
func (a *app) knownQueue(ctx context.Context, c *client.Client, queue string) error {
	if name, ok := strings.CutPrefix(queue, "agent:"); ok {
		return a.knownAgent(ctx, c, queue, name)
	}
	if kind, ok := strings.CutPrefix(queue, "pool:"); ok {
		return a.knownKind(ctx, c, queue, kind)
	}
	return nil
}

// noteUnknownAgents says which agents of a token are not there: they may come
// later, so it is no error.
func (a *app) noteUnknownAgents(ctx context.Context, c *client.Client, names ...string) {
	agents, ok := agentsOf(ctx, c)
	if !ok || a.json {
		return
	}
	known := namesOf(agents)
	for _, name := range names {
		if name == "" || slices.Contains(known, name) {
			continue
		}
		if near := signalbox.Nearest(name, known); near != "" {
			a.note("No agent is named %s yet (did you mean %s?).", name, near)
		} else {
			a.note("No agent is named %s yet.", name)
		}
	}
}

func namesOf(agents []api.Agent) []string {
	names := make([]string, len(agents))
	for i, g := range agents {
		names[i] = g.Name
	}
	return names
}

// sure asks a person at a terminal before something is removed or stopped.
// Where nobody is there, as in a script, it is done.
func (a *app) sure(ctx context.Context, yes bool, question string) error {
	if yes || !a.io.InTTY || !a.io.ErrTTY {
		return nil
	}
	return a.confirm(ctx, question)
}
