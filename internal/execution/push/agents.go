package push

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/handshake"
)

// loadAgents updates the lanes to the stored agents.
func (d *Dispatcher) loadAgents(ctx context.Context) error {
	rows, err := d.Engine.Read().Agents(ctx)
	if err != nil {
		return err
	}
	known, pulls := map[string]bool{}, map[string]bool{}
	for _, row := range rows {
		switch {
		case row.Source == signalbox.AgentPull:
			pulls[row.Name] = true
		case !signalbox.IsExecutor(row.Name):
			known[row.Name] = true
			d.loadAgent(row)
		}
	}
	if d.opts.Relisted != nil {
		defer d.opts.Relisted()
	}
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.pulls = pulls
	for _, l := range slices.Clone(d.Order) {
		l.Removed = !known[l.Name]
		d.Update(l)
		if !l.Removed || len(l.Runs) > 0 {
			continue
		}
		l.stop()
		if l.term != nil {
			l.term.stop()
			l.term = nil
		}
		l.notifyUp()
		d.Remove(l)
	}
	return nil
}

// loadAgent adds or updates the lane of an agent.
func (d *Dispatcher) loadAgent(row signalbox.Agent) {
	d.Mu.Lock()
	l := d.Lanes[row.Name]
	unchanged := l != nil && sameAgent(&l.stored, &row)
	d.Mu.Unlock()
	if unchanged {
		return // when many agents register at once, each touches only its own lane
	}
	token, err := d.Engine.AgentToken(row)
	if err != nil {
		d.Log.Error("agent cannot be used", "agent", row.Name, "error", err)
	}
	c := newConn(row.URL, token, d.opts.AskTimeout, handshake.ToAgent(d.opts.Transport, row.URL, token, row.Proof))
	c.proved, c.most = row.Proof, d.opts.MaxAnswer
	d.adoptAgents(d.upsertLane(row, c))
}

// upsertLane adds or updates the lane of an agent, and returns its term if the tasks in
// flight there are yet to be adopted.
func (d *Dispatcher) upsertLane(row signalbox.Agent, c *conn) map[string]*term {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if l := d.Lanes[row.Name]; l != nil {
		l.change(row, c, d.opts.Monotonic())
		d.Update(l)
		return nil
	}
	ctx, stop := context.WithCancel(d.Ctx)
	adopted := execution.Taken(d.adopted) // the adoption at the start is over
	l := &lane{Lane: execution.NewLane[*run](row, d.opts.Monotonic()), stored: row, conn: c, stop: stop, probing: execution.NewSignal()}
	d.Put(l)
	if d.single() || d.mine[l.Name] {
		l.begin(ctx)
		l.term.ready = d.single() && adopted
	}
	d.Group.Go(func() { d.laneLoop(ctx, l) })
	d.Group.Go(func() { d.probeLoop(ctx, l) })
	if t := l.term; t != nil && !t.ready && adopted {
		return map[string]*term{l.Name: t}
	}
	return nil
}

func sameAgent(a, b *signalbox.Agent) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.URL == b.URL && a.Slots == b.Slots && a.Fencing == b.Fencing && a.Proof == b.Proof &&
		a.Source == b.Source && bytes.Equal(a.SealedToken, b.SealedToken) && a.WorkDir == b.WorkDir &&
		a.Version == b.Version && a.CreatedAt.Equal(b.CreatedAt)
}

// change applies a changed row. What the agent reports overrides its row, as long as it is
// still the same agent.
func (l *lane) change(row signalbox.Agent, c *conn, now time.Time) {
	l.stored = row
	if l.conn.base != c.base || l.conn.token != c.token {
		l.conn, l.status, l.told = c, api.AgentStatus{}, false
		l.Presence.Gone(now, "it moved to "+row.URL)
		l.Health.Recover()
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
		row.Account = cmp.Or(row.Account, l.Row.Account)
		row.Folder, row.Workplace = l.Row.Folder, l.Row.Workplace
	}
	l.Row, l.stale = row, true
	l.probing.Send()
}
