package local

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// If several directors share a store, each has its own executor. The tasks of a director
// that died are handled by one of the others, by the same restart policies; unlike agents
// it cannot be asked about them.

// Peers is the membership of directors; *peers.Peers implements it.
type Peers interface {
	Alone() bool               // no other is alive
	Gone(instance string) bool // none of that name is alive
	// ConfirmGone is Gone, checked against the store now.
	ConfirmGone(ctx context.Context, instance string) bool
	First(name string) bool // it is this one's turn to recover what belongs to name
}

// instanceOf returns the director instance of an executor name.
func instanceOf(name string) string {
	_, instance, _ := strings.Cut(name, "@")
	return instance
}

func (x *Executor) single() bool { return x.opts.Peers == nil || x.opts.Peers.Alone() }

// Lapse says that the director lease has expired, so that others may soon recover this
// executor's tasks and none of them may run here; or, with false, that the lease is valid
// again.
func (x *Executor) Lapse(over bool) {
	x.mu.Lock()
	x.lapsed = over
	var runs []*run
	for _, r := range x.runs {
		runs = append(runs, r)
	}
	x.mu.Unlock()
	if !over {
		x.kickAll()
		return
	}
	for _, r := range runs {
		r.stop(errLapsed)
	}
}

// NeedsRow reports whether the row of the task that a foreign journal entry is about is
// needed here.
func (x *Executor) NeedsRow(e *signalbox.Entry) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.runs[e.QueueID] != nil || x.waiters[e.QueueID] != nil
}

// recoverOthers recovers the tasks of other directors' executors that are gone. It is
// called from one goroutine.
func (x *Executor) recoverOthers() {
	if x.opts.Peers == nil {
		return
	}
	rows, err := x.engine.Read().Agents(x.claimCtx)
	if err != nil {
		return // the next round finds out
	}
	x.restoreRows(rows)
	var others []signalbox.Agent
	for _, row := range rows {
		instance := instanceOf(row.Name)
		if !signalbox.IsExecutor(row.Name) || instance == x.opts.Instance {
			continue
		}
		if x.opts.Peers.Gone(instance) && x.opts.Peers.First(row.Name) && x.removeExecutor(row.Name, instance) {
			continue
		}
		others = append(others, row)
	}
	x.mu.Lock()
	x.others = others
	x.mu.Unlock()
}

// restoreRows restores this executor's own rows if another director removed them, as after
// an expired lease: others find its tasks by its rows when it dies.
func (x *Executor) restoreRows(rows []signalbox.Agent) {
	x.mu.Lock()
	lapsed := x.lapsed
	x.mu.Unlock()
	if lapsed { // a director that takes us for dead would remove them again
		return
	}
	for _, p := range x.pools {
		if slices.ContainsFunc(rows, func(a signalbox.Agent) bool { return a.Name == p.row.Name }) {
			continue
		}
		if _, err := x.engine.PutExecutor(x.claimCtx, p.kind, x.opts.Instance, p.row.Slots); err != nil && x.claimCtx.Err() == nil {
			x.log.Warn("this director's executor not registered again, retrying", "name", p.row.Name, "error", err)
		}
	}
}

// RecheckOwnership checks ownership now: a director may have died, or taken this one for
// dead.
func (x *Executor) RecheckOwnership() { x.recheck.Request() }

// removeExecutor recovers the tasks of an executor whose director is gone, and removes it.
// It reports whether that is done.
func (x *Executor) removeExecutor(name, instance string) bool {
	inFlight, err := x.engine.Read().InFlight(x.claimCtx)
	if err != nil {
		return false
	}
	// Check after the read: a director that started meanwhile runs none of these.
	if !x.opts.Peers.ConfirmGone(x.claimCtx, instance) {
		return false
	}
	inFlight = slices.DeleteFunc(inFlight, func(t signalbox.Task) bool { return t.Agent != name })
	// It may have run on this machine: then no process of its runs may be left either.
	stuck := proc.ClearMarks(x.marksAmong(inFlight))
	for i := range inFlight {
		if t := inFlight[i]; len(stuck[markOf(&t)]) == 0 {
			x.recoverForeign(x.claimCtx, t, instance)
		}
	}
	err = x.engine.RemoveExecutor(x.claimCtx, name)
	if err != nil && signalbox.CodeOf(err) != signalbox.CodeNotFound {
		if x.claimCtx.Err() == nil {
			x.log.Warn("executor of a dead director not removed, trying again", "name", name, "error", err)
		}
		return false
	}
	x.log.Info("", "queue", "executor_removed", "name", name, "tasks", len(inFlight))
	return true
}

// recoverForeign applies the restart policy to a task of a director that is gone.
func (x *Executor) recoverForeign(ctx context.Context, t signalbox.Task, instance string) {
	x.log.Info("", "queue", "adopt", "queue_id", t.ID, "agent", t.Agent, "state", string(t.State))
	err := x.applyRestartPolicy(ctx, t, nil, fmt.Sprintf("Task interrupted before completion (director %s went away)", instance))
	if execution.UnlessDecided(err) != nil {
		x.log.Error("tool task of a dead director not recovered, trying again", "queue_id", t.ID, "error", err)
	}
}

// liveOther is the LiveAgent of another director's executor.
func (x *Executor) liveOther(row *signalbox.Agent) engine.LiveAgent {
	instance := instanceOf(row.Name)
	a := engine.LiveAgent{Agent: *row, Up: !x.opts.Peers.Gone(instance)}
	if !a.Up {
		a.Message = "director " + instance + " is gone"
	}
	return a
}
