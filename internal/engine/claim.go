package engine

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Claimed is a task given to a slot, with everything that its agent must get.
type Claimed struct {
	Task    signalbox.Task
	Request signalbox.Request
	Env     map[string]string
	Held    bool // nothing was claimed; this and Short are those of store.Claimed
	Short   bool
	Holds   []signalbox.Hold // of the claim
}

// Claim gives the next eligible task to a free slot of an agent. found is false if there is
// no free slot or no task. fenceAbove is the highest fence that the agent reported.
func (e *Engine) Claim(ctx context.Context, a signalbox.Agent, fenceAbove int64) (c Claimed, found bool, err error) {
	r := store.ClaimRequest{Agent: a.Name, AgentURL: a.URL, Slots: a.Slots, Queues: a.Queues(), FenceAbove: fenceAbove, Folder: a.Folder, Workplace: a.Workplace}
	if !signalbox.IsExecutor(a.Name) { // an executor spends nothing, and the fleet limit is on agents
		if err := e.readBudgets(ctx); err != nil {
			return c, false, err
		}
		r.Fleet, r.Account, r.Except.Sources = e.opts.Fleet, a.Account, e.accounts.Reserved(a.Account, e.opts.Reserve[a.Account], e.Now())
		r.Closed, r.Except.Owners = e.budgets.Claims(a.Name, a.Account, e.Now())
	}
	return e.claim(ctx, r)
}

// ClaimBypass gives the next bypass task of an agent to one of its slots for isolated
// executions.
func (e *Engine) ClaimBypass(ctx context.Context, a signalbox.Agent, isolatedSlots int, fenceAbove int64) (c Claimed, found bool, err error) {
	return e.claim(ctx, store.ClaimRequest{
		Agent: a.Name, AgentURL: a.URL, Slots: e.bypassSlots(isolatedSlots), Queues: []string{signalbox.BypassQueue(a.Name)},
		FenceAbove: fenceAbove, Isolated: true, Fleet: e.opts.BypassFleet,
	})
}

// bypassSlots returns how many of the offered isolated slots may be used.
func (e *Engine) bypassSlots(offered int) int {
	if e.opts.BypassSlots > 0 {
		return min(offered, e.opts.BypassSlots)
	}
	return offered
}

func (e *Engine) claim(ctx context.Context, r store.ClaimRequest) (c Claimed, found bool, err error) {
	r.Resources = e.opts.Resources
	for {
		r.Now = e.Now()
		r.Expires = r.Now.Add(e.opts.ExecutionTTL)
		got, err := e.store.Claim(ctx, r)
		if err != nil || !got.Found {
			return Claimed{Held: got.Held, Short: got.Short}, false, err
		}
		e.earlyWake.waitPublished(got.Task.ID)
		e.Publish(Applied{From: signalbox.Pending, Task: got.Task, Kind: signalbox.EventClaim, Trace: got.Request.Trace})
		c = Claimed{Task: got.Task, Request: got.Request, Holds: got.Holds}
		if c.Env, err = e.openEnv(got.Task.ID, got.Request.SealedEnv); err == nil {
			return c, true, nil
		}
		// This task can never run; try the next one.
		what := "env"
		if got.Task.Mode == signalbox.ModeTool {
			what = "secret arguments"
		}
		if _, err := e.Reject(ctx, got.Task, "its "+what+" "+err.Error()+"; submit the task again"); err != nil {
			return Claimed{}, false, err
		}
	}
}

func (e *Engine) openEnv(id string, sealed []byte) (map[string]string, error) {
	if len(sealed) == 0 {
		return nil, nil
	}
	plain, err := e.opts.Sealer.Open(sealed, id)
	if err != nil {
		return nil, err
	}
	var env map[string]string
	err = json.Unmarshal(plain, &env)
	return env, err
}

// Load reads a task claimed earlier, by this or another process, as Claim returned it.
func (e *Engine) Load(ctx context.Context, id string) (Claimed, error) {
	t, err := e.store.Task(ctx, id)
	if err != nil {
		return Claimed{}, err
	}
	r, err := e.store.Request(ctx, id)
	if err != nil {
		return Claimed{}, err
	}
	c := Claimed{Task: t, Request: r}
	if t.Needs != nil {
		if c.Holds, err = e.store.Holds(ctx); err != nil {
			return Claimed{}, err
		}
		c.Holds = slices.DeleteFunc(c.Holds, func(h signalbox.Hold) bool { return h.Agent != t.Agent || h.Slot != t.Slot || h.Fence != t.Fence })
	}
	c.Env, err = e.openEnv(id, r.SealedEnv)
	return c, err
}

// Renew extends the slot leases of tasks whose agents were heard from.
func (e *Engine) Renew(ctx context.Context, held []signalbox.Task) error {
	if len(held) == 0 {
		return nil
	}
	expires := e.Now().Add(e.opts.ExecutionTTL)
	leases := make([]store.Lease, len(held))
	for i, t := range held {
		leases[i] = store.Lease{Agent: t.Agent, Slot: t.Slot, Fence: t.Fence, Expires: expires}
	}
	_, err := e.store.Renew(ctx, leases)
	return err
}
