package live

import (
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gates"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// gateState is the state of gates, and of the tasks that wait at them, as of the last refresh.
type gateState struct {
	accounts []signalbox.Account          // by name
	shown    []*entity                    // their entities
	parked   []signalbox.Task             // only ID, Queue and Parking
	ids      map[string]bool              // IDs of parked
	queues   map[string]signalbox.GateRef // the gate that tasks of a queue wait at, for queues with such tasks
	closed   []gates.Closed               // as of the last rebuild
	budgets  []string                     // used up ones
}

func accountKey(name string) string { return "account:" + name }

// about reports whether a journal entry may change which tasks are parked.
func (g *gateState) about(e *signalbox.Entry) bool {
	return e.Kind == signalbox.EventPark || e.Kind == signalbox.EventUnpark || g.ids[e.QueueID]
}

// readGates reads the accounts and parked tasks, and marks the entities that show them dirty if
// they differ from the last refresh. It reads the store only if the journal has a change or
// fresh is set.
func (r *refresh) readGates(changes *journalChanges, fresh bool) (err error) {
	before, rows := r.gates.accounts, r.cfg.Engine.KnownAccounts()
	if fresh = fresh || changes.incomplete; fresh || changes.accounts {
		if rows, err = r.cfg.Engine.Accounts(r.ctx); err != nil {
			return err
		}
	}
	if fresh || changes.parked {
		if err := r.readParked(); err != nil {
			return err
		}
	}
	r.gates.accounts = rows
	changed, blocked, reserve := map[string]bool{}, false, r.cfg.Engine.Options().Reserve
	for i := range rows {
		a := &rows[i]
		at := slices.IndexFunc(before, func(b signalbox.Account) bool { return b.Name == a.Name })
		blocked = blocked || a.State != signalbox.AccountOpen
		if at < 0 || before[at].State != a.State || before[at].String() != a.String() {
			changed[a.Name] = true
		}
		if _, kept := reserve[a.Name]; kept && (at < 0 || !slices.Equal(before[at].Windows, a.Windows)) {
			for queue := range r.snapshot.Heads { // other tasks may wait at the gate now
				r.dirtyQueues[queue] = true
			}
		}
	}
	for queue, head := range r.snapshot.Heads {
		if slices.ContainsFunc(head, func(t signalbox.Task) bool { return t.State == signalbox.Parked && changed[t.Parking.Name] }) {
			r.dirtyQueues[queue] = true
		}
	}
	for name, a := range r.agents {
		if changed[a.live.Account] {
			r.dirtyAgents[name] = true
		}
		blocked = blocked || a.live.Closed != nil
	}
	for name := range r.dirtyAgents {
		blocked = blocked || r.liveAgent(name).Closed != nil
	}
	var usedUp []string
	for _, g := range r.cfg.Engine.Budgets().Gates(r.cfg.Engine.Now()) {
		usedUp = append(usedUp, g.Name)
	}
	if !slices.Equal(usedUp, r.gates.budgets) {
		r.gates.budgets = usedUp
		for queue := range r.snapshot.Heads {
			r.dirtyQueues[queue] = true
		}
	}
	blocked = blocked || len(usedUp) > 0
	queues := map[string]signalbox.GateRef{}
	for queue, n := range r.snapshot.Counts.Queues {
		if blocked && n > 0 {
			if at := r.cfg.Engine.QueueWaitsAt(queue); at != (signalbox.GateRef{}) {
				queues[queue] = at
			}
		}
	}
	for queue := range unionKeys(r.gates.queues, queues) {
		if is := queues[queue]; r.gates.queues[queue] != is || is.Kind == signalbox.GateAccount && changed[is.Name] || is.Kind == signalbox.GateAgent && r.dirtyAgents[is.Name] {
			r.dirtyQueues[queue] = true
		}
	}
	r.gates.queues = queues
	return nil
}

func (r *refresh) readParked() error {
	tasks, err := r.cfg.Engine.Read().Parked(r.ctx, "", "")
	if err != nil {
		return err
	}
	r.gates.parked, r.gates.ids = make([]signalbox.Task, len(tasks)), map[string]bool{}
	for i := range tasks {
		r.gates.parked[i] = signalbox.Task{ID: tasks[i].ID, Queue: tasks[i].Queue, Parking: tasks[i].Parking}
		r.gates.ids[tasks[i].ID] = true
	}
	return nil
}

// waitingFor is the gate of a waiting task; nil for none.
func (r *refresh) waitingFor(t *signalbox.Task) *api.WaitingFor {
	if t.State == signalbox.Pending && r.gates.queues[t.Queue] == (signalbox.GateRef{}) && len(r.gates.budgets) == 0 && len(r.cfg.Engine.Options().Reserve) == 0 {
		return nil
	}
	return view.WaitingFor(r.cfg.Engine.WaitsAt(t))
}

// setGates lists the closed gates, and rebuilds the entities of the accounts. It runs after the
// agents are rebuilt.
func (r *refresh) setGates() {
	connected, all := map[string][]string{}, map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.agents)) {
		a := r.agents[name]
		all[a.live.Account] = append(all[a.live.Account], name)
		if a.live.Up {
			connected[a.live.Account] = append(connected[a.live.Account], name)
		}
	}
	now := gates.Now{
		At: r.now, Accounts: r.gates.accounts, Parked: r.gates.parked, Budgets: r.cfg.Engine.Budgets().Rows(r.now), Tools: r.toolQueues,
		Loads: gates.Loads(r.gates.parked, r.snapshot.Counts.Queues, func(queue string) signalbox.GateRef { return r.gates.queues[queue] }),
		Agents: func(yield func(*engine.LiveAgent) bool) {
			for _, a := range r.agents {
				if !yield(&a.live) {
					return
				}
			}
		},
	}
	r.gates.closed = gates.List(&now)
	shown := make([]*entity, len(r.gates.accounts))
	for i := range r.gates.accounts {
		v := view.Account(&r.gates.accounts[i])
		v.Agents = append(v.Agents, connected[v.Name]...)
		load := now.Loads[signalbox.GateRef{Kind: signalbox.GateAccount, Name: v.Name}]
		v.Parked, v.Waiting = load.Parked, load.Waiting
		shown[i] = &entity{key: accountKey(v.Name), account: &v, agents: all[v.Name]}
		r.set(shown[i])
	}
	for _, e := range r.gates.shown {
		if !slices.ContainsFunc(shown, func(now *entity) bool { return now.key == e.key }) {
			r.drop(e.key)
		}
	}
	r.gates.shown = shown
}

// accountFor is an account, with only the agents that a caller may use.
func (e *entity) accountFor(who signalbox.Principal) *api.Account {
	if !who.Limited() {
		return e.account
	}
	a := *e.account
	a.Agents = slices.DeleteFunc(slices.Clone(a.Agents), func(name string) bool { return !who.MayUse(name) })
	return &a
}

// blockedText says why an account blocks tasks; "" if it is open or not known.
func (r *refresh) blockedText(name string) string {
	i := slices.IndexFunc(r.gates.accounts, func(a signalbox.Account) bool { return a.Name == name })
	if i < 0 || r.gates.accounts[i].State == signalbox.AccountOpen {
		return ""
	}
	return r.gates.accounts[i].String()
}

// checkGates adds a finding for each closed gate.
func (r *refresh) checkGates(c *checker) {
	for i := range r.gates.closed {
		c.add(gateFinding(&r.gates.closed[i]))
	}
}

// gateFinding is the finding for a gate: an error if a person must act, a warning if tasks wait for
// an account, else a note.
func gateFinding(g *gates.Closed) finding {
	subject, text, _ := strings.Cut(g.Text, " "+g.Name+" ")
	f := finding{agents: g.Agents, Attention: api.Attention{
		Kind: string(g.Kind) + "_" + g.State, Level: levelInfo, Subject: strings.ToUpper(subject[:1]) + subject[1:] + " " + g.Name, Text: text, Cure: g.Cure, Since: g.Since,
	}}
	switch g.Kind {
	case signalbox.GateTime:
		subject, text, _ = strings.Cut(g.Text, " go")
		f.Kind, f.Subject, f.Text = "tasks_parked", subject, "go"+text
		return f
	case signalbox.GateAgent:
		f.Kind, f.Level, f.Subject = "agent_closed", levelError, g.Name
	case signalbox.GateAccount:
		if g.State == string(signalbox.AccountSignedOut) {
			f.Level = levelError
		} else if g.State == string(signalbox.AccountClosed) && g.Tasks() > 0 {
			f.Level = levelWarning
		}
	}
	switch n := g.Tasks(); {
	case g.Kind == signalbox.GateTool && n > 0:
		f.Text += ": " + view.Counted(n, "call waits", "calls wait")
	case n > 0:
		f.Text += ": " + view.Counted(n, "task waits", "tasks wait")
	}
	return f
}

// quietly describes the closed gates that need no person but have waiting tasks; "" for none.
func (r *refresh) quietly() string {
	for i := range r.gates.closed {
		g := &r.gates.closed[i]
		if g.Tasks() == 0 || gateFinding(g).Level != levelInfo || g.Kind == signalbox.GateTool {
			continue
		}
		text := strings.ToUpper(g.Text[:1]) + g.Text[1:]
		if g.Kind != signalbox.GateTime {
			text += ", and " + view.Counted(g.Tasks(), "task waits", "tasks wait")
		}
		return text + "."
	}
	return ""
}

func sameGate(a, b gates.Closed) bool {
	return a.ClosedGate == b.ClosedGate && a.State == b.State && a.Load == b.Load && a.Cure == b.Cure && slices.Equal(a.Agents, b.Agents)
}
