package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// knock requests a route without a token, as another user of the machine
// would.
func (b *box) knock(method, url, body string) int {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.ctx(), method, url, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := stranger.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// forAll are the routes that need no token: health, the login, the pages'
// files, and their description. A terminal needs a ticket of its own, and a
// proof is given only to a client that proves itself.
var forAll = []string{
	"healthz", "readyz", "login", "useLink", "loginPage", "loginScript", "home", "page", "asset", "openapi", "terminal", "prove",
}

// closedTo checks that every other route of a director refuses a client
// without a token.
func (b *box) closedTo(url string) {
	b.t.Helper()
	for _, route := range api.Routes() {
		if slices.Contains(forAll, route.Name) {
			continue
		}
		path := strings.NewReplacer("{id}", "x", "{name}", "demo", "{part}", "x", "{tool}", "x", "{path...}", "x", "{$}", "").Replace(route.Path)
		if code := b.knock(route.Method, url+path, "{}"); code != http.StatusUnauthorized {
			b.t.Errorf("%s %s: %d, want 401", route.Method, path, code)
		}
	}
	for _, path := range []string{"/api/login", "/api/login/once", "/.well-known/signalbox/prove"} {
		if code := b.knock("POST", url+path, `{"user": "owner", "password": "owner owner owner", "code": "x"}`); code/100 != 4 {
			b.t.Errorf("%s accepts a request without a token: %d", path, code)
		}
	}
}

// Signalbox belongs to the user who starts it: another user of the machine has
// no access, and the owner needs no flag.
func TestADirectorIsItsOwners(t *testing.T) {
	for _, role := range []string{"up", "director"} {
		t.Run(role, func(t *testing.T) {
			b := newBox(t)
			args := []string{}
			if role == "up" {
				args = []string{"--agents", "demo"}
			}
			p := b.serve(b.server(role, args)...)
			if role == "director" {
				b.agent("demo", p.url)
			} else {
				p.prints("Submit a prompt")
			}
			b.closedTo(p.url)
			for _, path := range []string{"/healthz", "/readyz", "/login"} {
				if code := b.knock("GET", p.url+path, ""); code != http.StatusOK {
					t.Errorf("%s: %d", path, code)
				}
			}
			b.want(0, "submit", "--wait", "say hello")
			info, err := os.Stat(filepath.Join(b.vars["SIGNALBOX_HOME"], "token"))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the token: %v, %v", info, err)
			}
			// From another user's home no director is found, and nothing is sent
			// anywhere.
			home := b.vars["SIGNALBOX_HOME"]
			b.vars["SIGNALBOX_HOME"] = b.file("stranger/x", "", 0o600) + "-home"
			if got := b.want(7, "submit", "run this"); !strings.Contains(got.err, "signalbox up") {
				t.Errorf("it says %q", got.err)
			}
			b.want(4, "submit", "--director", p.url, "run this")
			b.want(4, "tokens", "create", "evil", "--scope", "admin", "--director", p.url)
			b.vars["SIGNALBOX_HOME"] = home
			b.want(0, "status")
			// The token is the same after a restart.
			before := b.token()
			p.stop()
			b.director()
			if b.token() != before {
				t.Error("each start makes another token")
			}
			b.want(0, "status")
		})
	}
}

// An agent's own port is closed too, without configuration: it has a token of
// its own, and at the director a token for this agent only.
func TestAnAgentIsItsDirectors(t *testing.T) {
	b := newBox(t)
	director := b.director()
	agent := b.agent("coder", director.url)
	for _, route := range []string{"GET /status", "GET /history", "POST /task", "POST /shutdown"} {
		method, path, _ := strings.Cut(route, " ")
		if code := b.knock(method, agent.url+path, `{"prompt":"id"}`); code != http.StatusUnauthorized {
			t.Errorf("%s: %d, want 401", route, code)
		}
	}
	b.want(0, "submit", "--wait", "--agent", "coder", "say hello")
	kept := parse[struct{ Token string }](t, b.read(filepath.Join(b.root, "agents-coder", "agents", "coder", "director-token.json")))
	if kept.Token == b.token() || !strings.HasPrefix(kept.Token, "sbxa_") {
		t.Error("the agent shows the token of the director's owner")
	}
	b.want(4, "pause", "--token", kept.Token)
}

// A standalone scheduler has a token too.
func TestASchedulerIsItsOwners(t *testing.T) {
	b := newBox(t)
	b.director()
	s := b.serve("scheduler", "--addr", "127.0.0.1:0", "--data", filepath.Join(b.root, "scheduler"),
		"--config", b.file("jobs.yaml", "jobs:\n  - {name: nightly, schedule: \"0 3 * * *\", prompt: say hello}\n", 0o600))
	for _, route := range []string{"POST /trigger/nightly", "GET /status", "GET /metrics"} {
		method, path, _ := strings.Cut(route, " ")
		if code := b.knock(method, s.url+path, ""); code != http.StatusUnauthorized {
			t.Errorf("%s: %d, want 401", route, code)
		}
	}
	if code := b.knock("GET", s.url+"/healthz", ""); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
	if code, said := b.ask("POST", s.url+"/trigger/nightly", ""); code != http.StatusOK && code != http.StatusCreated && code != http.StatusAccepted {
		t.Errorf("its owner: %d %s", code, said)
	}
	b.want(0, "scheduler", "trigger", "nightly")
}

// An open director must be requested by a flag, and reports what that means.
func TestAnOpenDirectorIsAskedFor(t *testing.T) {
	b := newBox(t)
	p := b.director("--open")
	p.prints("every user and every program of this host")
	if code := b.knock("POST", p.url+"/api/queue/task", taskBody); code != http.StatusCreated {
		t.Errorf("an open director answers %d", code)
	}
	b.refuses(1, []string{"director", "--open", "--addr", "0.0.0.0:0", "--data", filepath.Join(b.root, "other")}, "token")
	b.refuses(1, []string{"agent", "--kind", "demo", "--addr", "0.0.0.0:0", "--agent-token", "fifteen-letters", "--data", filepath.Join(b.root, "agent")}, "can be guessed")
	b.refuses(1, []string{"director", "--open", "--token", "a-token-of-some-length-0123456789", "--data", filepath.Join(b.root, "third")}, "leave one of them out")
}

// A standalone gateway runs tools for its owner, whose command line finds the
// token for the gateway that it is given.
func TestAGatewayIsItsOwners(t *testing.T) {
	b := newBox(t)
	file, _ := b.tools()
	g := b.serve("gateway", "--tools", file, "--addr", "127.0.0.1:0")
	for _, route := range []string{"GET /api/tools", "POST /api/tools/held__greet/call", "POST /mcp", "GET /mcp", "GET /metrics", "GET /api/tools/queues"} {
		method, path, _ := strings.Cut(route, " ")
		if code := b.knock(method, g.url+path, "{}"); code != http.StatusUnauthorized {
			t.Errorf("%s: %d, want 401", route, code)
		}
	}
	b.tool(g.url, "held__greet")
	b.want(0, "tools", "call", "held__greet", "--director", g.url)
	home := b.vars["SIGNALBOX_HOME"]
	b.vars["SIGNALBOX_HOME"] = filepath.Join(b.root, "stranger")
	b.want(4, "tools", "--director", g.url)
	b.vars["SIGNALBOX_HOME"] = home
	g.stop()
	open := b.serve("gateway", "--tools", file, "--addr", "127.0.0.1:0", "--open")
	if code := b.knock("GET", open.url+"/api/tools", ""); code != http.StatusOK {
		t.Errorf("an open gateway answers %d", code)
	}
	b.refuses(1, []string{"gateway", "--tools", file, "--open", "--addr", "0.0.0.0:0"}, "token")
}
