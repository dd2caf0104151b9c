package engine

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// announce publishes a stored change that is not a change of a task.
func (e *Engine) announce(entry signalbox.Entry, err error) error {
	if err == nil {
		e.hub.publish(&Applied{Kind: entry.Kind, By: entry.By, Task: signalbox.Task{Queue: entry.Queue, Agent: entry.Agent}})
	}
	return err
}

// PutAgent adds or updates an agent.
//
// Errors: CodeValidation; CodeConflict when there are signalbox.MaxAgents already.
func (e *Engine) PutAgent(ctx context.Context, a signalbox.Agent, token string) (signalbox.Agent, error) {
	a.Slots = cmp.Or(a.Slots, signalbox.DefaultAgentSlots)
	if err := signalbox.CheckAgent(&a, token); err != nil {
		return a, err
	}
	known, err := e.store.Agents(ctx)
	if err != nil {
		return a, err
	}
	a.CreatedAt = e.Now()
	if i := slices.IndexFunc(known, func(k signalbox.Agent) bool { return k.Name == a.Name }); i >= 0 {
		a.CreatedAt, a.SealedToken = known[i].CreatedAt, e.reuseSealed(known[i], token)
		a.Proof = a.Proof || keepsProof(&known[i], &a)
	} else if len(known) >= signalbox.MaxAgents {
		return a, signalbox.Errorf(signalbox.CodeConflict, "there are %d agents already, the most there can be: remove one first", len(known))
	}
	if token != "" && a.SealedToken == nil {
		a.SealedToken = e.opts.Sealer.Seal([]byte(token), a.Name)
	}
	entry := signalbox.Entry{At: e.Now(), Kind: signalbox.EventAgentAdded, Agent: a.Name, Message: a.URL}
	return a, e.announce(entry, e.store.PutAgent(ctx, a, entry))
}

// keepsProof reports whether an agent that has proved its identity at this address must
// still do so. Its own registration overrides that.
func keepsProof(known, a *signalbox.Agent) bool {
	return known.Proof && known.URL == a.URL && a.SealedToken != nil && a.Source != signalbox.AgentRegistered && a.Source != signalbox.AgentChild
}

// reuseSealed returns the sealed token of a known agent if the token is unchanged, so that
// registering again changes no row.
func (e *Engine) reuseSealed(known signalbox.Agent, token string) []byte {
	if plain, err := e.AgentToken(known); err == nil && subtle.ConstantTimeCompare([]byte(plain), []byte(token)) == 1 {
		return known.SealedToken
	}
	return nil
}

// AgentToken decrypts the token that an agent requires; "" if it requires none.
func (e *Engine) AgentToken(a signalbox.Agent) (string, error) {
	if len(a.SealedToken) == 0 {
		return "", nil
	}
	plain, err := e.opts.Sealer.Open(a.SealedToken, a.Name)
	if err != nil {
		return "", fmt.Errorf("token of agent %s %w: register it again", a.Name, err)
	}
	return string(plain), nil
}

// Agent returns the row of an agent, or CodeNotFound.
func (e *Engine) Agent(ctx context.Context, name string) (signalbox.Agent, error) {
	agents, err := e.store.Agents(ctx)
	if i := slices.IndexFunc(agents, func(a signalbox.Agent) bool { return a.Name == name }); i >= 0 {
		return agents[i], err
	}
	if err == nil {
		err = &signalbox.Error{Code: signalbox.CodeNotFound, Field: "agent", Message: unknownAgent(name, agents)}
	}
	return signalbox.Agent{}, err
}

// knownAgent returns an agent's live state, zero if it was added only a moment ago, or
// CodeNotFound. It reads the rows only if the agent is not live.
func (e *Engine) knownAgent(ctx context.Context, name string) (live LiveAgent, err error) {
	live, known := e.LiveAgent(name)
	if !known {
		_, err = e.Agent(ctx, name)
	}
	return live, err
}

// RemoveAgent deletes an agent. Tasks in its queue keep waiting, since an agent of that
// name can come back.
//
// Errors: CodeNotFound; CodeConflict while it holds slots.
func (e *Engine) RemoveAgent(ctx context.Context, name, by string) error {
	if err := signalbox.RefuseExecutor(name); err != nil {
		return err
	}
	if _, err := e.Agent(ctx, name); err != nil {
		return err
	}
	return e.removeAgent(ctx, name, by)
}

func (e *Engine) removeAgent(ctx context.Context, name, by string) error {
	entry := signalbox.Entry{At: e.Now(), Kind: signalbox.EventAgentRemoved, Agent: name, By: by}
	return e.announce(entry, e.store.RemoveAgent(ctx, name, entry))
}

// Note records in the journal what changes no row, such as that an agent came up.
func (e *Engine) Note(ctx context.Context, entry signalbox.Entry) {
	entry.At = e.Now()
	if err := e.store.Note(ctx, entry); err != nil && !errors.Is(err, context.Canceled) {
		e.log.Error("journal entry not written", "kind", entry.Kind, "agent", entry.Agent, "error", err)
	}
	e.hub.journalGrew()
}

func unknownAgent(name string, agents []signalbox.Agent) string {
	names := make([]string, 0, 10)
	for _, a := range agents {
		if !signalbox.IsExecutor(a.Name) && len(names) < cap(names) { // callers cannot address executors
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("no agent is named %s, and none is known at all: start one with signalbox agent", name)
	}
	return fmt.Sprintf("no agent is named %s; known are %s", name, strings.Join(names, ", "))
}

// PutSchedule stores a schedule with its runs, and notifies watchers of the journal.
//
// Errors: store.ErrStale; CodeConflict if the name is taken, a run has already been
// decided, or there are too many schedules.
func (e *Engine) PutSchedule(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) (signalbox.Schedule, error) {
	stored, err := e.store.PutSchedule(ctx, s, runs, entry)
	if err == nil && entry.Kind != "" {
		e.hub.journalGrew()
	}
	return stored, err
}

// DeleteSchedule deletes a schedule with its runs, and reports whether it existed.
func (e *Engine) DeleteSchedule(ctx context.Context, id string, entry signalbox.Entry) (was bool, err error) {
	was, err = e.store.DeleteSchedule(ctx, id, entry)
	if was {
		e.hub.journalGrew()
	}
	return was, err
}

// Check validates a task as Submit does, capacity aside.
func (e *Engine) Check(ctx context.Context, n NewTask) error {
	if err := n.normalize(); err != nil {
		return err
	}
	return e.checkRoute(ctx, n)
}

// Audit adds a row to the audit log and returns it. An empty Severity is info.
func (e *Engine) Audit(ctx context.Context, a signalbox.Audit) (signalbox.Audit, error) {
	a.At = e.Now()
	a.Severity = cmp.Or(a.Severity, "info")
	return e.store.AppendAudit(context.WithoutCancel(ctx), a) // recorded even if the caller has gone
}
