package local

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Agents implements engine.Live: the executor's own rows.
func (x *Executor) Agents() []engine.LiveAgent {
	x.mu.Lock()
	others := x.others
	x.mu.Unlock()
	live := []engine.LiveAgent{x.live(x.commands), x.live(x.calls)}
	for i := range others {
		live = append(live, x.liveOther(&others[i]))
	}
	return live
}

// LiveAgent implements engine.Live.
func (x *Executor) LiveAgent(name string) (engine.LiveAgent, bool) {
	if p := x.poolOfAgent(name); p != nil {
		return x.live(p), true
	}
	x.mu.Lock()
	others := x.others
	x.mu.Unlock()
	for i := range others {
		if others[i].Name == name {
			return x.liveOther(&others[i]), true
		}
	}
	return engine.LiveAgent{}, false
}

func (x *Executor) live(p *pool) engine.LiveAgent {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := engine.LiveAgent{Agent: p.row, Up: x.started && !x.draining, InUse: p.used, LastHeard: x.engine.Now()}
	switch {
	case x.draining:
		a.Message = "the director is stopping"
	case !x.started:
		a.Message = "the director is starting"
	case p.hung > 0:
		a.Message = fmt.Sprintf("%d of its %d slots stay taken by runs that cannot be killed", p.hung, p.row.Slots)
	}
	return a
}

// WaitsFor implements engine.Teller.
func (x *Executor) WaitsFor(id string) string {
	if r := x.runOf(id); r != nil {
		text, _ := r.waitsFor()
		return text
	}
	return ""
}

// Output is the end of what a task that runs has printed, from byte after, as
// push.Output has it for agents: while there is nothing it waits until
// there is, the run ends, wait is over or ctx ends. ok is false if the task
// does not run here, or no longer: then the stored result has it.
func (x *Executor) Output(ctx context.Context, id string, after int64, wait time.Duration) (text string, seq, next int64, truncated, ok bool) {
	r := x.runOf(id)
	if r == nil {
		return "", 0, 0, false, false
	}
	p := r.tail.Read(ctx, after, wait)
	return p.Text, p.Seq, p.Next, p.Truncated, !p.Done
}
