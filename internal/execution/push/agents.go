package push

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/handshake"
)

// loadAgents makes the lanes agree with the stored agents.
func (d *Dispatcher) loadAgents(ctx context.Context) error {
	rows, err := d.Engine.Read().Agents(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	d.setPulls(rows)
	for _, row := range rows {
		if ours(row.Name) || row.Source == signalbox.AgentPull {
			continue
		}
		known[row.Name] = true
		d.putLane(row)
	}
	d.Mu.Lock()
	defer d.relisted()
	defer d.Mu.Unlock()
	for _, l := range slices.Clone(d.Order) {
		l.Removed = !known[l.Name]
		d.Mark(l)
		if !l.Removed || len(l.Runs) > 0 {
			continue
		}
		l.stop()
		if l.term != nil {
			l.term.stop()
			l.term = nil
		}
		l.returned()
		d.Remove(l)
	}
	return nil
}

// relisted tells who shares out the agents that they may be others.
func (d *Dispatcher) relisted() {
	if d.opts.Relisted != nil {
		d.opts.Relisted()
	}
}

// ours reports whether a name is that of the director's own executor, which
// follows its tasks by itself: it has no lane, and its tasks no run here.
func ours(agent string) bool {
	_, own := signalbox.ExecutorKind(agent)
	return own
}

// setPulls takes in which agents pull.
func (d *Dispatcher) setPulls(rows []signalbox.Agent) {
	pulls := map[string]bool{}
	for i := range rows {
		if rows[i].Source == signalbox.AgentPull {
			pulls[rows[i].Name] = true
		}
	}
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.pulls = pulls
}

// othersFollow reports whether the tasks of an agent are followed by others: by
// the executor, or, of an agent that pulls, by package pull.
func (d *Dispatcher) othersFollow(agent string) bool {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	return ours(agent) || d.pulls[agent]
}

// putLane adds a lane for an agent, or takes in that its row changed.
func (d *Dispatcher) putLane(row signalbox.Agent) {
	if !d.differs(row) {
		return // each of many agents that register one after another touches only its own lane
	}
	token, err := d.Engine.AgentToken(row)
	if err != nil {
		d.Log.Error("agent cannot be used", "agent", row.Name, "error", err)
	}
	c := newConn(row.URL, token, handshake.ToAgent(d.opts.Transport, row.URL, token, row.Proof))
	c.proved = row.Proof
	d.takeOver(d.lay(row, c))
}

// lay makes the lane of an agent, or changes it, and returns its term where
// what is in flight there is yet to be taken up.
func (d *Dispatcher) lay(row signalbox.Agent, c *conn) map[string]*term {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if l := d.Lanes[row.Name]; l != nil {
		l.change(row, c, d.opts.Monotonic())
		d.Mark(l)
		return nil
	}
	ctx, stop := context.WithCancel(d.Ctx)
	l := &lane{Lane: execution.NewLane[*run](row, d.opts.Monotonic()), stored: row, conn: c, stop: stop, probing: execution.NewSignal()}
	d.Put(l)
	if d.alone() || d.mine[l.Name] {
		l.begin(ctx)
		l.term.ready = d.alone() && d.isAdopted()
	}
	d.Group.Go(func() { d.laneLoop(ctx, l) })
	d.Group.Go(func() { d.probeLoop(ctx, l) })
	if t := l.term; t != nil && !t.ready && d.isAdopted() {
		return map[string]*term{l.Name: t}
	}
	return nil
}

// isAdopted reports whether Start has taken up what was in flight.
func (d *Dispatcher) isAdopted() bool {
	select {
	case <-d.adopted:
		return true
	default:
		return false
	}
}

// differs reports whether the row of an agent is another one than it was.
func (d *Dispatcher) differs(row signalbox.Agent) bool {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	l := d.Lanes[row.Name]
	return l == nil || !same(&l.stored, &row)
}

func same(a, b *signalbox.Agent) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.URL == b.URL && a.Slots == b.Slots && a.Fencing == b.Fencing && a.Proof == b.Proof &&
		a.Source == b.Source && bytes.Equal(a.SealedToken, b.SealedToken) && a.WorkDir == b.WorkDir &&
		a.Version == b.Version && a.CreatedAt.Equal(b.CreatedAt)
}

// change takes in another row of the agent. What it said of itself counts
// more than its row, as long as it is still the same agent.
func (l *lane) change(row signalbox.Agent, c *conn, now time.Time) {
	l.stored = row
	if l.conn.base != c.base || l.conn.token != c.token {
		l.conn, l.status = c, api.AgentStatus{}
		l.Presence.Gone(now, "it moved to "+row.URL)
		l.Health.Well()
		l.epoch++
	} else if l.conn.proved != c.proved {
		l.conn = c
	}
	if l.status.AgentKind != "" {
		row.Fencing = l.status.Fencing
		row.Kind = knownKind(row.Kind, l.status)
		if l.status.Slots > 0 {
			row.Slots = l.status.Slots
		}
	}
	l.Row, l.stale = row, true
	l.probing.Send()
}
