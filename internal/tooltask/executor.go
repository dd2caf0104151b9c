package tooltask

import (
	"context"
	"log/slog"
	"time"

	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Defaults.
const (
	DefaultConcurrent = 10   // seed async-task-queue: maxConcurrent
	DefaultCalls      = 1000 // calls that became tasks, side by side
	DefaultTaskAfter  = 5 * time.Second
)

// Interrupted is the seed's text for a task that a restart ended.
const Interrupted = "Task interrupted before completion (agent restart)"

// Gateway is what runs the calls; *gateway.Gateway does.
type Gateway interface {
	Tools() []gateway.Tool
	Tool(name string) (gateway.Tool, bool)
	Check(c gateway.Call) error
	Call(ctx context.Context, c gateway.Call) (gateway.Result, error)
	Queues() []toolqueue.Status
}

// Options configures an Executor. Zero fields take the defaults.
type Options struct {
	Engine     *engine.Engine // required
	Gateway    Gateway        // required
	Instance   string         // of the director; signalbox.DefaultInstance
	Concurrent int            // async commands side by side, 1 to signalbox.MaxAgentSlots
	Calls      int            // other calls that became tasks, side by side
	Retention  time.Duration  // for which ended tasks stay readable
	Log        *slog.Logger
}

// Executor runs the tasks of tools. It implements gateway.Tasks and
// engine.Live.
type Executor struct{}

var _ gateway.Tasks = (*Executor)(nil)

// New returns an executor that does nothing until Start.
func New(o Options) *Executor { panic("being built") }

// Start takes up what a predecessor left, by the tools' restart policies, and
// begins to run tasks. Nothing of a run of before lives when it returns.
func (x *Executor) Start(ctx context.Context) error { panic("being built") }

// Drain ends claiming and returns when nothing runs or ctx ends, with the
// number of runs that are left.
func (x *Executor) Drain(ctx context.Context) int { panic("being built") }

// Stop ends what runs, by the tools' restart policies, and returns when
// nothing of it lives.
func (x *Executor) Stop() { panic("being built") }

// Submit implements gateway.Tasks.
func (x *Executor) Submit(ctx context.Context, c gateway.TaskCall) (gateway.ToolTask, error) {
	panic("being built")
}

// CallOr implements gateway.Tasks.
func (x *Executor) CallOr(ctx context.Context, c gateway.TaskCall, grace time.Duration) (gateway.Result, *gateway.ToolTask, error) {
	panic("being built")
}

// Task implements gateway.Tasks.
func (x *Executor) Task(ctx context.Context, id string) (gateway.ToolTask, error) {
	panic("being built")
}

// Wait implements gateway.Tasks.
func (x *Executor) Wait(ctx context.Context, id string, wait time.Duration) (gateway.ToolTask, error) {
	panic("being built")
}

// Cancel implements gateway.Tasks.
func (x *Executor) Cancel(ctx context.Context, id, by string) (gateway.ToolTask, error) {
	panic("being built")
}

// List implements gateway.Tasks.
func (x *Executor) List(ctx context.Context, q gateway.TaskQuery) (gateway.TaskPage, error) {
	panic("being built")
}

// Agents implements engine.Live: the executor's own rows.
func (x *Executor) Agents() []engine.LiveAgent { panic("being built") }

// LiveAgent implements engine.Live.
func (x *Executor) LiveAgent(name string) (engine.LiveAgent, bool) { panic("being built") }

// Log is the end of what a task that runs has printed, from byte after, as
// dispatch.Output has it for agents: while there is nothing it waits until
// there is, the run ends, wait is over or ctx ends. ok is false if the task
// does not run here.
func (x *Executor) Output(ctx context.Context, id string, after int64, wait time.Duration) (text string, seq, next int64, truncated, ok bool) {
	panic("being built")
}
