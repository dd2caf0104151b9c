// Package runtimes caches how long the runs of each agent took, and when the running ones began, so that not
// every question reads the store. It reads no clock.
package runtimes

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Kept is how many of the newest runs of each agent are kept.
const Kept = 40

// TTL is how long stale run times are used: with hundreds of agents, other directors record runs all the
// time. StartsTTL is how long the starts of running tasks are used.
const (
	TTL       = 10 * time.Second
	StartsTTL = time.Second
)

// Cache holds the run times of the newest completed tasks, by agent. Its methods are safe
// for concurrent use.
type Cache struct {
	read store.Reader

	mu       sync.Mutex
	agents   map[string]*agentRuns
	starts   map[string][]time.Time // of the running tasks, by agent
	startsAt time.Time              // when starts were read
}

// New returns an empty cache over a store.
func New(read store.Reader) *Cache { return &Cache{read: read, agents: map[string]*agentRuns{}} }

type agentRuns struct {
	times    []time.Duration // oldest first
	loadedAt time.Time
	stale    bool // another director has recorded a newer run
}

// Add records a run. If the agent's runs are not loaded, Of will read it from the store.
func (r *Cache) Add(agent string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if runs := r.agents[agent]; runs != nil {
		runs.times = append(runs.times, max(d, 0))
		runs.times = runs.times[max(0, len(runs.times)-Kept):]
	}
}

// Invalidate marks the run times of an agent as stale: another director has recorded one.
func (r *Cache) Invalidate(agent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if runs := r.agents[agent]; runs != nil {
		runs.stale = true
	}
}

// Of returns the run times of an agent, oldest first.
func (r *Cache) Of(ctx context.Context, agent string, now time.Time) []time.Duration {
	r.mu.Lock()
	var old agentRuns
	runs := r.agents[agent]
	if runs != nil {
		old = *runs
	}
	r.mu.Unlock()
	if age := now.Sub(old.loadedAt); runs != nil && (!old.stale || (age >= 0 && age < TTL)) {
		return old.times
	}
	times, err := r.read.Durations(ctx, agent, Kept)
	if err != nil {
		return old.times // an estimate is not worth an error
	}
	slices.Reverse(times)
	r.mu.Lock()
	defer r.mu.Unlock()
	if newer := r.agents[agent]; newer != nil && newer.loadedAt.After(old.loadedAt) {
		return newer.times
	}
	r.agents[agent] = &agentRuns{times: times, loadedAt: now}
	return times
}

// StartsOf returns when the running tasks of an agent started. They are read at most once
// in StartsTTL, for all agents.
func (r *Cache) StartsOf(ctx context.Context, agent string, now time.Time) []time.Time {
	r.mu.Lock()
	age := now.Sub(r.startsAt)
	starts, fresh := r.starts[agent], r.starts != nil && age >= 0 && age < StartsTTL
	r.mu.Unlock()
	if fresh {
		return starts
	}
	tasks, err := r.read.InFlight(ctx)
	if err != nil {
		return starts // an estimate is not worth an error
	}
	all := map[string][]time.Time{}
	for i := range tasks {
		if t := &tasks[i]; t.State == signalbox.Working && t.Mode != signalbox.ModeBypass && !t.StartedAt.IsZero() {
			all[t.Agent] = append(all[t.Agent], t.StartedAt)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts, r.startsAt = all, now
	return all[agent]
}
