package engine

import (
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/resources"
)

// gateHolds is open if one of the connected agents could be given all resources that the task needs; nil if
// it needs none.
func (e *Engine) gateHolds(ctx context.Context, t *signalbox.Task, servers []LiveAgent) (*Gate, error) {
	holds, err := e.store.Holds(ctx)
	if err != nil {
		return nil, err
	}
	var lack *resources.Lack
	dir := ""
	for i := range servers {
		needs := t.Requires(servers[i].FolderOf(t.Workplace))
		if len(needs) == 0 {
			return nil, nil
		}
		if lack, dir = resources.First(e.opts.Resources, needs, holds), servers[i].WorkDir; lack == nil {
			return &Gate{Name: "resources_free", OK: true, Text: "What it needs is free", Detail: "it gets all of it when it starts"}, nil
		}
	}
	if lack == nil {
		return nil, nil
	}
	g := &Gate{Name: "resources_free", Cure: "Wait, or cancel what holds it."}
	if h := lack.Holder; h != nil {
		running, err := e.store.InFlight(ctx)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(running, func(t signalbox.Task) bool { return t.Agent == h.Agent && t.Slot == h.Slot && t.Fence == h.Fence }); i >= 0 {
			g.TaskID, g.Agent, g.Cure = running[i].ID, h.Agent, "Wait, or signalbox cancel "+running[i].ID
		}
	}
	g.Text, g.Detail = lack.Texts(g.TaskID, dir)
	return g, nil
}
