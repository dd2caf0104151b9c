package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Pausing an agent's own queue drains the agent: it finishes what it runs and claims from
// no queue. Its isolated executions are not affected; they have a queue of their own.

// Drained reports whether an agent is drained.
func (e *Engine) Drained(ctx context.Context, agent string) bool {
	drains, err := e.drains(ctx)
	_, drained := drains[agent]
	return err == nil && drained
}

// drains returns the pauses that drain agents, by agent name.
func (e *Engine) drains(ctx context.Context) (map[string]signalbox.Pause, error) {
	pauses, err := e.store.Pauses(ctx)
	if err != nil {
		return nil, err
	}
	var drains map[string]signalbox.Pause
	for _, p := range pauses {
		name, own := signalbox.QueueAgent(p.Queue)
		if !own || !e.inForce(&p) {
			continue
		}
		if drains == nil {
			drains = map[string]signalbox.Pause{}
		}
		drains[name] = p
	}
	return drains, nil
}

// Paused reports whether a queue is paused, by itself or together with all others.
func (e *Engine) Paused(ctx context.Context, queue string) (bool, error) {
	pauses, err := e.store.Pauses(ctx)
	return slices.ContainsFunc(pauses, func(p signalbox.Pause) bool { return (p.Queue == "" || p.Queue == queue) && e.inForce(&p) }), err
}

// inForce reports whether a pause has not expired; its row may outlive it.
func (e *Engine) inForce(p *signalbox.Pause) bool {
	return p.UntilMS == 0 || p.UntilMS > e.Now().UnixMilli()
}

// splitDrained splits the servers of a queue into those that may claim from it and
// descriptions of the drained ones, with a cure.
func (e *Engine) splitDrained(ctx context.Context, servers []LiveAgent) (able []LiveAgent, drained []string, cure string, err error) {
	drains, err := e.drains(ctx)
	if err != nil || len(drains) == 0 {
		return servers, nil, "", err
	}
	for _, a := range servers {
		p, is := drains[a.Name]
		if !is {
			able = append(able, a)
			continue
		}
		text := fmt.Sprintf("%s is paused by %s for %s", a.Name, cmp.Or(p.By, "someone"), e.since(time.UnixMilli(p.AtMS)))
		if p.Reason != "" {
			text += " (" + p.Reason + ")"
		}
		drained = append(drained, text)
		cure = cmp.Or(cure, "signalbox resume "+p.Queue)
	}
	return able, drained, cure, nil
}

// drainedGate is closed because all agents that could take the task are drained.
func drainedGate(drained []string, cure string) Gate {
	g := Gate{Name: "agent_free", Text: drained[0] + ": it takes from no queue", Cure: cure}
	if len(drained) > 1 {
		g.Text = fmt.Sprintf("All %d connected agents are paused: they take from no queue", len(drained))
		g.Detail = joinFirst(drained)
	}
	return g
}

// joinFirst joins the first five entries, and says how many more there are.
func joinFirst(list []string) string {
	text := strings.Join(list[:min(5, len(list))], "; ")
	if more := len(list) - 5; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// withDrained adds to a closed gate that more agents would take the task if they were not
// drained.
func (g Gate) withDrained(drained []string) Gate {
	if g.OK || len(drained) == 0 {
		return g
	}
	g.Detail = strings.Join(slices.DeleteFunc([]string{g.Detail, joinFirst(drained)}, func(s string) bool { return s == "" }), "; ")
	return g
}
