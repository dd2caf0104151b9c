package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// calls has one call for each route, by the route's name.
var calls = map[string]func(context.Context, *client.Client) error{
	"submit": func(ctx context.Context, c *client.Client) error {
		_, err := c.Submit(ctx, api.SubmitRequest{Prompt: "p"}, client.SubmitOptions{})
		return err
	},
	"submitTask": func(ctx context.Context, c *client.Client) error {
		_, err := c.SubmitTask(ctx, api.SubmitRequest{Prompt: "p"}, client.SubmitOptions{})
		return err
	},
	"queue":  func(ctx context.Context, c *client.Client) error { return second(c.Queue(ctx, client.QueueOptions{})) },
	"task":   func(ctx context.Context, c *client.Client) error { return second(c.Task(ctx, "queue-1")) },
	"find":   func(ctx context.Context, c *client.Client) error { return second(c.Find(ctx, "k2m9")) },
	"cancel": func(ctx context.Context, c *client.Client) error { return second(c.Cancel(ctx, "queue-1")) },
	"edit": func(ctx context.Context, c *client.Client) error {
		return second(c.Edit(ctx, "queue-1", api.EditRequest{Revision: 1, Place: "top"}))
	},
	"retry": func(ctx context.Context, c *client.Client) error {
		return second(c.Retry(ctx, "queue-1", api.RetryRequest{}, client.SubmitOptions{}))
	},
	"why":    func(ctx context.Context, c *client.Client) error { return second(c.Why(ctx, "queue-1")) },
	"output": func(ctx context.Context, c *client.Client) error { return second(c.Output(ctx, "queue-1", 0)) },
	"diff":   func(ctx context.Context, c *client.Client) error { return second(c.Diff(ctx, "queue-1")) },
	"pause":  func(ctx context.Context, c *client.Client) error { return second(c.Pause(ctx, api.PauseRequest{})) },
	"resume": func(ctx context.Context, c *client.Client) error { return second(c.Resume(ctx, "work")) },
	"land": func(ctx context.Context, c *client.Client) error {
		return second(c.Land(ctx, "queue-1", api.LandRequest{}))
	},
	"dropLanding":   func(ctx context.Context, c *client.Client) error { return second(c.DropLanding(ctx, "queue-1")) },
	"landings":      func(ctx context.Context, c *client.Client) error { return second(c.Landings(ctx)) },
	"unpark":        func(ctx context.Context, c *client.Client) error { return second(c.Unpark(ctx, "queue-1")) },
	"gates":         func(ctx context.Context, c *client.Client) error { return second(c.Gates(ctx)) },
	"resources":     func(ctx context.Context, c *client.Client) error { return second(c.Resources(ctx)) },
	"budgets":       func(ctx context.Context, c *client.Client) error { return second(c.Budgets(ctx)) },
	"accounts":      func(ctx context.Context, c *client.Client) error { return second(c.Accounts(ctx)) },
	"openAccount":   func(ctx context.Context, c *client.Client) error { return second(c.OpenAccount(ctx, "claude-1")) },
	"removeAccount": func(ctx context.Context, c *client.Client) error { return c.RemoveAccount(ctx, "claude-1") },
	"closeAccount": func(ctx context.Context, c *client.Client) error {
		return second(c.CloseAccount(ctx, "claude-1", api.AccountClose{}))
	},
	"history": func(ctx context.Context, c *client.Client) error {
		return second(c.History(ctx, client.HistoryOptions{}))
	},
	"events": func(ctx context.Context, c *client.Client) error {
		for _, err := range c.Events(ctx, client.EventsOptions{After: client.Now}) {
			return err
		}
		return nil
	},
	"live": func(ctx context.Context, c *client.Client) error {
		for _, err := range c.Live(ctx) {
			return err
		}
		return nil
	},
	"search": func(ctx context.Context, c *client.Client) error {
		return second(c.Search(ctx, "state:failed", client.SearchOptions{}))
	},
	"searchCounts": func(ctx context.Context, c *client.Client) error { return second(c.SearchCounts(ctx, "state:failed")) },
	"searchKeys":   func(ctx context.Context, c *client.Client) error { return second(c.SearchKeys(ctx)) },
	"export":       func(ctx context.Context, c *client.Client) error { return second(c.Export(ctx, 0, "")) },
	"import":       func(ctx context.Context, c *client.Client) error { return second(c.Import(ctx, api.ImportRequest{})) },
	"bulk":         func(ctx context.Context, c *client.Client) error { return second(c.Bulk(ctx, api.BulkRequest{})) },
	"agents":       func(ctx context.Context, c *client.Client) error { return second(c.Agents(ctx)) },
	"usage":        func(ctx context.Context, c *client.Client) error { return second(c.Usage(ctx, client.UsageOptions{})) },
	"registerAgent": func(ctx context.Context, c *client.Client) error {
		return second(c.RegisterAgent(ctx, api.RegisterAgent{Name: "coder"}))
	},
	"heartbeat": func(ctx context.Context, c *client.Client) error {
		return second(c.Heartbeat(ctx, "coder", api.Heartbeat{State: "idle"}))
	},
	"claim": func(ctx context.Context, c *client.Client) error {
		return second(c.Claim(ctx, "coder", api.PullClaim{Slots: 1}, 0))
	},
	"report": func(ctx context.Context, c *client.Client) error {
		return second(c.Report(ctx, "coder", "queue-1", api.PullReport{Unknown: true}))
	},
	"removeAgent": func(ctx context.Context, c *client.Client) error { return c.RemoveAgent(ctx, "coder") },
	"workspaces":  func(ctx context.Context, c *client.Client) error { return second(c.Workspaces(ctx, "coder")) },
	"discardWorkspace": func(ctx context.Context, c *client.Client) error {
		return second(c.DiscardWorkspace(ctx, "coder", "w/1", api.DiscardWorkspace{Seen: "a", DeleteBranch: true}))
	},
	"clearLane":   func(ctx context.Context, c *client.Client) error { return second(c.ClearLane(ctx, "coder")) },
	"releaseLane": func(ctx context.Context, c *client.Client) error { return second(c.ReleaseLane(ctx, "coder")) },
	"chat": func(ctx context.Context, c *client.Client) error {
		return second(c.Chat(ctx, "coder", api.ChatRequest{Message: "m"}, client.ChatOptions{}))
	},
	"tools": func(ctx context.Context, c *client.Client) error { return second(c.ListTools(ctx)) },
	"openToolQueue": func(ctx context.Context, c *client.Client) error {
		return second(c.OpenToolQueue(ctx, "q"))
	},
	"setToolQueue": func(ctx context.Context, c *client.Client) error {
		return second(c.SetToolQueue(ctx, "q", api.SetToolQueue{}))
	},
	"toolQueues": func(ctx context.Context, c *client.Client) error { return second(c.ToolQueues(ctx)) },
	"callTool": func(ctx context.Context, c *client.Client) error {
		return second(c.CallTool(ctx, "search__find", api.ToolCall{}, client.ToolOptions{}))
	},
	"bypass": func(ctx context.Context, c *client.Client) error {
		return second(c.Bypass(ctx, "coder", api.BypassRequest{Message: "m"}, client.ChatOptions{}))
	},
	"lane":         func(ctx context.Context, c *client.Client) error { return second(c.Lane(ctx, "coder")) },
	"openTerminal": func(ctx context.Context, c *client.Client) error { return second(c.OpenTerminal(ctx, "coder")) },
	"sessions": func(ctx context.Context, c *client.Client) error {
		return second(c.Sessions(ctx, client.SessionsOptions{}))
	},
	"archiveSession": func(ctx context.Context, c *client.Client) error { return second(c.ArchiveSession(ctx, "s/1")) },
	"restoreSession": func(ctx context.Context, c *client.Client) error { return second(c.RestoreSession(ctx, "s1")) },
	"activities": func(ctx context.Context, c *client.Client) error {
		return second(c.Activities(ctx, client.ActivitiesOptions{}))
	},
	"activity":  func(ctx context.Context, c *client.Client) error { return second(c.Activity(ctx, "queue-1")) },
	"audit":     func(ctx context.Context, c *client.Client) error { return second(c.Audit(ctx, client.AuditOptions{})) },
	"auditHead": func(ctx context.Context, c *client.Client) error { return second(c.AuditHead(ctx)) },
	"me":        func(ctx context.Context, c *client.Client) error { return second(c.Me(ctx)) },
	"login":     func(ctx context.Context, c *client.Client) error { return second(c.Login(ctx, "u", "p")) },
	"logout":    func(ctx context.Context, c *client.Client) error { return c.Logout(ctx) },
	"changePassword": func(ctx context.Context, c *client.Client) error {
		return second(c.ChangePassword(ctx, "old", "new and longer"))
	},
	"tokens": func(ctx context.Context, c *client.Client) error { return second(c.Tokens(ctx)) },
	"createToken": func(ctx context.Context, c *client.Client) error {
		return second(c.CreateToken(ctx, api.NewToken{Name: "ci"}))
	},
	"revokeToken": func(ctx context.Context, c *client.Client) error { return c.RevokeToken(ctx, "tok-1") },
	"users":       func(ctx context.Context, c *client.Client) error { return second(c.Users(ctx)) },
	"putUser":     func(ctx context.Context, c *client.Client) error { return second(c.PutUser(ctx, "u", api.PutUser{})) },
	"removeUser":  func(ctx context.Context, c *client.Client) error { return c.RemoveUser(ctx, "u") },
	"createToolTask": func(ctx context.Context, c *client.Client) error {
		return second(c.CreateToolTask(ctx, "report", api.NewToolTask{}, client.ToolTaskOptions{}))
	},
	"toolTask": func(ctx context.Context, c *client.Client) error { return second(c.ToolTask(ctx, "queue-1")) },
	"toolTasks": func(ctx context.Context, c *client.Client) error {
		return second(c.ToolTasks(ctx, client.ToolTasksOptions{}))
	},
	"cancelToolTask": func(ctx context.Context, c *client.Client) error { return second(c.CancelToolTask(ctx, "queue-1")) },
	"schedules": func(ctx context.Context, c *client.Client) error {
		return second(c.Schedules(ctx, client.SchedulesOptions{}))
	},
	"createSchedule": func(ctx context.Context, c *client.Client) error {
		return second(c.CreateSchedule(ctx, api.NewSchedule{Name: "nightly"}))
	},
	"schedule": func(ctx context.Context, c *client.Client) error { return second(c.Schedule(ctx, "nightly")) },
	"putSchedule": func(ctx context.Context, c *client.Client) error {
		return second(c.PutSchedule(ctx, "nightly", api.NewSchedule{Name: "nightly"}))
	},
	"removeSchedule":  func(ctx context.Context, c *client.Client) error { return c.RemoveSchedule(ctx, "nightly") },
	"enableSchedule":  func(ctx context.Context, c *client.Client) error { return second(c.EnableSchedule(ctx, "nightly")) },
	"disableSchedule": func(ctx context.Context, c *client.Client) error { return second(c.DisableSchedule(ctx, "nightly")) },
	"triggerSchedule": func(ctx context.Context, c *client.Client) error { return second(c.TriggerSchedule(ctx, "nightly")) },
	"executions":      func(ctx context.Context, c *client.Client) error { return second(c.Executions(ctx, "nightly", 0)) },
	"checkCron":       func(ctx context.Context, c *client.Client) error { return second(c.CheckCron(ctx, "@daily", "", 0)) },
	"directors":       func(ctx context.Context, c *client.Client) error { return second(c.Directors(ctx)) },
	"doctor":          func(ctx context.Context, c *client.Client) error { return second(c.Doctor(ctx)) },
	"status":          func(ctx context.Context, c *client.Client) error { return second(c.Status(ctx)) },
	"makeLink":        func(ctx context.Context, c *client.Client) error { return second(c.LoginLink(ctx)) },
	"openapi":         func(ctx context.Context, c *client.Client) error { return second(c.OpenAPI(ctx)) },
	"healthz":         func(ctx context.Context, c *client.Client) error { return second(c.Health(ctx)) },
	"readyz":          func(ctx context.Context, c *client.Client) error { return second(c.Ready(ctx)) },
	"metrics":         func(ctx context.Context, c *client.Client) error { return second(c.Metrics(ctx)) },
}

// notHere lists the routes that no method calls, and why.
var notHere = map[string]string{
	"prove":         "the first request of each new connection",
	"getTaskStatus": "the seed's form of ToolTask",
	"terminal":      "a WebSocket, which the standard library does not support: OpenTerminal returns its ticket",
	"useLink":       "for the login page, to which the link leads",
	"loginPage":     "a page for browsers",
	"loginScript":   "part of that page",
	"home":          "redirect to the dashboard",
	"page":          "pages for browsers",
	"asset":         "part of those pages",
	"mcp":           "a protocol with its own clients; CallTool calls the same tools",
	"mcpStream":     "part of that protocol",
	"mcpEnd":        "part of that protocol",
}

func second[T any](_ T, err error) error { return err }

func TestEveryRouteHasAMethod(t *testing.T) {
	for _, route := range api.Routes() {
		t.Run(route.Name, func(t *testing.T) {
			if notHere[route.Name] != "" {
				return
			}
			call, ok := calls[route.Name]
			if !ok {
				t.Fatalf("no method of the client is known to call %s %s: add it to calls", route.Method, route.Path)
			}
			hit := hitBy(t, call)
			if hit != route.Name {
				t.Fatalf("the method hit %q", hit)
			}
		})
	}
}

// hitBy returns the name of the route that a call reaches.
func hitBy(t *testing.T, call func(context.Context, *client.Client) error) string {
	t.Helper()
	var mu sync.Mutex
	var hit []string
	mux := http.NewServeMux()
	for _, route := range api.Routes() {
		mux.HandleFunc(route.Method+" "+route.Path, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			hit = append(hit, route.Name)
			mu.Unlock()
			if r.Method != http.MethodGet && r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s without a JSON content type", r.Method)
			}
			answer(w, route)
		})
	}
	srv := httptest.NewServer(mux)
	defer srv.Close()
	if err := call(t.Context(), newClient(t, srv.URL, client.Options{})); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return strings.Join(hit, ", ")
}

func answer(w http.ResponseWriter, route api.Route) {
	switch {
	case route.Media == "text/event-stream":
		w.Header().Set("Content-Type", route.Media)
		fmt.Fprint(w, "id: 1\nevent: snapshot\ndata: {\"seq\":1,\"kind\":\"submit\"}\n\n")
	case route.Answer != nil:
		w.WriteHeader(route.Status)
		json.NewEncoder(w).Encode(route.Answer)
	case route.Status == http.StatusNoContent:
		w.WriteHeader(route.Status)
	default:
		fmt.Fprint(w, "{}")
	}
}
