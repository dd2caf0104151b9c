package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const password = "a right long password"

// columns are the callers of the table below. expired and revoked were admins;
// limited may use the agent other alone, with every scope that is not admin's.
var columns = strings.Fields("anon read submit cancel release tool terminal schedule coder other user admin cookie static limited expired revoked")

// table says for each route and caller: + it may, 1: 401, 3: 403, 4: 404, as
// if it were not there. Paths name the agent coder, and a task and a session
// of that agent; those of tools a task that none of them asked for.
var table = map[string]string{
	//                 anon read subm canc rele tool term schd codr othr user admn cook stat lim  exp  rev
	"submit":         "1    3    +    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"submitTask":     "1    3    +    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"queue":          "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"task":           "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"find":           "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"cancel":         "1    3    3    +    3    3    3    3    3    3    +    +    +    +    4    1    1",
	"retry":          "1    3    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"why":            "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"output":         "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"pause":          "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"resume":         "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"history":        "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"events":         "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"agents":         "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"registerAgent":  "1    3    3    3    3    3    3    3    +    3    3    +    +    +    3    1    1",
	"heartbeat":      "1    3    3    3    3    3    3    3    +    3    3    +    +    +    3    1    1",
	"claim":          "1    3    3    3    3    3    3    3    +    3    3    +    +    +    3    1    1",
	"report":         "1    3    3    3    3    3    3    3    +    3    3    +    +    +    3    1    1",
	"removeAgent":    "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"clearLane":      "1    3    3    3    +    3    3    3    3    3    3    +    +    +    4    1    1",
	"releaseLane":    "1    3    3    3    +    3    3    3    3    3    3    +    +    +    4    1    1",
	"chat":           "1    3    +    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"bypass":         "1    3    +    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"lane":           "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"openTerminal":   "1    3    3    3    3    3    +    3    3    3    3    +    +    +    4    1    1",
	"sessions":       "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"archiveSession": "1    3    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"restoreSession": "1    3    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"activities":     "1    +    3    3    3    3    3    3    +    +    +    +    +    +    +    1    1",
	"activity":       "1    +    3    3    3    3    3    3    +    +    +    +    +    +    4    1    1",
	"audit":          "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"auditHead":      "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"me":             "1    +    +    +    +    +    +    +    +    +    +    +    +    +    +    1    1",
	"logout":         "1    +    +    +    +    +    +    +    +    +    +    +    +    +    +    1    1",
	"makeLink":       "1    3    3    3    3    3    3    3    3    3    3    3    3    +    3    1    1",
	"tokens":         "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"createToken":    "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"revokeToken":    "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"users":          "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"putUser":        "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"removeUser":     "1    3    3    3    3    3    3    3    3    3    3    +    +    +    3    1    1",
	"tools":          "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"toolQueues":     "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"callTool":       "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"createToolTask": "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"toolTasks":      "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	"toolTask":       "1    3    3    3    3    4    3    3    +    +    +    +    +    +    4    1    1",
	"cancelToolTask": "1    3    3    3    3    4    3    3    3    3    +    +    +    +    4    1    1",
	"getTaskStatus":  "1    3    3    3    3    +    3    3    +    +    +    +    +    +    +    1    1",
	// The schedule is of nobody in particular, and for the agent coder.
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
	// For everyone: what is shown is not even looked at.
	"login":       "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"prove":       "1    1    1    1    1    1    1    1    1    1    1    1    1    1    1    1    1", // to who proves the same, whatever else is shown
	"useLink":     "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"loginPage":   "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"loginScript": "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"home":        "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"page":        "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"asset":       "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"openapi":     "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"healthz":     "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	"readyz":      "+    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +    +",
	// It asks for its own ticket, which none of them has.
	"terminal": "t    t    t    t    t    t    t    t    t    t    t    t    t    t    t    t    t",
}

// bodies are what an allowed caller is answered without 403; {} elsewhere.
var bodies = map[string]string{
	"registerAgent": `{"name":"coder","kind":"demo","url":"http://127.0.0.1:9000"}`,
	"heartbeat":     `{"state":"idle"}`,
	"bulk":          `{"query":"state:pending","action":"cancel"}`,
}

// TestEveryRouteForEveryCaller walks the route table. A new route fails it
// until someone has written down who may use it.
func TestEveryRouteForEveryCaller(t *testing.T) {
	for _, route := range api.Routes() {
		row := strings.Fields(table[route.Name])
		if len(row) != len(columns) {
			t.Errorf("route %s: the table has %d columns, want %d: say who may use it", route.Name, len(row), len(columns))
			continue
		}
		b, show := newPeople(t)
		for i, want := range row {
			path := strings.NewReplacer("{id}", idFor(b, route), "{name}", "coder", "{part}", "k2m9", "{tool}", "search__find", "{path...}", "x", "{$}", "").Replace(route.Path)
			body := bodies[route.Name]
			if body == "" && route.Request != nil {
				body = "{}"
			}
			edits := show[columns[i]]
			if route.Name == "prove" { // the table must not run into the limit on wrong tokens
				edits = append(slices.Clone(edits), from(fmt.Sprintf("198.51.100.%d:1", i)))
			}
			got := b.do(route.Method, path, body, edits...)
			if verdict := verdictOf(got.StatusCode); verdict != want && (want != "t" || got.StatusCode < 400) {
				t.Errorf("%s (%s %s) as %s: %d, want %s: %s", route.Name, route.Method, path, columns[i], got.StatusCode, want, got.body)
			}
			if want == "+" && route.Method != http.MethodGet { // it did something
				b, show = newPeople(t)
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

// idFor is an id that is there: a 404 is that of the limits.
func idFor(b *box, route api.Route) string {
	switch {
	case strings.HasPrefix(route.Path, "/api/sessions"):
		return "talk-1"
	case strings.HasPrefix(route.Path, "/api/tokens"):
		return b.id.Tokens()[0].ID
	case strings.HasPrefix(route.Path, "/api/users"):
		return "ben"
	case strings.HasPrefix(route.Path, "/api/schedules"):
		return "nightly"
	}
	queue := signalbox.AgentQueue("coder")
	if strings.HasPrefix(route.Path, "/api/tools/tasks") {
		queue = signalbox.QueueCommands
	}
	tasks, err := b.store.Waiting(b.t.Context(), queue, store.Cursor{}, 1)
	if err != nil || len(tasks) != 1 {
		b.t.Fatal(tasks, err)
	}
	return tasks[0].ID
}

// newPeople makes a closed director with an agent coder that has a task and a
// session, an agent other, and one caller of each sort.
func newPeople(t *testing.T) (*box, map[string][]edit) {
	t.Helper()
	var plans *fakeSchedules
	b, _ := newToolBox(t, withToken, withSchedules(&plans), withPages)
	plans.rows["sched-1"] = signalbox.Schedule{ID: "sched-1", Name: "nightly", Cron: "@daily", Agent: "coder", Prompt: "p", Enabled: true, Source: signalbox.ScheduleFromAPI}
	b.dir.Stop() // streams end once they have said what there is
	b.agent("coder", 1)
	b.agent("other", 1)
	b.do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, bearer(secret)).want(t, http.StatusCreated, nil)
	b.toolTask(`{}`, bearer(secret))
	if err := b.store.PutSession(t.Context(), signalbox.Session{}, signalbox.Session{ID: "talk-1", Agent: "coder", State: signalbox.SessionActive}, signalbox.Entry{Kind: signalbox.EventSession}); err != nil {
		t.Fatal(err)
	}
	show := map[string][]edit{"anon": nil, "static": {bearer(secret)}}
	token := func(who string, n identity.NewToken) identity.Known {
		n.Name = who
		got, secret, err := b.id.CreateToken(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		show[who] = []edit{bearer(secret)}
		return got
	}
	for _, s := range []signalbox.Scope{signalbox.ScopeRead, signalbox.ScopeSubmit, signalbox.ScopeCancel, signalbox.ScopeRelease, signalbox.ScopeTool, signalbox.ScopeTerminal, signalbox.ScopeSchedule, signalbox.ScopeAdmin} {
		token(string(s), identity.NewToken{Scopes: []signalbox.Scope{s}})
	}
	for _, name := range []string{"coder", "other"} {
		token(name, identity.NewToken{Agent: name})
	}
	b.user(identity.PutUser{ID: "ben"})
	token("user", identity.NewToken{User: "ben"})
	b.user(identity.PutUser{ID: "anna", Role: signalbox.RoleAdmin, Password: password})
	show["cookie"] = []edit{b.login("anna")}
	all := []signalbox.Scope{signalbox.ScopeRead, signalbox.ScopeSubmit, signalbox.ScopeCancel, signalbox.ScopeRelease, signalbox.ScopeTool, signalbox.ScopeTerminal, signalbox.ScopeSchedule}
	token("limited", identity.NewToken{Scopes: all, Agents: []string{"other"}})
	token("expired", identity.NewToken{Scopes: []signalbox.Scope{signalbox.ScopeAdmin}, Expires: time.Nanosecond})
	gone := token("revoked", identity.NewToken{Scopes: []signalbox.Scope{signalbox.ScopeAdmin}})
	if _, err := b.id.RevokeToken(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	return b, show
}

func (b *box) user(p identity.PutUser) {
	b.t.Helper()
	if _, _, err := b.id.PutUser(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
}

// login logs a user in and shows the cookie.
func (b *box) login(user string) edit {
	b.t.Helper()
	got := b.do("POST", "/api/login", `{"user":"`+user+`","password":"`+password+`"}`).want(b.t, http.StatusOK, nil)
	return cookie(got)
}

// cookie shows a login that an answer began: its cookies, and the key that a
// page keeps.
func cookie(r reply) edit {
	var begun api.LoggedIn
	_ = json.Unmarshal(r.body, &begun) // the answer may be none
	return func(q *http.Request) {
		if begun.Key != "" {
			q.Header.Set("Signalbox-Login", begun.Key)
		}
		for _, c := range r.Cookies() {
			q.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
	}
}

// token makes a token and returns its secret.
func (b *box) token(n identity.NewToken) string {
	b.t.Helper()
	_, secret, err := b.id.CreateToken(b.t.Context(), n)
	if err != nil {
		b.t.Fatal(err)
	}
	return secret
}

// Without a way in which it is narrowed, a route is closed to callers that are
// limited to some agents.
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
