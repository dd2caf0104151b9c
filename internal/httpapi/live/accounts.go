package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// gates is what the last refresh knew of the accounts and of the tasks that wait for them.
type gates struct {
	accounts []signalbox.Account // by name
	shown    []*entity           // of these
	parked   []signalbox.Task    // ID, Queue and Parking alone
	ids      map[string]bool     // of parked
	queues   map[string]string   // the account because of which tasks of a queue wait; of those that have such
	budgets  []string            // that are used up
}

func accountKey(name string) string { return "account:" + name }

// about reports whether a journal entry may change which tasks are parked.
func (g *gates) about(e *signalbox.Entry) bool {
	return e.Kind == signalbox.EventPark || e.Kind == signalbox.EventUnpark || g.ids[e.QueueID]
}

// readGates reads the accounts and parked tasks, and marks what shows them where they differ
// from the last refresh. Unless the journal tells of a change, or fresh is set, it does not
// ask the store.
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
			for queue := range r.snapshot.Heads { // other tasks than before may be kept
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
	queues := map[string]string{}
	for queue, n := range r.snapshot.Counts.Queues {
		if blocked && n > 0 {
			if name := r.cfg.Engine.QueueWaitsAt(queue); name != "" {
				queues[queue] = name
			}
		}
	}
	for queue := range unionKeys(r.gates.queues, queues) {
		if is := queues[queue]; r.gates.queues[queue] != is || changed[is] {
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

// waitingFor is the gate of a task that waits; nil for none.
func (r *refresh) waitingFor(t *signalbox.Task) *api.WaitingFor {
	if t.State == signalbox.Pending && r.gates.queues[t.Queue] == "" && len(r.gates.budgets) == 0 && len(r.cfg.Engine.Options().Reserve) == 0 {
		return nil
	}
	return view.WaitingFor(r.cfg.Engine.WaitsAt(t))
}

// setAccounts rebuilds the entities of the accounts, after those of the agents.
func (r *refresh) setAccounts() {
	connected, all := map[string][]string{}, map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.agents)) {
		a := r.agents[name]
		all[a.live.Account] = append(all[a.live.Account], name)
		if a.live.Up {
			connected[a.live.Account] = append(connected[a.live.Account], name)
		}
	}
	loads := accounts.Loads(r.gates.parked, r.snapshot.Counts.Queues, func(queue string) string { return r.gates.queues[queue] })
	shown := make([]*entity, len(r.gates.accounts))
	for i := range r.gates.accounts {
		v := view.Account(&r.gates.accounts[i])
		v.Agents = append(v.Agents, connected[v.Name]...)
		v.Parked, v.Waiting = loads[v.Name].Parked, loads[v.Name].Waiting
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

// accountFor is an account with those of its agents that a caller may use.
func (e *entity) accountFor(who signalbox.Principal) *api.Account {
	if !who.Limited() {
		return e.account
	}
	a := *e.account
	a.Agents = slices.DeleteFunc(slices.Clone(a.Agents), func(name string) bool { return !who.MayUse(name) })
	return &a
}

// blockedText says why an account lets nothing through; "" if it is open or not known.
func (r *refresh) blockedText(name string) string {
	i := slices.IndexFunc(r.gates.accounts, func(a signalbox.Account) bool { return a.Name == name })
	if i < 0 || r.gates.accounts[i].State == signalbox.AccountOpen {
		return ""
	}
	return r.gates.accounts[i].String()
}

// checkAccounts checks for accounts that are not open.
func (r *refresh) checkAccounts(c *checker) {
	for i, e := range r.gates.shown {
		a, row := e.account, &r.gates.accounts[i]
		f := finding{agents: append([]string{}, e.agents...), Attention: api.Attention{
			Kind: "account_" + a.State, Level: levelInfo, Subject: "Account " + a.Name, Since: row.Since,
			Text: strings.TrimPrefix(a.Text, "account "+a.Name+" "), Cure: "signalbox accounts open " + a.Name,
		}}
		n := a.Parked + a.Waiting
		if n > 0 {
			f.Text += ": " + view.Counted(n, "task waits", "tasks wait")
		}
		switch row.State {
		case signalbox.AccountClosed:
			if n > 0 {
				f.Level = levelWarning
			}
		case signalbox.AccountSignedOut:
			f.Level, f.Cure = levelError, fmt.Sprintf("log in again where %s, then %s", runsAt(e.agents), f.Cure)
		case signalbox.AccountTrying:
			f.Cure = "it is opened by itself when its provider answers; " + f.Cure + " lets all tasks go at once"
		default:
			continue
		}
		c.add(f)
	}
}

// runsAt names agents, at most three.
func runsAt(agents []string) string {
	switch n := len(agents); {
	case n == 0:
		return "its agents run"
	case n == 1:
		return "agent " + agents[0] + " runs"
	case n > 3:
		return fmt.Sprintf("agents %s and %d more run", strings.Join(agents[:3], ", "), n-3)
	}
	return "agents " + strings.Join(agents, ", ") + " run"
}

// trying says which account is being tried while tasks wait for it; "" for none.
func (r *refresh) trying() string {
	for _, e := range r.gates.shown {
		if n := e.account.Parked + e.account.Waiting; n > 0 && e.account.State == string(signalbox.AccountTrying) {
			return fmt.Sprintf("A%s, and %s.", e.account.Text[1:], view.Counted(n, "task waits", "tasks wait"))
		}
	}
	return ""
}
