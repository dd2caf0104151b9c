package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// A task that runs can stand still all the same: why says what it waits for at
// a tool queue, who has the slots, and what can be done. Agents that the asker
// may not see are not named.
func TestWhyNamesTheCapacity(t *testing.T) {
	f := newFakeTools()
	b := newBox(t, withTools(f), withToken)
	coder, writer := b.agent("coder", 1), b.agent("writer", 1)
	b.do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, bearer(secret)).want(t, 201, nil)
	waits := b.work(coder)
	b.do("POST", "/api/queue/task", `{"prompt":"p","agent":"writer"}`, bearer(secret)).want(t, 201, nil)
	holds := b.work(writer)
	now := time.Now()
	f.mu.Lock()
	f.queues = []toolqueue.Status{{
		Name: "github", Concurrent: 2, InUse: 2, Depth: 3,
		Holders: []toolqueue.Holder{
			{Agent: "writer", Tool: "search", Execution: holds.ID, Since: now},
			{Agent: "coder", Tool: "search", Execution: waits.ID, Since: now, Leased: true, Idle: true},
		},
		Waiters: []toolqueue.Waiter{{Position: 2, Agent: "coder", Tool: "merge", Execution: waits.ID, Since: now.Add(-time.Hour)}},
	}}
	f.mu.Unlock()
	why := func(id string, who edit) (w api.Why) {
		b.do("GET", "/api/queue/"+id+"/why", "", who).want(t, 200, &w)
		return w
	}

	w := why(waits.ID, bearer(secret))
	if len(w.Gates) != 1 || w.Gates[0].OK || w.Gates[0].Name != "tool_capacity" || w.Gates[0].Cure == "" ||
		w.Gates[0].Text != "github is full, 2 of 2 in use by writer, coder" || !strings.Contains(w.Gates[0].Detail, "to call merge, position 2 of 3") {
		t.Errorf("who waits: %+v", w.Gates)
	}
	if !strings.HasSuffix(w.Summary, " It waits for capacity: github is full, 2 of 2 in use by writer, coder.") {
		t.Errorf("who waits: %s", w.Summary)
	}
	w = why(holds.ID, bearer(secret))
	if len(w.Gates) != 1 || !w.Gates[0].OK || w.Gates[0].Text != "It holds a slot of github" || strings.Contains(w.Summary, "capacity") {
		t.Errorf("who holds: %+v", w)
	}
	narrow := bearer(b.token(identity.NewToken{Name: "narrow", Scopes: []signalbox.Scope{signalbox.ScopeRead}, Agents: []string{"coder"}}))
	if w := why(waits.ID, narrow); strings.Contains(w.Gates[0].Text+w.Summary, "writer") || w.Gates[0].Agent == "writer" {
		t.Errorf("an agent is named that the asker may not see: %+v", w)
	}
}
