package director

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// whyTimeout bounds what the other directors may add to an answer.
const whyTimeout = 1500 * time.Millisecond

// addElsewhere tells of a task in flight what only other directors know: where
// a call of a tool stands of which it is the task, or which it makes; an agent
// calls tools at whichever director it reaches.
func (d *Director) addElsewhere(ctx context.Context, out *api.Why, t *signalbox.Task) {
	if !t.State.InFlight() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, whyTimeout)
	defer cancel()
	if isTool(t) {
		if holder, elsewhere := d.otherHolder(ctx, t.Agent); elsewhere {
			if got, ok := d.askWhy(ctx, holder, t.ID); ok && got.State == out.State {
				*out = got
			}
		}
		return
	}
	if d.cfg.Tools == nil {
		return
	}
	others := d.others(ctx)
	said := make([]api.Why, len(others))
	var asking sync.WaitGroup
	for i := range others {
		asking.Go(func() { said[i], _ = d.askWhy(ctx, others[i], t.ID) })
	}
	asking.Wait()
	for i := range said {
		addGates(out, said[i].Gates)
	}
}

func (d *Director) askWhy(ctx context.Context, other store.Director, id string) (got api.Why, ok bool) {
	err := d.ask(ctx, other, question{method: http.MethodGet, path: taskURL(id) + "/why"}, 0, &got)
	if err != nil && ctx.Err() == nil {
		d.log.Debug("another director did not say why", "queue_id", id, "director", other.ID, "error", err)
	}
	return got, err == nil
}

// addGates adds what another director knows of tool queues. One that several
// share is known to all of them.
func addGates(out *api.Why, gates []api.Gate) {
	for _, g := range gates {
		if g.Name != gateCapacity || slices.ContainsFunc(out.Gates, func(have api.Gate) bool { return have.Name == g.Name && have.Text == g.Text }) {
			continue
		}
		addGate(out, g)
	}
}
