package cli_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// accessRoutes are the fake director's routes of identity, audit and lanes.
func (f *fake) accessRoutes() map[string]http.HandlerFunc {
	respond := func(v func(r *http.Request) any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { answer(w, 200, v(r)) }
	}
	noContent := func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) }
	before := noon.Add(-3 * 60e9)
	return map[string]http.HandlerFunc{
		"chat": f.handleChat, "bypass": f.handleChat, "audit": f.auditRows, "createToken": f.createToken, "putUser": f.putUser,
		"revokeToken": noContent, "removeUser": noContent,
		"removeAgent": func(w http.ResponseWriter, r *http.Request) {
			if r.PathValue("name") != "coder" {
				fail(w, 404, "not_found", "there is no agent "+r.PathValue("name"))
				return
			}
			noContent(w, r)
		},
		"auditHead": respond(func(*http.Request) any {
			head := f.audit[len(f.audit)-1]
			return api.AuditHead{Seq: head.Seq, Hash: head.Hash, At: &head.At}
		}),
		"me": respond(func(*http.Request) any {
			return api.Me{Kind: "user", ID: "ada", Email: "ada@example.com", Scopes: []string{"read", "submit"}, Agents: []string{"coder"}, TokenID: "tok-1"}
		}),
		"tokens": respond(func(*http.Request) any {
			return api.Tokens{Tokens: []api.Token{{ID: "tok-1", Name: "laptop", Kind: "user", Principal: "ada", Scopes: []string{"admin"}, CreatedAt: noon, LastUsedAt: &before}}}
		}),
		"users": respond(func(*http.Request) any {
			return api.Users{Users: []api.User{{ID: "ada", Email: "ada@example.com", Role: "admin", Agents: []string{"coder"}}}}
		}),
		"lane": func(w http.ResponseWriter, r *http.Request) {
			running := api.Execution{ID: id(1), AgentName: "coder", Source: "user", SourceUserEmail: "ada@example.com", Message: "first", QueuedAt: before, StartedAt: &before, Status: "running"}
			waiting := api.Execution{ID: id(2), AgentName: "coder", Source: "agent", SourceAgent: "writer", Message: "second", QueuedAt: noon, Status: "queued"}
			f.lane(w, r, api.Lane{
				AgentName: "coder", IsBusy: true, CurrentExecution: &running, Executions: []api.Execution{running}, Slots: 1,
				Bypass: []api.Execution{}, QueueLength: 2, QueuedExecutions: []api.Execution{waiting}, MaxQueueSize: 3,
			})
		},
		"sessions": respond(func(r *http.Request) any {
			out := api.Sessions{Sessions: []api.Session{{SessionID: "s1", Agent: "coder", State: "active", Current: true, Owner: "user:ada", Title: "first", Turns: 2, LastUsed: before}}}
			if r.URL.Query().Get("state") == "all" {
				out.Sessions = append(out.Sessions, api.Session{SessionID: "s0", Agent: "coder", State: "archived", Source: "cli", Turns: 1, LastUsed: before})
			}
			return out
		}),
		"archiveSession": respond(func(r *http.Request) any {
			return api.Session{SessionID: r.PathValue("id"), Agent: "coder", State: "archived"}
		}),
		"restoreSession": respond(func(r *http.Request) any {
			return api.Session{SessionID: r.PathValue("id"), Agent: "coder", State: "active", Current: true}
		}),
		"activities": respond(func(*http.Request) any {
			return api.Activities{Activities: []api.Activity{activity(2), activity(1)}, Next: "c1"}
		}),
		"activity": respond(func(*http.Request) any {
			root, child := activity(1), activity(2)
			child.Children = []api.Activity{activity(3)}
			root.Children = []api.Activity{child}
			return root
		}),
	}
}

// activity is the n-th activity: the first has ended, the second runs, the third waits.
func activity(n int) api.Activity {
	ms := int64(61_240)
	x := api.Activity{ID: id(n), Type: "chat_start", State: "completed", AgentName: "coder", TriggeredBy: "user", UserID: "ada", DurationMS: &ms, CreatedAt: noon}
	x.Details = api.ActivityDetails{ExecutionID: id(n), QueueStatus: "queued:2", Message: "do it"}
	switch n {
	case 2:
		x.Type, x.State, x.DurationMS, x.SourceAgent, x.UserID = "agent_collaboration", "started", nil, "writer", ""
	case 3:
		x.State, x.DurationMS = "queued", nil
	}
	return x
}

// auditChain is a valid audit log of n rows.
func auditChain(n int) []api.AuditRow {
	prev := signalbox.AuditRoot
	var out []api.AuditRow
	for i := range n {
		row := signalbox.Audit{
			Seq: int64(i + 1), At: noon, EventType: "agent_queue", Action: "force_release", Principal: "user:ada", UserID: "ada", AgentName: "coder",
			Result: "success", IPAddress: "127.0.0.1", Severity: "warning", Prev: prev,
		}
		row.Hash = row.Sum()
		prev = row.Hash
		out = append(out, api.AuditRow(row))
	}
	return out
}

func (f *fake) auditRows(w http.ResponseWriter, r *http.Request) {
	const most = 2 // so that there are pages
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	rows := slices.Clone(f.audit)
	if r.URL.Query().Get("newest") == "true" {
		slices.Reverse(rows)
	} else {
		rows = rows[min(int(after), len(rows)):]
	}
	page := api.AuditLog{Rows: rows[:min(most, len(rows))]}
	if len(rows) > most {
		page.Next = page.Rows[most-1].Seq
	}
	answer(w, 200, page)
}

func (f *fake) createToken(w http.ResponseWriter, r *http.Request) {
	var req api.NewToken
	json.NewDecoder(r.Body).Decode(&req)
	out := api.TokenCreated{Secret: "sbxt_x_secret"}
	out.ID, out.Name, out.Kind, out.Principal, out.Scopes, out.Agents = "tok-2", req.Name, "service", req.Name, req.Scopes, req.Agents
	if req.Agent != "" {
		out.Kind, out.Principal, out.Scopes = "agent", req.Agent, []string{"submit", "read", "agent"}
	}
	if req.ExpiresInSeconds > 0 {
		at := noon.Add(720 * 3600e9)
		out.ExpiresAt = &at
	}
	answer(w, 201, out)
}

func (f *fake) putUser(w http.ResponseWriter, r *http.Request) {
	var req api.PutUser
	json.NewDecoder(r.Body).Decode(&req)
	f.mu.Lock()
	f.users = append(f.users, req)
	f.mu.Unlock()
	answer(w, 200, api.User{ID: r.PathValue("id"), Role: req.Role, Agents: req.Agents})
}
