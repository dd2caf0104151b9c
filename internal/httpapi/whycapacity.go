package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// addCapacity adds the tool queues that a running task waits for or holds: a running task
// may still be blocked.
func (h *taskHandlers) addCapacity(out *api.Why, state signalbox.State, c access.Caller) {
	if h.tools == nil || state != signalbox.Working && state != signalbox.Cancelling {
		return
	}
	now := h.engine.Now()
	queues := h.tools.Queues()
	for i := range queues {
		q := &queues[i]
		for _, w := range q.Waiters {
			if w.Execution == out.QueueID {
				addGate(out, waitingGate(q, w, now, c))
			}
		}
		for _, h := range q.Holders {
			if h.Execution == out.QueueID && !h.Idle {
				addGate(out, api.Gate{
					Name: gateCapacity, OK: true, Text: fmt.Sprintf("It holds a slot of %s", q.Name),
					Detail: fmt.Sprintf("calling %s for %s; %d of %d in use", h.Tool, span(now, h.Since), q.InUse, q.Concurrent),
				})
			}
		}
	}
}

// gateCapacity is the name of the gate for a tool queue.
const gateCapacity = "tool_capacity"

// addGate adds such a gate, and adds it to the summary if it is closed.
func addGate(out *api.Why, g api.Gate) {
	out.Gates = append(out.Gates, g)
	if !g.OK {
		out.Summary += " It waits for capacity: " + g.Text + "."
	}
}

// waitingGate says what a call waits for, who holds it, and what can be done.
func waitingGate(q *toolqueue.Status, w toolqueue.Waiter, now time.Time, c access.Caller) api.Gate {
	g := api.Gate{
		Name: gateCapacity, Text: fmt.Sprintf("%s is full, %d of %d in use", q.Name, q.InUse, q.Concurrent),
		Detail: fmt.Sprintf("waiting %s to call %s, position %d of %d", span(now, w.Since), w.Tool, w.Position, q.Depth),
		Cure:   fmt.Sprintf("wait; signalbox tools queues shows who holds what, and queues.%s.concurrent is its capacity", q.Name),
	}
	var by []string
	for _, h := range q.Holders {
		if h.Agent == "" || !c.Who.MayUse(h.Agent) {
			continue
		}
		by = append(by, h.Agent)
		g.Agent = h.Agent
	}
	if len(by) > 0 {
		g.Text += " by " + strings.Join(by, ", ")
	}
	return g
}

func span(now, since time.Time) time.Duration { return max(0, now.Sub(since)).Round(time.Second) }

// whyTimeout limits the wait for additions of other directors to an answer.
const whyTimeout = 1500 * time.Millisecond

// addElsewhere adds what only other directors know about a task in flight: the state of a
// tool call that is the task, or that the task makes. An agent may call tools at any
// director.
func (h *taskHandlers) addElsewhere(ctx context.Context, out *api.Why, t *signalbox.Task) {
	if !t.State.InFlight() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, whyTimeout)
	defer cancel()
	if t.Mode == signalbox.ModeTool {
		if holder, elsewhere := h.forward.RemoteHolder(ctx, t.Agent); elsewhere {
			if got, ok := h.askWhy(ctx, holder, t.ID); ok && got.State == out.State {
				*out = got
			}
		}
		return
	}
	if h.tools == nil {
		return
	}
	others := h.forward.Others(ctx)
	said := make([]api.Why, len(others))
	var asking sync.WaitGroup
	for i := range others {
		asking.Go(func() { said[i], _ = h.askWhy(ctx, others[i], t.ID) })
	}
	asking.Wait()
	for i := range said {
		addGates(out, said[i].Gates)
	}
}

func (h *taskHandlers) askWhy(ctx context.Context, other store.Director, id string) (got api.Why, ok bool) {
	err := h.forward.Ask(ctx, other, httpio.Outgoing{Method: http.MethodGet, Path: view.TaskURL(id) + "/why"}, 0, &got)
	if err != nil && ctx.Err() == nil {
		h.log.Debug("another director did not answer for why", "queue_id", id, "director", other.ID, "error", err)
	}
	return got, err == nil
}

// addGates adds the tool queue gates from another director. All directors know the shared
// queues.
func addGates(out *api.Why, gates []api.Gate) {
	for _, g := range gates {
		if g.Name != gateCapacity || slices.ContainsFunc(out.Gates, func(have api.Gate) bool { return have.Name == g.Name && have.Text == g.Text }) {
			continue
		}
		addGate(out, g)
	}
}
