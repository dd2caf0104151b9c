package view

import (
	"encoding/json"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// ToolQueue is the API form of a tool queue. It shows sessions by a mark, because their
// names work like passwords, and agents only to callers who may see them.
func ToolQueue(q *toolqueue.Status, who signalbox.Principal) api.ToolQueue {
	// ofAgent hides the agent and task of a call from callers who may not see the agent.
	ofAgent := func(agent, execution string) (string, string) {
		if !who.MayUse(agent) {
			return "", ""
		}
		return agent, execution
	}
	out := api.ToolQueue{
		Name: q.Name, Concurrent: q.Concurrent, InUse: q.InUse, Depth: q.Depth,
		MaxWaitSeconds: q.MaxWait.Seconds(), MaxWaiters: q.MaxWaiters,
		LeaseIdle: q.Lease.Idle.Seconds(), LeaseHold: q.Lease.MaxHold.Seconds(), Shared: q.Shared,
		Holders: make([]api.ToolHolder, len(q.Holders)), Waiters: make([]api.ToolWaiter, len(q.Waiters)),
		WaitersNotShown: max(0, q.Depth-len(q.Waiters)), PerKey: q.PerKey, Keys: q.Keys,
	}
	toolLimits(&out, q)
	for i, h := range q.Holders {
		out.Holders[i] = api.ToolHolder{
			Session: gateway.SessionLabel(h.Session), Tool: h.Tool, Since: Time(h.Since.UTC()),
			Leased: h.Leased, Idle: h.Idle, Expires: Time(h.Expires.UTC()), Behind: h.Behind, Director: h.Owner,
		}
		out.Holders[i].Agent, out.Holders[i].QueueID = ofAgent(h.Agent, h.Execution)
	}
	for i, w := range q.Waiters {
		out.Waiters[i] = api.ToolWaiter{
			Position: w.Position, Session: gateway.SessionLabel(w.Session), Tool: w.Tool, Since: w.Since.UTC(), Director: w.Owner, StartsAt: Time(w.Held.Until.UTC()),
		}
		if out.Waiters[i].StartsAt != nil {
			out.Held++
		}
		out.Waiters[i].Agent, out.Waiters[i].QueueID = ofAgent(w.Agent, w.Execution)
	}
	return out
}

// toolLimits adds the rate, and until when the queue is closed. It does not show what single keys
// have left, because keys belong to other callers.
func toolLimits(out *api.ToolQueue, q *toolqueue.Status) {
	out.Rate = ToolRate(q.Rate)
	closed, keys := q.Closed()
	if keys > 0 {
		out.Closed = &api.ToolClosed{Until: closed.Until.UTC(), Why: closed.Why, Since: Time(closed.Since.UTC())}
	}
	switch {
	case q.PerKey:
		out.KeysClosed = keys
	case out.Rate != nil && len(q.Limits) > 0:
		out.Rate.Left, out.Rate.Next = &q.Limits[0].Tokens, Time(q.Limits[0].Next.UTC())
	}
}

// ToolRate is the API form of a rate; nil if there is none.
func ToolRate(r toolqueue.Rate) *api.ToolRate {
	if r.N == 0 {
		return nil
	}
	return &api.ToolRate{N: r.N, PerSeconds: r.Per.Seconds(), Burst: max(1, r.Burst)}
}

// ToolResult is the API form of a tool's answer. Its content is a list, possibly empty.
func ToolResult(r gateway.Result) api.ToolResult {
	if len(r.Content) == 0 {
		r.Content = json.RawMessage("[]")
	}
	return api.ToolResult{Content: r.Content, StructuredContent: r.Structured, IsError: r.IsError, Meta: r.Meta, Metadata: r.Metadata}
}
