package view

import (
	"encoding/json"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// ToolQueue shows sessions by their mark, for the name of one is as good as
// a password, and agents to those who may see them.
func ToolQueue(q *toolqueue.Status, who signalbox.Principal) api.ToolQueue {
	// ofAgent is what is shown of an agent's call: its task is whose its agent is.
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

// toolLimits adds the rate, and until when the queue is closed. What single keys have left is not
// shown: whose they are is nobody else's business.
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

// ToolRate shows a rate; nil: there is none.
func ToolRate(r toolqueue.Rate) *api.ToolRate {
	if r.N == 0 {
		return nil
	}
	return &api.ToolRate{N: r.N, PerSeconds: r.Per.Seconds(), Burst: max(1, r.Burst)}
}

// ToolResult is the answer of a tool; its content is a list, if an empty one.
func ToolResult(r gateway.Result) api.ToolResult {
	if len(r.Content) == 0 {
		r.Content = json.RawMessage("[]")
	}
	return api.ToolResult{Content: r.Content, StructuredContent: r.Structured, IsError: r.IsError, Meta: r.Meta, Metadata: r.Metadata}
}
