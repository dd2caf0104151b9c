package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// For a running task that is blocked, why says which tool queue it waits for, who holds the slots,
// and what can be done. It does not name agents that the caller may not see.
func TestWhyNamesTheCapacity(t *testing.T) {
	f := apitest.NewTools()
	b := apitest.New(t, apitest.WithTools(f), apitest.WithToken)
	coder, writer := b.AddAgent("coder", 1), b.AddAgent("writer", 1)
	b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, apitest.Bearer(apitest.Secret)).Want(t, 201, nil)
	waits := b.Run(coder)
	b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"writer"}`, apitest.Bearer(apitest.Secret)).Want(t, 201, nil)
	holds := b.Run(writer)
	now := time.Now()
	f.Mu.Lock()
	f.Statuses = []toolqueue.Status{{
		Name: "github", Concurrent: 2, InUse: 2, Depth: 3,
		Holders: []toolqueue.Holder{
			{Agent: "writer", Tool: "search", Execution: holds.ID, Since: now},
			{Agent: "coder", Tool: "search", Execution: waits.ID, Since: now, Leased: true, Idle: true},
		},
		Waiters: []toolqueue.Waiter{{Position: 2, Agent: "coder", Tool: "merge", Execution: waits.ID, Since: now.Add(-time.Hour)}},
	}}
	f.Mu.Unlock()
	why := func(id string, who apitest.Edit) (w api.Why) {
		b.Do("GET", "/api/queue/"+id+"/why", "", who).Want(t, 200, &w)
		return w
	}

	w := why(waits.ID, apitest.Bearer(apitest.Secret))
	if len(w.Gates) != 1 || w.Gates[0].OK || w.Gates[0].Name != "tool_capacity" || w.Gates[0].Cure == "" ||
		w.Gates[0].Text != "github is full, 2 of 2 in use by writer, coder" || !strings.Contains(w.Gates[0].Detail, "to call merge, position 2 of 3") {
		t.Errorf("who waits: %+v", w.Gates)
	}
	if !strings.HasSuffix(w.Summary, " It waits for capacity: github is full, 2 of 2 in use by writer, coder.") {
		t.Errorf("who waits: %s", w.Summary)
	}
	w = why(holds.ID, apitest.Bearer(apitest.Secret))
	if len(w.Gates) != 1 || !w.Gates[0].OK || w.Gates[0].Text != "It holds a slot of github" || strings.Contains(w.Summary, "capacity") {
		t.Errorf("who holds: %+v", w)
	}
	narrow := apitest.Bearer(b.AddToken(identity.NewToken{Name: "narrow", Scopes: []signalbox.Scope{signalbox.ScopeRead}, Agents: []string{"coder"}}))
	if w := why(waits.ID, narrow); strings.Contains(w.Gates[0].Text+w.Summary, "writer") || w.Gates[0].Agent == "writer" {
		t.Errorf("an agent is named that the asker may not see: %+v", w)
	}
}
