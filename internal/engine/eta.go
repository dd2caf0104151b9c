package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// ETA is a range for the start of a waiting task.
type ETA struct {
	Low, High time.Duration
	Runs      int // how many runs it is taken from
}

// An ETA is the 25th to the 75th percentile of the newest keptRuns runs, and
// unknown below minRuns (notes of the page design).
const (
	keptRuns = 40
	minRuns  = 5
)

// runTimes keeps the run times of the newest completed tasks by agent.
type runTimes struct {
	mu     sync.Mutex
	read   store.Reader
	now    func() time.Time
	agents map[string]agentRuns
	queues map[string]figures
	asked  map[string]bool // queues whose figures somebody makes anew
}

// agentRuns are the run times of an agent.
type agentRuns struct {
	times []time.Duration // oldest first
	read  time.Time
	stale bool // another director saw a run since
}

// runsFor is how long run times are good for though another director saw a run
// since: with hundreds of agents, that is all the time.
const runsFor = 10 * time.Second

func (r *runTimes) init(read store.Reader, now func() time.Time) {
	r.read, r.now = read, now
	r.agents, r.queues, r.asked = map[string]agentRuns{}, map[string]figures{}, map[string]bool{}
}

func (r *runTimes) add(agent string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	runs, known := r.agents[agent]
	if !known {
		return // read from the store, with this one, when first asked for
	}
	runs.times = append(runs.times, max(d, 0))
	runs.times = runs.times[max(0, len(runs.times)-keptRuns):]
	r.agents[agent] = runs
}

// forget has the run times of an agent read anew, in time: another director saw
// one.
func (r *runTimes) forget(agent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if runs, known := r.agents[agent]; known {
		runs.stale = true
		r.agents[agent] = runs
	}
}

// of returns the run times of an agent; from the store the first time.
func (r *runTimes) of(ctx context.Context, agent string) []time.Duration {
	now := r.now()
	r.mu.Lock()
	old, known := r.agents[agent]
	r.mu.Unlock()
	if age := now.Sub(old.read); known && (!old.stale || (age >= 0 && age < runsFor)) {
		return old.times
	}
	times, err := r.read.Durations(ctx, agent, keptRuns)
	if err != nil {
		return old.times // an estimate is not worth an error
	}
	slices.Reverse(times)
	r.mu.Lock()
	defer r.mu.Unlock()
	if newer := r.agents[agent]; newer.read.After(old.read) {
		return newer.times
	}
	r.agents[agent] = agentRuns{times: times, read: now}
	return times
}

// ETA estimates when a pending task starts: nil if it is not pending, has to
// wait for something that has no duration (a pause of its queue or of all who
// serve it, an agent that is gone),
// or fewer than five runs are known.
func (e *Engine) ETA(ctx context.Context, t *signalbox.Task, pos store.Position) *ETA {
	if t.State != signalbox.Pending || pos.N == 0 {
		return nil
	}
	f := e.runs.figures(t.Queue, e.Now(), func() figures { return e.figures(ctx, t.Queue) })
	if f.slots == 0 || f.runs < minRuns {
		return nil
	}
	eta := &ETA{Runs: f.runs}
	if ahead := pos.N - f.free; ahead > 0 {
		rounds := time.Duration((ahead + f.slots - 1) / f.slots)
		// A run that is under way has between nothing and all of its time left.
		eta.Low = (rounds - 1) * f.p25
		eta.High = rounds * f.p75
	}
	if due := t.NotBefore.Sub(e.Now()); due > 0 {
		eta.Low, eta.High = max(eta.Low, due), max(eta.High, due)
	}
	return eta
}

// Typical is how long an agent's runs take: the middle half of those that are
// known, nil while they are fewer than five.
func (e *Engine) Typical(ctx context.Context, agent string) *ETA {
	runs := e.runs.of(ctx, agent)
	if len(runs) < minRuns {
		return nil
	}
	runs = slices.Sorted(slices.Values(runs))
	return &ETA{Low: percentile(runs, 25), High: percentile(runs, 75), Runs: len(runs)}
}

// figures is what an estimate for a queue is made of.
type figures struct {
	at          time.Time
	slots, free int
	runs        int
	p25, p75    time.Duration
}

// figuresFor is how long figures are good for: with many agents they cost
// more than the submit that shows them.
const figuresFor = time.Second

// figures returns those of a queue. Where they are too old one caller makes them
// anew, and the others take the old ones meanwhile: they would all read the same,
// and hold each other up.
func (r *runTimes) figures(queue string, now time.Time, fresh func() figures) figures {
	r.mu.Lock()
	f, ok := r.queues[queue]
	age := now.Sub(f.at)
	if ok && ((age >= 0 && age < figuresFor) || r.asked[queue]) {
		r.mu.Unlock()
		return f
	}
	r.asked[queue] = true
	r.mu.Unlock()
	f = fresh()
	f.at = now
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.asked, queue)
	if len(r.queues) > signalbox.MaxAgents {
		clear(r.queues) // names come from callers; the map must not grow with them
	}
	r.queues[queue] = f
	return f
}

func (e *Engine) figures(ctx context.Context, queue string) figures {
	var f figures
	if paused, err := e.Paused(ctx, queue); err != nil || paused {
		return f
	}
	drains, err := e.drains(ctx)
	if err != nil {
		return f
	}
	var runs []time.Duration
	for _, a := range e.live.Agents() {
		if _, drained := drains[a.Name]; drained || !a.Up || !slices.Contains(a.Queues(), queue) {
			continue
		}
		f.slots += a.Slots
		if !a.Held {
			f.free += max(0, a.Slots-a.InUse)
		}
		runs = append(runs, e.runs.of(ctx, a.Name)...)
	}
	if f.runs = len(runs); f.runs > 0 {
		slices.Sort(runs)
		f.p25, f.p75 = percentile(runs, 25), percentile(runs, 75)
	}
	return f
}

// percentile of sorted durations, by the nearest rank.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)-1)*p/100]
}

// ahead lets a claim share the commit of the submit that it is for: whoever may
// take a task is woken when the submit stands in the store's line, not only when
// it is stored. Where that works, an idle agent has its task one commit earlier.
type ahead struct {
	look func(queue string) (wake func()) // see SetAhead

	mu        sync.Mutex
	unsettled map[string]chan struct{} // submits by task id; closed when observers have heard of one
}

// SetAhead tells the engine who knows whether a task that is about to be stored
// could be taken at once, and who is to be woken for it then; nil for nobody. wake
// must not wait. Call it before the engine is used by others.
func (e *Engine) SetAhead(look func(queue string) (wake func())) { e.ahead.look = look }

// begin returns the context for the submit of a task. told must be called when
// observers have heard of it, or will not.
func (a *ahead) begin(ctx context.Context, id, queue string) (submit context.Context, told func()) {
	var wake func()
	if a.look != nil {
		wake = a.look(queue)
	}
	if wake == nil {
		return ctx, func() {}
	}
	done := make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsettled == nil {
		a.unsettled = map[string]chan struct{}{}
	}
	a.unsettled[id] = done
	return store.Followed(ctx, wake), sync.OnceFunc(func() {
		a.mu.Lock()
		delete(a.unsettled, id)
		a.mu.Unlock()
		close(done)
	})
}

// wait returns when observers have heard of the submit of a task that was claimed:
// they hear of a task's changes in their order.
func (a *ahead) wait(id string) {
	a.mu.Lock()
	done := a.unsettled[id]
	a.mu.Unlock()
	if done != nil {
		<-done
	}
}
