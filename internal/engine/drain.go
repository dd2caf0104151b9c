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

// A pause of an agent's own queue drains the agent: it goes on with what it
// runs, and takes from no queue. Its isolated executions have a queue of their
// own.

// Drained reports whether an agent is kept from all queues by a pause of its
// own.
func (e *Engine) Drained(ctx context.Context, agent string) bool {
	drains, err := e.drains(ctx)
	_, drained := drains[agent]
	return err == nil && drained
}

// drains returns the pauses that drain an agent, by its name.
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

// Paused reports whether nothing of a queue is given out now, for it or all
// queues are paused.
func (e *Engine) Paused(ctx context.Context, queue string) (bool, error) {
	pauses, err := e.store.Pauses(ctx)
	return slices.ContainsFunc(pauses, func(p signalbox.Pause) bool { return (p.Queue == "" || p.Queue == queue) && e.inForce(&p) }), err
}

// inForce reports whether a pause holds anything back: not when its time is
// over, even while its row still stands.
func (e *Engine) inForce(p *signalbox.Pause) bool {
	return p.UntilMS == 0 || p.UntilMS > e.Now().UnixMilli()
}

// undrained are the servers of a queue that may take from it, and what is said
// of the others.
func (e *Engine) undrained(ctx context.Context, servers []LiveAgent) (able []LiveAgent, drained []string, cure string, err error) {
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

// drainedGate is shut where all who could take the task are paused.
func drainedGate(drained []string, cure string) Gate {
	g := Gate{Name: "agent_free", Text: drained[0] + ": it takes from no queue", Cure: cure}
	if len(drained) > 1 {
		g.Text = fmt.Sprintf("All %d connected agents are paused: they take from no queue", len(drained))
		g.Detail = some(drained)
	}
	return g
}

// some joins the first five of a list, and says how many more there are.
func some(list []string) string {
	text := strings.Join(list[:min(5, len(list))], "; ")
	if more := len(list) - 5; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// withDrained says of a shut gate that there are agents which would take the
// task if they were not paused.
func (g Gate) withDrained(drained []string) Gate {
	if g.OK || len(drained) == 0 {
		return g
	}
	g.Detail = strings.Join(slices.DeleteFunc([]string{g.Detail, some(drained)}, func(s string) bool { return s == "" }), "; ")
	return g
}
