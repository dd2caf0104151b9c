package director

import (
	"context"
	"fmt"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// checkTools looks at the servers of tools, and at the calls that are tasks.
func (d *Director) checkTools(ctx context.Context, admin bool) []api.Check {
	if d.cfg.Tools == nil {
		return nil
	}
	return append(checkServers(d.cfg.Tools.Servers(), admin), d.checkExecutors(ctx)...)
}

// checkServers looks at the servers of tools. Their own words may hold paths
// and addresses.
func checkServers(servers []gateway.Server, admin bool) []api.Check {
	const cure = "signalbox tools servers says more"
	var out []api.Check
	ready := 0
	for _, s := range servers {
		because := ""
		if admin && s.Error != "" {
			because = ": " + s.Error
		}
		switch s.State {
		case gateway.StateReady:
			ready++
			if s.Error != "" {
				out = append(out, warning("tools", cure, "server %s is ready, with a fault%s", s.Name, because))
			}
		case gateway.StateFailed:
			out = append(out, warning("tools", cure+"; it is tried again by itself", "server %s has failed%s", s.Name, because))
		case gateway.StateStarting, gateway.StateStopped:
			out = append(out, warning("tools", cure, "server %s is %s", s.Name, s.State))
		}
	}
	return append([]api.Check{fine("tools", "%d of %d servers are ready", ready, len(servers))}, out...)
}

// checkExecutors looks at the director's own executor, at what waits for it, and
// at slots that nobody can free.
func (d *Director) checkExecutors(ctx context.Context) []api.Check {
	counts, err := d.engine.Read().Counts(ctx)
	if err != nil {
		return nil // the look at the store says it
	}
	var out []api.Check
	for _, a := range d.engine.LiveAgents() {
		kind, own := signalbox.ExecutorKind(a.Name)
		if !own || !d.ownExecutor(a.Name) { // each director looks at its own
			continue
		}
		if a.Message != "" {
			out = append(out, warning("tools", "see the director's log; a restart of the machine ends what hangs in the system", "%s: %s", kind, a.Message))
		}
		if kind == signalbox.ExecutorCommands {
			out = append(out, d.checkCommands(counts.Limits[signalbox.LimitCommands], a))
		}
	}
	return out
}

// checkCommands compares what waits with commands.max_waiting, as checkDepth
// does for the backlog.
func (d *Director) checkCommands(waiting int, a engine.LiveAgent) api.Check {
	const cure = "raise commands.max_waiting or commands.max_concurrent, or cancel what is no longer needed: signalbox tools tasks lists it"
	text := fmt.Sprintf("%d of %d command slots are taken", a.InUse, a.Slots)
	most := d.engine.MaxCommands()
	if most == 0 {
		return fine("tools", "%s, %d commands wait", text, waiting)
	}
	text += fmt.Sprintf(", %d of at most %d commands wait", waiting, most)
	switch {
	case waiting >= most:
		return failure("tools", cure, "%s: calls are refused", text)
	case waiting*5 >= most*4:
		return warning("tools", cure, "%s", text)
	}
	return fine("tools", "%s", text)
}
