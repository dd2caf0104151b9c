package director

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func toolView(t *gateway.Tool) api.Tool {
	var def struct {
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema"`
		Annotations struct {
			Title string `json:"title"`
		} `json:"annotations"`
	}
	_ = json.Unmarshal(t.Definition, &def) // what of it is of another type is left out
	if len(def.Input) == 0 {
		def.Input = json.RawMessage(`{"type":"object"}`)
	}
	return api.Tool{
		Name: t.Name, Title: cmp.Or(def.Title, def.Annotations.Title), Description: def.Description, Server: t.Server, Kind: string(t.Kind),
		Queue: t.Queue, TimeoutSeconds: t.Timeout.Seconds(), InputSchema: def.Input, OutputSchema: def.Output,
		Async: t.Async, Secrets: t.Secrets,
	}
}

// toolQueueView shows sessions by their mark, for the name of one is as good as
// a password, and agents to those who may see them.
func toolQueueView(q *toolqueue.Status, c caller) api.ToolQueue {
	// ofAgent is what is shown of an agent's call: its task is whose its agent is.
	ofAgent := func(agent, execution string) (string, string) {
		if !c.who.MayUse(agent) {
			return "", ""
		}
		return agent, execution
	}
	out := api.ToolQueue{
		Name: q.Name, Concurrent: q.Concurrent, InUse: q.InUse, Depth: q.Depth,
		MaxWaitSeconds: q.MaxWait.Seconds(), MaxWaiters: q.MaxWaiters,
		LeaseIdle: q.Lease.Idle.Seconds(), LeaseHold: q.Lease.MaxHold.Seconds(), Shared: q.Shared,
		Holders: make([]api.ToolHolder, len(q.Holders)), Waiters: make([]api.ToolWaiter, len(q.Waiters)),
		WaitersNotShown: max(0, q.Depth-len(q.Waiters)),
	}
	for i, h := range q.Holders {
		out.Holders[i] = api.ToolHolder{
			Session: gateway.Mark(h.Session), Tool: h.Tool, Since: known(h.Since),
			Leased: h.Leased, Idle: h.Idle, Expires: known(h.Expires), Behind: h.Behind, Director: h.Owner,
		}
		out.Holders[i].Agent, out.Holders[i].QueueID = ofAgent(h.Agent, h.Execution)
	}
	for i, w := range q.Waiters {
		out.Waiters[i] = api.ToolWaiter{
			Position: w.Position, Session: gateway.Mark(w.Session), Tool: w.Tool, Since: w.Since.UTC(), Director: w.Owner,
		}
		out.Waiters[i].Agent, out.Waiters[i].QueueID = ofAgent(w.Agent, w.Execution)
	}
	return out
}

// known is a time, or nil where it was not noted.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func toolResultView(r gateway.Result) api.ToolResult {
	if len(r.Content) == 0 {
		r.Content = json.RawMessage("[]")
	}
	return api.ToolResult{Content: r.Content, StructuredContent: r.Structured, IsError: r.IsError, Meta: r.Meta, Metadata: r.Metadata}
}
