// Package budget decides what runs may still spend, from what has been spent today and what runs in flight
// report. It reads no clock.
package budget

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Reader is the part of a store that a Book reads.
type Reader interface {
	Usage(ctx context.Context, q store.UsageQuery) ([]signalbox.Usage, error)
	InFlight(ctx context.Context) ([]signalbox.Task, error)
}

// Book holds what has been spent of each budget: the usage of runs that ended today, as summed by the store,
// and what runs in flight have reported here. Its methods are safe for concurrent use.
type Book struct {
	c config

	mu      sync.Mutex
	day     signalbox.Day
	read    bool // since the day began
	ended   map[Name]signalbox.Spent
	running map[Name]signalbox.Spent // sum of runs
	runs    map[string]*run          // by task
	account map[string]string        // by agent
	over    map[Name]time.Time       // used up, since when
}

type run struct {
	fence int64
	names []Name
	spent signalbox.Spent
}

// NewBook returns a book that has read nothing yet.
func NewBook(of signalbox.Budgets) *Book {
	return &Book{
		c: config{of}, ended: map[Name]signalbox.Spent{}, running: map[Name]signalbox.Spent{}, runs: map[string]*run{},
		account: map[string]string{}, over: map[Name]time.Time{},
	}
}

// Due reports whether Refresh must be called before the book can answer.
func (b *Book) Due(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.c.Daily() && (!b.read || b.day != signalbox.DayOf(now))
}

// Refresh reads what has been spent today and which tasks are in flight. accounts are the accounts of agents.
// It reports whether the set of used-up budgets has changed.
func (b *Book) Refresh(ctx context.Context, from Reader, accounts map[string]string, now time.Time) (changed bool, err error) {
	if !b.c.Daily() {
		return false, nil
	}
	today := signalbox.DayOf(now)
	rows, err := from.Usage(ctx, store.UsageQuery{From: today, To: today})
	if err != nil {
		return false, err
	}
	tasks, err := from.InFlight(ctx) // after the usage: a run that ended in between is missing from both until the next refresh, and never in both
	if err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.Copy(b.account, accounts)
	if b.day != today {
		b.day = today
		clear(b.ended)
	}
	b.read = true
	ended := map[Name]signalbox.Spent{}
	for i := range rows {
		for _, n := range b.c.names(Who{rows[i].Agent, b.account[rows[i].Agent], rows[i].Owner, rows[i].Email}) {
			ended[n] = ended[n].Plus(rows[i].Spent)
		}
	}
	for n, s := range ended { // runs that ended since may be missing, and no sum decreases
		b.ended[n] = most(b.ended[n], s)
	}
	in := map[string]bool{}
	for i := range tasks {
		if t := &tasks[i]; t.Mode != signalbox.ModeTool {
			in[t.ID] = true
			b.put(t)
		}
	}
	for id := range b.runs {
		if !in[id] {
			b.drop(id)
		}
	}
	return b.sync(now), nil
}

func most(a, b signalbox.Spent) signalbox.Spent {
	return signalbox.Spent{InputTokens: max(a.InputTokens, b.InputTokens), OutputTokens: max(a.OutputTokens, b.OutputTokens), NanoUSD: max(a.NanoUSD, b.NanoUSD)}
}

// put adds the run of a task, unless that run or a newer one is known.
func (b *Book) put(t *signalbox.Task) {
	if r := b.runs[t.ID]; r == nil || r.fence < t.Fence {
		b.drop(t.ID)
		b.runs[t.ID] = b.find(t)
	}
}

// find returns the run of a task; one that has spent nothing if it is unknown.
func (b *Book) find(t *signalbox.Task) *run {
	if r := b.runs[t.ID]; r != nil && r.fence == t.Fence {
		return r
	}
	return &run{fence: t.Fence, names: b.c.names(Who{t.Agent, b.account[t.Agent], t.Owner, t.OwnerEmail})}
}

func (b *Book) drop(id string) {
	r := b.runs[id]
	if r == nil {
		return
	}
	delete(b.runs, id)
	for _, n := range r.names {
		b.running[n] = b.running[n].Beyond(r.spent)
	}
}

// Began records that the run of a task has begun.
func (b *Book) Began(t *signalbox.Task) {
	if !b.c.Daily() || t.Mode == signalbox.ModeTool {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(t)
}

// Ended records that the run of a task has ended, and what it added to the usage.
func (b *Book) Ended(t *signalbox.Task, used signalbox.Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[t.ID]
	if r == nil || r.fence != t.Fence { // its usage was read already
		return
	}
	b.drop(t.ID)
	if used.Day == b.day {
		for _, n := range r.names {
			b.ended[n] = b.ended[n].Plus(used.Spent)
		}
	}
}

// Report records what the run of a task has spent so far, and returns why it must be stopped; "" if it may
// continue.
func (b *Book) Report(t *signalbox.Task, spent signalbox.Spent, now time.Time) string {
	over := t.OverBudget(t.Spent.Plus(spent))
	if !b.c.Daily() {
		return over
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.find(t)
	if b.runs[t.ID] == r { // else it has ended, or its start is unknown
		more := spent.Beyond(r.spent)
		r.spent = r.spent.Plus(more)
		for _, n := range r.names {
			b.running[n] = b.running[n].Plus(more)
		}
	}
	for _, n := range r.names {
		if over == "" && !t.IgnoreGates && b.usedUp(n, now) {
			over = "the " + b.text(n, now)
		}
	}
	return over
}

// sync updates which budgets are used up, and reports whether that changed.
func (b *Book) sync(now time.Time) (changed bool) {
	for n := range b.over {
		if !b.usedUp(n, now) {
			delete(b.over, n)
			changed = true
		}
	}
	for _, of := range []map[Name]signalbox.Spent{b.ended, b.running} {
		for n := range of {
			if _, known := b.over[n]; !known && b.usedUp(n, now) {
				b.over[n] = now
				changed = true
			}
		}
	}
	return changed
}

// spent is what has been spent of a budget today.
func (b *Book) spent(n Name, now time.Time) signalbox.Spent {
	if b.day != signalbox.DayOf(now) {
		return b.running[n]
	}
	return b.ended[n].Plus(b.running[n])
}

func (b *Book) usedUp(n Name, now time.Time) bool { return b.c.budget(n).Over(b.spent(n, now)) }

// Left returns what the run of a task may spend: the rest of the task's own budget and, unless the task runs
// anyway, of all other budgets that it counts towards. What other runs in flight will spend is not predicted.
// If nothing is left the figure is the smallest one, since 0 means no limit.
func (b *Book) Left(t *signalbox.Task, now time.Time) signalbox.Budget {
	left := t.Budget.Left(t.Spent)
	if !b.c.Daily() || t.IgnoreGates {
		return left
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.find(t)
	for _, n := range r.names {
		left = left.Least(b.c.budget(n).Left(b.spent(n, now).Beyond(r.spent)))
	}
	return left
}

func (b *Book) text(n Name, now time.Time) string {
	of := n.String() + " for " + signalbox.DayOf(now).String()
	if n.Scope == ScopeDay {
		of = "the day " + signalbox.DayOf(now).String()
	}
	return fmt.Sprintf("budget of %s is used up: %s", of, b.c.budget(n).Of(b.spent(n, now)))
}

// gate is the gate of a used-up budget, with the whole sentence as its Text. Its Since is when it was noticed
// here.
func (b *Book) gate(n Name, now time.Time) signalbox.ClosedGate {
	since, known := b.over[n]
	if !known {
		since = now
	}
	name := n.String()
	if n.Scope == ScopeDay {
		name = string(ScopeDay)
	}
	until := (signalbox.DayOf(now) + 1).Start()
	return signalbox.ClosedGate{Gate: signalbox.Gate{Kind: signalbox.GateBudget, Name: name, Text: b.text(n, now) + "; it opens at 00:00 UTC", Until: until}, Since: since}
}

// HoldingGate returns the gate at which a used-up budget keeps a waiting task from an agent with that account; nil
// if none does. Without an agent, only the budgets of the day and of the task's owner are checked.
func (b *Book) HoldingGate(t *signalbox.Task, agent, account string, now time.Time) *signalbox.ClosedGate {
	if !b.c.Daily() || t.IgnoreGates || t.Mode == signalbox.ModeTool {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.c.names(Who{agent, account, t.Owner, t.OwnerEmail}) {
		if b.usedUp(n, now) {
			g := b.gate(n, now)
			return &g
		}
	}
	return nil
}

// Claims says what an agent with that account may claim: nothing if closed is set, and no tasks of the owners
// in except, by key or e-mail address. Tasks that run anyway may be claimed.
func (b *Book) Claims(agent, account string, now time.Time) (closed bool, except []string) {
	if !b.c.Daily() {
		return false, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.account[agent] = cmp.Or(account, b.account[agent])
	for _, n := range b.c.names(Who{Agent: agent, Account: account}) {
		closed = closed || b.usedUp(n, now)
	}
	for _, n := range b.names() {
		if n.Scope == ScopeUser && b.usedUp(n, now) {
			except = append(except, n.Name)
		}
	}
	return closed, except
}

// names returns the budgets that have a limit, or of which something was spent, in order.
func (b *Book) names() []Name {
	known := map[Name]bool{}
	if b.c.Day != (signalbox.Budget{}) {
		known[Name{Scope: ScopeDay}] = true
	}
	for scope, of := range map[Scope]map[string]signalbox.Budget{ScopeUser: b.c.Users, ScopeAgent: b.c.Agents, ScopeAccount: b.c.Accounts} {
		for name, budget := range of {
			if name != signalbox.AnyBudget && budget != (signalbox.Budget{}) {
				known[Name{scope, name}] = true
			}
		}
	}
	for _, of := range []map[Name]signalbox.Spent{b.ended, b.running} {
		for n, s := range of {
			if s != (signalbox.Spent{}) {
				known[n] = true
			}
		}
	}
	order := []Scope{ScopeDay, ScopeUser, ScopeAgent, ScopeAccount}
	return slices.SortedFunc(maps.Keys(known), func(a, b Name) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Scope), slices.Index(order, b.Scope)), cmp.Compare(a.Name, b.Name))
	})
}

// Row is a budget of today.
type Row struct {
	Name
	Spent  signalbox.Spent // including reports of runs in flight
	Budget signalbox.Budget
	Gate   *signalbox.ClosedGate // nil: it is not used up
}

// Rows lists the budgets that have a limit, or of which something was spent today.
func (b *Book) Rows(now time.Time) []Row {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := []Row{}
	for _, n := range b.names() {
		row := Row{Name: n, Spent: b.spent(n, now), Budget: b.c.budget(n)}
		if b.usedUp(n, now) {
			g := b.gate(n, now)
			row.Gate = &g
		}
		rows = append(rows, row)
	}
	return rows
}

// Gates lists the used-up budgets.
func (b *Book) Gates(now time.Time) (gates []signalbox.ClosedGate) {
	for _, row := range b.Rows(now) {
		if row.Gate != nil {
			gates = append(gates, *row.Gate)
		}
	}
	return gates
}
