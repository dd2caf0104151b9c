package director

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// toolAgent is an agent as list_agents shows it.
type toolAgent struct {
	Name          string `json:"name"`
	Kind          string `json:"kind"`
	State         string `json:"state"`
	Message       string `json:"message,omitempty"`
	Slots         int    `json:"slots"`
	InUse         int    `json:"in_use"`
	Waiting       int    `json:"waiting"`
	ParallelSlots int    `json:"parallel_slots,omitempty"`
	ParallelInUse int    `json:"parallel_in_use,omitempty"`
}

// agentsTool is list_agents.
func agentsTool(ctx context.Context, a *asking) (gateway.Result, error) {
	if err := a.read(&struct{}{}); err != nil {
		return gateway.Result{}, err
	}
	var all api.Agents
	if err := a.ask(ctx, question{method: http.MethodGet, path: "/api/agents"}, &all); err != nil {
		return gateway.Result{}, err
	}
	out := struct {
		Agents []toolAgent `json:"agents"`
	}{Agents: []toolAgent{}}
	lines := []string{}
	for i := range all.Agents {
		v := &all.Agents[i]
		t := toolAgent{
			Name: v.Name, Kind: v.Kind, State: v.State, Message: v.Message, Slots: v.Slots, InUse: v.InUse, Waiting: v.Waiting,
			ParallelSlots: v.IsolatedSlots, ParallelInUse: len(v.Isolated),
		}
		out.Agents = append(out.Agents, t)
		lines = append(lines, t.String())
	}
	if len(lines) == 0 {
		lines = append(lines, "There are no agents: a task that is submitted now waits until one comes.")
	}
	return told(out, strings.Join(lines, "\n"))
}

func (t toolAgent) String() string {
	s := fmt.Sprintf("%s (%s): %s, %d of %d slots in use, %d waiting", t.Name, t.Kind, t.State, t.InUse, t.Slots, t.Waiting)
	if t.ParallelSlots > 0 {
		s += fmt.Sprintf(", %d of %d parallel", t.ParallelInUse, t.ParallelSlots)
	}
	if t.Message != "" {
		s += " (" + t.Message + ")"
	}
	return s
}

// toolQueues is the answer of queue_status.
type toolQueues struct {
	State     string          `json:"state"`
	Depth     int             `json:"depth"`
	Running   int             `json:"running"`
	MaxSize   int             `json:"max_size"`
	MaxChats  int             `json:"max_chats"`
	OldestAge int64           `json:"oldest_age_seconds"`
	Agents    api.AgentCounts `json:"agents"`
	// Tools are the tool calls that are tasks, where there can be any.
	Tools  *api.ToolTaskCounts `json:"tool_tasks,omitempty"`
	Queues []queueDepth        `json:"queues"`
	Paused []api.Pause         `json:"paused"`
}

type queueDepth struct {
	Queue string `json:"queue"`
	Depth int    `json:"depth"`
}

// queueTool is queue_status.
func queueTool(ctx context.Context, a *asking) (gateway.Result, error) {
	if err := a.read(&struct{}{}); err != nil {
		return gateway.Result{}, err
	}
	var status api.Status
	if err := a.ask(ctx, question{method: http.MethodGet, path: "/status"}, &status); err != nil {
		return gateway.Result{}, err
	}
	var queue api.Queue
	if err := a.ask(ctx, question{method: http.MethodGet, path: "/api/queue", query: url.Values{"limit": {"1"}}}, &queue); err != nil {
		return gateway.Result{}, err
	}
	out := toolQueues{
		State: status.State, Depth: queue.Depth, Running: queue.DispatchedCount, MaxSize: queue.MaxSize, MaxChats: a.d.engine.MaxChats(),
		OldestAge: queue.OldestAgeSeconds, Agents: status.Agents, Tools: queue.Tools, Queues: []queueDepth{}, Paused: queue.Paused,
	}
	if out.Paused == nil {
		out.Paused = []api.Pause{}
	}
	counts, err := a.d.engine.Read().Counts(ctx) // no route has them; whoever may ask for the queue may know them
	if err != nil {
		return gateway.Result{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(counts.Queues)) {
		if agent, one := signalbox.OnlyAgent(name); counts.Queues[name] > 0 && (!one || a.who().MayUse(agent)) {
			out.Queues = append(out.Queues, queueDepth{name, counts.Queues[name]})
		}
	}
	return told(out, out.String())
}

func (q *toolQueues) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d tasks wait, %d run; %d of %d agents are up, %d idle.", q.Depth, q.MaxSize, q.Running, q.Agents.Up, q.Agents.Total, q.Agents.Idle)
	if q.Depth > 0 {
		fmt.Fprintf(&b, " The oldest has waited for %d s.", q.OldestAge)
	}
	if q.Tools != nil {
		fmt.Fprintf(&b, " Of tool calls that are tasks %d wait and %d run.", q.Tools.Waiting, q.Tools.Running)
	}
	for _, one := range q.Queues {
		fmt.Fprintf(&b, "\n%s: %d waiting", one.Queue, one.Depth)
	}
	for _, p := range q.Paused {
		fmt.Fprintf(&b, "\n%s: paused", cmp.Or(p.Queue, "all queues"))
		if p.Reason != "" {
			b.WriteString(", " + p.Reason)
		}
	}
	if q.State != "running" {
		fmt.Fprintf(&b, "\nThe director is %s: it starts nothing new.", q.State)
	}
	return b.String()
}
