package forward_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// A token made at one director is valid at another at once. A revoked token is refused at the other
// within two seconds, even while it is in use.
func TestTokensAcrossDirectors(t *testing.T) {
	r := apitest.NewCluster(t, 2, func(o *apitest.Options) { o.Config.Token = "the-static-token" })
	alfa, bravo := r.Members[0], r.Members[1]
	admin := apitest.Bearer("the-static-token")
	for range 3 {
		var made api.TokenCreated
		alfa.Request("POST", "/api/tokens", `{"name":"reader","scopes":["read"]}`, admin).Want(t, 201, &made)
		show := apitest.Bearer(made.Secret)
		bravo.Request("GET", "/status", "", show).Want(t, 200, nil)
		s := bravo.OpenStream("/api/events", show)
		alfa.Request("DELETE", "/api/tokens/"+made.ID, "", admin).Want(t, 204, nil)
		gone := time.Now()
		alfa.Request("GET", "/status", "", show).WantError(t, 401, signalbox.CodeUnauthorized)
		testkit.Wait(t, "the token is refused", func() bool { return bravo.Request("GET", "/status", "", show).StatusCode == 401 })
		refused := time.Since(gone)
		for ok := true; ok; _, ok = s.Read() {
			continue
		}
		if ended := time.Since(gone); refused > apitest.SoonAcrossDirectors || ended > apitest.SoonAcrossDirectors {
			t.Errorf("refused after %s, the stream ended after %s", refused, ended)
		}
	}
}

// A director that was idle for long does not use its old view.
func TestARevocationIsSeenByADirectorThatWasIdle(t *testing.T) {
	r := apitest.NewCluster(t, 2, func(o *apitest.Options) { o.Config.Token = "the-static-token" })
	alfa, bravo := r.Members[0], r.Members[1]
	known, token, err := alfa.Identity.CreateToken(t.Context(), identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	bravo.Request("GET", "/status", "", apitest.Bearer(token)).Want(t, 200, nil)
	if _, err := alfa.Identity.RevokeToken(t.Context(), known.ID); err != nil {
		t.Fatal(err)
	}
	time.Sleep(identity.MaxStaleness)
	answers := make(chan int, 20)
	for range cap(answers) { // concurrently: one reads the store, and the others wait for it
		go func() { answers <- bravo.Do("GET", "/status", "", apitest.Bearer(token)).StatusCode }()
	}
	for range cap(answers) {
		if status := <-answers; status != 401 && status != 429 { // 429: there were too many wrong ones to check them
			t.Errorf("status %d", status)
		}
	}
}

// A login at one director is valid at all, and so is a logout.
func TestLoginsAcrossDirectors(t *testing.T) {
	r := apitest.NewCluster(t, 2)
	alfa, bravo := r.Members[0], r.Members[1]
	alfa.AddUser(identity.PutUser{ID: "kim", Password: apitest.Password, Role: signalbox.RoleAdmin})
	begin := time.Now()
	closed := func() bool { return bravo.Request("GET", "/status", "").StatusCode == 401 }
	if !testkit.Within(apitest.SoonAcrossDirectors, closed) { // it is open until it knows the first admin
		t.Fatalf("open for %s", time.Since(begin))
	}
	login := alfa.Login("kim")
	var me api.Me
	if bravo.Request("GET", "/api/me", "", login).Want(t, 200, &me); me.ID != "kim" {
		t.Errorf("%+v", me)
	}
	bravo.Request("POST", "/api/logout", "", login).Want(t, 204, nil)
	out := time.Now()
	if !testkit.Within(apitest.SoonAcrossDirectors, func() bool { return alfa.Request("GET", "/api/me", "", login).StatusCode == 401 }) {
		t.Fatalf("logged in %s after the logout", time.Since(out))
	}
}

func TestDirectorsAreListed(t *testing.T) {
	r := apitest.NewCluster(t, 3, func(o *apitest.Options) { o.Config.Token = "the-static-token" })
	alfa, bravo, charlie := r.Members[0], r.Members[1], r.Members[2]
	admin := apitest.Bearer("the-static-token")
	r.Hold(bravo, "coder")
	r.Hold(bravo, "writer")
	charlie.ExpireLease()
	var out api.Directors
	alfa.Request("GET", "/api/directors", "", admin).Want(t, 200, &out)
	if len(out.Directors) < 2 {
		t.Fatalf("%+v", out)
	}
	a, b := out.Directors[0], out.Directors[1]
	if a.Instance != "alfa" || !a.This || !a.Alive || len(a.Agents) != 0 || a.URL != alfa.HTTP.URL || a.Version != "1.0.0" || a.LeaseExpires == nil {
		t.Errorf("%+v", a)
	}
	if b.Instance != "bravo" || b.This || !b.Alive || strings.Join(b.Agents, " ") != "coder writer" {
		t.Errorf("%+v", b)
	}
	for _, d := range out.Directors[2:] {
		if d.Alive || len(d.Agents) != 0 {
			t.Errorf("dead: %+v", d)
		}
	}
	narrow := apitest.Bearer(alfa.AddToken(identity.NewToken{Name: "narrow", Scopes: []signalbox.Scope{signalbox.ScopeRead}, Agents: []string{"writer"}}))
	if bravo.Request("GET", "/api/directors", "", narrow).Want(t, 200, &out); strings.Join(out.Directors[1].Agents, " ") != "writer" {
		t.Errorf("%+v", out.Directors[1])
	}
	if n := alfa.Server.LiveDirectors(); n != 2 {
		t.Errorf("%d live", n)
	}
	if n := apitest.New(t).Server.LiveDirectors(); n != 1 {
		t.Errorf("alone: %d live", n)
	}
}

func TestDoctorLooksAtTheDirectors(t *testing.T) {
	r := apitest.NewCluster(t, 2)
	alfa, bravo := r.Members[0], r.Members[1]
	checks := func() (all []api.Check) {
		var out api.Doctor
		alfa.Request("GET", "/api/doctor", "").Want(t, 200, &out)
		for _, c := range out.Checks {
			if c.Area == "directors" {
				all = append(all, c)
			}
		}
		return all
	}
	if all := checks(); len(all) != 1 || all[0].State != "ok" || all[0].Text != "2 live: alfa, bravo; this is alfa" {
		t.Errorf("%+v", all)
	}
	bravo.Peers.Row.Version = "1.0.1"
	bravo.Beat()
	if all := checks(); len(all) != 2 || all[1].State != "warn" || !strings.Contains(all[1].Text, "bravo runs version 1.0.1") {
		t.Errorf("%+v", all)
	}
	alfa.Peers.LeaseOver.Store(true)
	if all := checks(); all[len(all)-1].State != "fail" || !strings.Contains(all[len(all)-1].Text, "has expired") {
		t.Errorf("%+v", all)
	}
	alone := apitest.New(t)
	var out api.Doctor
	alone.Do("GET", "/api/doctor", "").Want(t, 200, &out)
	for _, c := range out.Checks {
		if c.Area == "directors" {
			t.Errorf("alone: %+v", c)
		}
	}
}

// A director with an expired lease, or without its store, is not ready for a load balancer.
func TestReadyOnlyWithALeaseAndAStore(t *testing.T) {
	r := apitest.NewCluster(t, 2)
	alfa := r.Members[0]
	alfa.Request("GET", "/readyz", "").Want(t, 200, nil)
	alfa.Peers.LeaseOver.Store(true)
	e := alfa.Request("GET", "/readyz", "").WantError(t, 503, signalbox.CodeUnavailable)
	if !strings.Contains(e.Message, "lease of this director (alfa) has expired") {
		t.Errorf("%+v", e)
	}
	alfa.Peers.LeaseOver.Store(false)
	alfa.View.Away(true)
	alfa.Request("GET", "/readyz", "").WantError(t, 503, signalbox.CodeUnavailable)
	alfa.View.Away(false)
	alfa.Request("GET", "/readyz", "").Want(t, 200, nil)
	alfa.Request("GET", "/healthz", "").Want(t, 200, nil)
}

// A director answers under the host name that it advertises to the others.
func TestADirectorAnswersUnderTheNameThatItAdvertises(t *testing.T) {
	named := &apitest.Peers{Row: store.Director{ID: "delta", URL: "http://delta.internal:8080"}}
	b := apitest.New(t, func(o *apitest.Options) { o.Config.Peers = deadPeers{named} })
	b.Do("GET", "/healthz", "", func(r *http.Request) { r.Host = "delta.internal:8080" }).Want(t, 200, nil)
	b.Do("GET", "/healthz", "", func(r *http.Request) { r.Host = "echo.internal:8080" }).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
}

// deadPeers has no other living directors.
type deadPeers struct{ *apitest.Peers }

func (deadPeers) Others() []store.Director { return nil }

var _ forward.Peers = deadPeers{}

// The executor of another director is shown with the state of its lease.
func TestExecutorsOfOtherDirectors(t *testing.T) {
	r := apitest.NewCluster(t, 2)
	alfa, bravo := r.Members[0], r.Members[1]
	for _, name := range []string{"commands@alfa", "commands@bravo", "commands@gone"} {
		if err := alfa.View.PutAgent(t.Context(), signalbox.Agent{Name: name, Kind: "commands", Slots: 10, Source: signalbox.AgentInternal}, signalbox.Entry{Kind: signalbox.EventAgentAdded, Agent: name}); err != nil {
			t.Fatal(err)
		}
	}
	state := func() map[string]string {
		var out api.Agents
		alfa.Request("GET", "/api/agents", "").Want(t, 200, &out)
		all := map[string]string{}
		for _, x := range out.Executors {
			all[x.Name] = x.State + ": " + x.Message
		}
		return all
	}
	if got := state(); got["commands@bravo"] != "idle: " || got["commands@gone"] != "down: its director has died or left" || !strings.HasPrefix(got["commands@alfa"], "down: not heard") {
		t.Errorf("%v", got)
	}
	// Runs at another director count; doctor checks only this director's own executor.
	for _, name := range []string{"commands@alfa", "commands@bravo"} {
		alfa.Live.Set(engine.LiveAgent{Agent: signalbox.Agent{Name: name, Kind: "commands", Slots: 10}, Up: true})
	}
	got, err := alfa.Engine.Submit(t.Context(), engine.NewTask{Mode: signalbox.ModeTool, Tool: "report", Arguments: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	row, err := bravo.View.Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(row, func(a signalbox.Agent) bool { return a.Name == "commands@bravo" })
	if c := bravo.Claim(row[at]); c.ID != got.Task.ID {
		t.Fatalf("claimed %s", c.ID)
	}
	var status api.Status
	if alfa.Request("GET", "/status", "").Want(t, 200, &status); status.Tools == nil || status.Tools.Running != 1 {
		t.Errorf("%+v", status.Tools)
	}
	bravo.ExpireLease()
	if got := state(); got["commands@bravo"] != "down: its director has died or left" {
		t.Errorf("%v", got)
	}
}

// A program that listens at the address of a dead director, whose lease has not expired yet, gets
// no forwarded requests, and its answers are not accepted.
func TestAttackASquatterOfADirectorsPort(t *testing.T) {
	r := apitest.NewCluster(t, 2, apitest.WithToken)
	alfa, bravo := r.Members[0], r.Members[1]
	token := apitest.Bearer(apitest.Secret)
	coder := r.Hold(bravo, "coder")
	var made struct {
		QueueID string `json:"queue_id"`
	}
	alfa.Request("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, token).Want(t, 201, &made)
	bravo.Runs.Print(bravo.Run(coder).ID, "Reading …\n")
	var seen []string
	var mu sync.Mutex
	var squatter http.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		mu.Lock()
		seen = append(seen, fmt.Sprint(q.Method, " ", q.URL, " ", q.Header, " ", string(body)))
		mu.Unlock()
		_, _ = io.WriteString(w, `{"queue_id":"`+made.QueueID+`","state":"working","text":"forged","next":6,"mac":"00"}`)
	})
	bravo.Serve.Store(&squatter)
	for _, path := range []string{"/api/queue/" + made.QueueID + "/output", "/api/agents/coder/terminal/token"} {
		got := alfa.Request("GET", path, "", token)
		if bytes.Contains(got.Body, []byte("forged")) {
			t.Errorf("%s: the forged answer is believed: %s", path, got.Body)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 {
		t.Fatal("the squatter was not asked for a proof")
	}
	for _, q := range seen {
		if !strings.HasPrefix(q, "POST "+handshake.Path+" ") || strings.Contains(q, apitest.Secret) || strings.Contains(q, made.QueueID) {
			t.Errorf("the squatter was sent %s", q)
		}
	}
}
