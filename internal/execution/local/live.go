package local

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// Agents implements engine.Live: the executor's own rows.
func (x *Executor) Agents() []engine.LiveAgent {
	x.mu.Lock()
	others := x.others
	x.mu.Unlock()
	live := make([]engine.LiveAgent, 0, len(x.pools)+len(others))
	for _, p := range x.pools {
		live = append(live, x.live(p))
	}
	for i := range others {
		live = append(live, x.liveOther(&others[i]))
	}
	return live
}

// LiveAgent implements engine.Live.
func (x *Executor) LiveAgent(name string) (engine.LiveAgent, bool) {
	for _, a := range x.Agents() {
		if a.Name == name {
			return a, true
		}
	}
	return engine.LiveAgent{}, false
}

func (x *Executor) live(p *pool) engine.LiveAgent {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := engine.LiveAgent{Agent: p.row, Up: x.started && !x.draining, InUse: p.used, LastHeard: x.engine.Now()}
	switch {
	case x.draining:
		a.Message = "the director is stopping"
	case !x.started:
		a.Message = "the director is starting"
	case p.hung > 0:
		a.Message = fmt.Sprintf("%d of its %d slots stay taken by runs that cannot be killed", p.hung, p.row.Slots)
	}
	return a
}

// WaitsFor implements engine.WaitExplainer.
func (x *Executor) WaitsFor(id string) string {
	if r := x.runOf(id); r != nil {
		text, _ := r.waitsFor()
		return text
	}
	return ""
}

// Output returns the log of a task that runs here, like execution.Registry.Output.
func (x *Executor) Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool) {
	r := x.runOf(id)
	if r == nil {
		return api.Output{}, false
	}
	t := r.row()
	return execution.Output(ctx, &t, r.Tail, after, wait)
}
