package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// columns are the callers of the table below. expired and revoked were admins; limited may use
// only the agent other, with every scope except admin.
var columns = strings.Fields("anon read submit cancel release tool terminal schedule coder other user admin cookie static limited expired revoked")

// table has for each route and caller: + allowed, 1: 401, 3: 403, 4: 404, as if it did not
// exist. Paths name the agent coder, an account with the same name, and a task and a session
// of that agent; those of tools name a task of another caller.
var table = map[string]string{
	//                 anon read subm canc rele tool term schd codr othr user admn cook stat lim  exp  rev
	"submit":           "1    3    +    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"submitTask":       "1    3    +    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"queue":            "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"task":             "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"find":             "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"cancel":           "1    3    3    +    3    3    3    3    3    3    +    +    +    +    4    1    1",
	"unpark":           "1    3    3    +    3    3    3    3    3    3    +    +    +    +    4    1    1",
	"edit":             "1    3    3    +    3    3    3    3    3    3    +    +    +    +    4    1    1",
	"land":             "1    3    3    +    3    3    3    3    3    3    +    +    +    +    4    1    1",
	"dropLanding":      "1    3    3    +    3    3    3    3    3    3    +    +    +    +    4    1    1",
	"landings":         "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"retry":            "1    3    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"why":              "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"output":           "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"diff":             "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"pause":            "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"resume":           "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"gates":            "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"budgets":          "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"resources":        "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"accounts":         "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"openAccount":      "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"removeAccount":    "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"closeAccount":     "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"history":          "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"events":           "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"agents":           "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"registerAgent":    "1    3    3    3    3    3    3    3    +    3    3    +    +    +    3    1    1",
	"heartbeat":        "1    3    3    3    3    3    3    3    +    3    3    +    +    +    3    1    1",
	"claim":            "1    3    3    3    3    3    3    3    +    3    3    +    +    +    3    1    1",
	"report":           "1    3    3    3    3    3    3    3    +    3    3    +    +    +    3    1    1",
	"removeAgent":      "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"workspaces":       "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"discardWorkspace": "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"clearLane":        "1    3    3    3    +    3    3    3    3    3    3    +    +    +    4    1    1",
	"releaseLane":      "1    3    3    3    +    3    3    3    3    3    3    +    +    +    4    1    1",
	"chat":             "1    3    +    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"bypass":           "1    3    +    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"lane":             "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"openTerminal":     "1    3    3    3    3    3    +    3    3    3    3    +    +    +    4    1    1",
	"sessions":         "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"archiveSession":   "1    3    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"restoreSession":   "1    3    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"activities":       "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"activity":         "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"audit":            "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"auditHead":        "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"me":               "1    +    +    +    +    +    +    +    +    +    +    +    +    +    +    1    1",
	"changePassword":   "1    +    +    +    +    +    +    +    +    +    +    +    +    +    +    1    1",
	"logout":           "1    +    +    +    +    +    +    +    +    +    +    +    +    +    +    1    1",
	"makeLink":         "1    3    3    3    3    3    3    3    3    3    3    3    3    +    3    1    1",
	"tokens":           "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"createToken":      "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"revokeToken":      "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"users":            "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"putUser":          "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"removeUser":       "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"tools":            "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"setToolQueue":     "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"openToolQueue":    "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"toolQueues":       "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"callTool":         "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"createToolTask":   "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"toolTasks":        "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"toolTask":         "1    3    3    3    3    4    3    3    +    +    +    +    +    +    4    1    1",
	"cancelToolTask":   "1    3    3    3    3    4    3    3    3    3    +    +    +    +    4    1    1",
	"getTaskStatus":    "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	// The schedule has no owner, and is for the agent coder.
	"schedules":       "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"createSchedule":  "1    3    3    3    3    3    3    +    3    3    +    +    +    +    +    1    1",
	"schedule":        "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"putSchedule":     "1    3    3    3    3    3    3    3    3    3    3    +    +    +    4    1    1",
	"removeSchedule":  "1    3    3    3    3    3    3    3    3    3    3    +    +    +    4    1    1",
	"enableSchedule":  "1    3    3    3    3    3    3    3    3    3    3    +    +    +    4    1    1",
	"disableSchedule": "1    3    3    3    3    3    3    3    3    3    3    +    +    +    4    1    1",
	"triggerSchedule": "1    3    3    3    3    3    3    3    3    3    3    +    +    +    4    1    1",
	"executions":      "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"checkCron":       "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"search":          "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"usage":           "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"searchCounts":    "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"searchKeys":      "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"bulk":            "1    3    3    +    3    3    3    3    3    3    +    +    +    +    +    1    1",
	"export":          "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"import":          "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"live":            "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"directors":       "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"doctor":          "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"mcp":             "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"mcpStream":       "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"mcpEnd":          "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"status":          "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"metrics":         "1    +    3    3    3    3    3    3    +    +    +    +    +    +    3    1    1",
	// For everyone: credentials are not checked.
	"login":       "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"prove":       "1    1    1    1    1    1    1    1    1    1    1    1    1    1    1    1    1", // requires a proof, regardless of other credentials
	"useLink":     "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"loginPage":   "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"loginScript": "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"home":        "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"page":        "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"asset":       "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"openapi":     "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"healthz":     "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"readyz":      "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	// It requires a ticket, which none of them has.
	"terminal": "t    t    t    t    t    t    t    t    t    t    t    t    t    t    t    t    t",
}

// bodies are bodies that are not refused with 403 for an allowed caller; default {}.
var bodies = map[string]string{
	"registerAgent": `{"name":"coder","kind":"demo","url":"http://127.0.0.1:9000"}`,
	"heartbeat":     `{"state":"idle"}`,
	"bulk":          `{"query":"state:pending","action":"cancel"}`,
}

// TestEveryRouteForEveryCaller walks the route table. It fails for a new route without a row
// in table.
func TestEveryRouteForEveryCaller(t *testing.T) {
	for _, route := range api.Routes() {
		row := strings.Fields(table[route.Name])
		if len(row) != len(columns) {
			t.Errorf("route %s: the table has %d columns, want %d: say who may use it", route.Name, len(row), len(columns))
			continue
		}
		b, show := apitest.NewWithUsers(t)
		for i, want := range row {
			path := strings.NewReplacer("{id}", idFor(b, route), "{name}", "coder", "{part}", "k2m9", "{tool}", "search__find", "{queue}", "browser", "{path...}", "x", "{$}", "").Replace(route.Path)
			body := bodies[route.Name]
			if body == "" && route.Request != nil {
				body = "{}"
			}
			edits := show[columns[i]]
			if route.Name == "prove" { // the table must not reach the limit for wrong tokens
				edits = append(slices.Clone(edits), apitest.From(fmt.Sprintf("198.51.100.%d:1", i)))
			}
			got := b.Do(route.Method, path, body, edits...)
			if verdict := verdictOf(got.StatusCode); verdict != want && (want != "t" || got.StatusCode < 400) {
				t.Errorf("%s (%s %s) as %s: %d, want %s: %s", route.Name, route.Method, path, columns[i], got.StatusCode, want, got.Body)
			}
			if want == "+" && route.Method != http.MethodGet { // it may have changed something
				b, show = apitest.NewWithUsers(t)
			}
		}
	}
	for name := range table {
		if !slices.ContainsFunc(api.Routes(), func(r api.Route) bool { return r.Name == name }) {
			t.Errorf("there is no route %s", name)
		}
	}
}

func verdictOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "1"
	case http.StatusForbidden:
		return "3"
	case http.StatusNotFound:
		return "4"
	case http.StatusInternalServerError:
		return "failed"
	}
	return "+"
}

// idFor returns an existing id, so that a 404 comes from the limits.
func idFor(b *apitest.Fixture, route api.Route) string {
	switch {
	case strings.HasPrefix(route.Path, "/api/sessions"):
		return "talk-1"
	case strings.HasPrefix(route.Path, "/api/tokens"):
		return b.Identity.Tokens()[0].ID
	case strings.HasPrefix(route.Path, "/api/users"):
		return "ben"
	case strings.HasPrefix(route.Path, "/api/schedules"):
		return "nightly"
	}
	queue := signalbox.AgentQueue("coder")
	if strings.HasPrefix(route.Path, "/api/tools/tasks") {
		queue = signalbox.QueueCommands
	}
	tasks, err := b.Store.Waiting(b.T.Context(), queue, store.Cursor{}, 1)
	if err != nil || len(tasks) != 1 {
		b.T.Fatal(tasks, err)
	}
	return tasks[0].ID
}

// A route without a narrowing is closed to callers that are limited to some agents.
func TestEveryRouteSaysHowItIsNarrowed(t *testing.T) {
	for _, route := range api.Routes() {
		if !httpapi.Narrowed(route.Name) && route.Scope != api.ScopeAdmin && route.Name != "metrics" {
			t.Errorf("route %s is closed to limited callers: say how it is narrowed", route.Name)
		}
		if httpapi.Narrowed(route.Name) && route.Scope == api.ScopeAdmin {
			t.Errorf("route %s is for admins, who have no limits", route.Name)
		}
	}
}
