package httpapi_test

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
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// seenWithin bounds what is promised within two seconds, on a machine that is
// busy.
const seenWithin = 10 * time.Second

// What is made at one director is good at another at once, and what is taken
// away there is refused here within two seconds, also where it is in use.
func TestTokensAcrossDirectors(t *testing.T) {
	r := newOthers(t, 2, func(o *options) { o.director.Token = "the-static-token" })
	alfa, bravo := r.all[0], r.all[1]
	admin := bearer("the-static-token")
	for range 3 {
		var made api.TokenCreated
		alfa.over("POST", "/api/tokens", `{"name":"reader","scopes":["read"]}`, admin).want(t, 201, &made)
		show := bearer(made.Secret)
		bravo.over("GET", "/status", "", show).want(t, 200, nil)
		s := bravo.open("/api/events", show)
		alfa.over("DELETE", "/api/tokens/"+made.ID, "", admin).want(t, 204, nil)
		gone := time.Now()
		alfa.over("GET", "/status", "", show).wantError(t, 401, signalbox.CodeUnauthorized)
		for bravo.over("GET", "/status", "", show).StatusCode != 401 {
			time.Sleep(20 * time.Millisecond)
		}
		refused := time.Since(gone)
		for ok := true; ok; _, ok = s.next() {
			continue
		}
		if ended := time.Since(gone); refused > seenWithin || ended > seenWithin {
			t.Errorf("refused after %s, the stream ended after %s", refused, ended)
		}
	}
}

// A director that nobody has asked for long does not go by what it knew.
func TestARevocationIsSeenByADirectorThatWasIdle(t *testing.T) {
	r := newOthers(t, 2, func(o *options) { o.director.Token = "the-static-token" })
	alfa, bravo := r.all[0], r.all[1]
	known, token, err := alfa.id.CreateToken(t.Context(), identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	bravo.over("GET", "/status", "", bearer(token)).want(t, 200, nil)
	if _, err := alfa.id.RevokeToken(t.Context(), known.ID); err != nil {
		t.Fatal(err)
	}
	time.Sleep(identity.UnseenFor)
	answers := make(chan int, 20)
	for range cap(answers) { // at once: one of them reads, and the others wait for it
		go func() { answers <- bravo.do("GET", "/status", "", bearer(token)).StatusCode }()
	}
	for range cap(answers) {
		if status := <-answers; status != 401 && status != 429 { // so many wrong ones are not even looked at
			t.Errorf("status %d", status)
		}
	}
}

// Whoever logs in at one director is logged in at all, and logged out.
func TestLoginsAcrossDirectors(t *testing.T) {
	r := newOthers(t, 2)
	alfa, bravo := r.all[0], r.all[1]
	alfa.user(identity.PutUser{ID: "kim", Password: password, Role: signalbox.RoleAdmin})
	begin := time.Now()
	for bravo.over("GET", "/status", "").StatusCode != 401 { // it is open until it has heard of the first admin
		if time.Since(begin) > seenWithin {
			t.Fatalf("open for %s", time.Since(begin))
		}
		time.Sleep(20 * time.Millisecond)
	}
	login := alfa.login("kim")
	var me api.Me
	if bravo.over("GET", "/api/me", "", login).want(t, 200, &me); me.ID != "kim" {
		t.Errorf("%+v", me)
	}
	bravo.over("POST", "/api/logout", "", login).want(t, 204, nil)
	out := time.Now()
	for alfa.over("GET", "/api/me", "", login).StatusCode != 401 {
		if time.Since(out) > seenWithin {
			t.Fatalf("logged in %s after the logout", time.Since(out))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestDirectorsAreListed(t *testing.T) {
	r := newOthers(t, 3, func(o *options) { o.director.Token = "the-static-token" })
	alfa, bravo, charlie := r.all[0], r.all[1], r.all[2]
	admin := bearer("the-static-token")
	r.holds(bravo, "coder")
	r.holds(bravo, "writer")
	charlie.expire()
	var out api.Directors
	alfa.over("GET", "/api/directors", "", admin).want(t, 200, &out)
	if len(out.Directors) < 2 {
		t.Fatalf("%+v", out)
	}
	a, b := out.Directors[0], out.Directors[1]
	if a.Instance != "alfa" || !a.This || !a.Alive || len(a.Agents) != 0 || a.URL != alfa.server.URL || a.Version != "1.0.0" || a.LeaseExpires == nil {
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
	narrow := bearer(alfa.token(identity.NewToken{Name: "narrow", Scopes: []signalbox.Scope{signalbox.ScopeRead}, Agents: []string{"writer"}}))
	if bravo.over("GET", "/api/directors", "", narrow).want(t, 200, &out); strings.Join(out.Directors[1].Agents, " ") != "writer" {
		t.Errorf("%+v", out.Directors[1])
	}
	if n := alfa.dir.LiveDirectors(); n != 2 {
		t.Errorf("%d live", n)
	}
	if n := newBox(t).dir.LiveDirectors(); n != 1 {
		t.Errorf("alone: %d live", n)
	}
}

func TestDoctorLooksAtTheDirectors(t *testing.T) {
	r := newOthers(t, 2)
	alfa, bravo := r.all[0], r.all[1]
	checks := func() (all []api.Check) {
		var out api.Doctor
		alfa.over("GET", "/api/doctor", "").want(t, 200, &out)
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
	bravo.peers.self.Version = "1.0.1"
	bravo.beat()
	if all := checks(); len(all) != 2 || all[1].State != "warn" || !strings.Contains(all[1].Text, "bravo runs version 1.0.1") {
		t.Errorf("%+v", all)
	}
	alfa.peers.over.Store(true)
	if all := checks(); all[len(all)-1].State != "fail" || !strings.Contains(all[len(all)-1].Text, "is over") {
		t.Errorf("%+v", all)
	}
	alone := newBox(t)
	var out api.Doctor
	alone.do("GET", "/api/doctor", "").want(t, 200, &out)
	for _, c := range out.Checks {
		if c.Area == "directors" {
			t.Errorf("alone: %+v", c)
		}
	}
}

// A director whose lease is over, or that does not reach its store, is not for a
// balancer to send work to.
func TestReadyOnlyWithALeaseAndAStore(t *testing.T) {
	r := newOthers(t, 2)
	alfa := r.all[0]
	alfa.over("GET", "/readyz", "").want(t, 200, nil)
	alfa.peers.over.Store(true)
	e := alfa.over("GET", "/readyz", "").wantError(t, 503, signalbox.CodeUnavailable)
	if !strings.Contains(e.Message, "lease of this director (alfa) is over") {
		t.Errorf("%+v", e)
	}
	alfa.peers.over.Store(false)
	alfa.view.Away(true)
	alfa.over("GET", "/readyz", "").wantError(t, 503, signalbox.CodeUnavailable)
	alfa.view.Away(false)
	alfa.over("GET", "/readyz", "").want(t, 200, nil)
	alfa.over("GET", "/healthz", "").want(t, 200, nil)
}

// A director answers under the name by which the others know it.
func TestADirectorAnswersUnderTheNameThatItAdvertises(t *testing.T) {
	named := &fakePeers{self: store.Director{ID: "delta", URL: "http://delta.internal:8080"}}
	b := newBox(t, func(o *options) { o.director.Peers = deadPeers{named} })
	b.do("GET", "/healthz", "", host("delta.internal:8080")).want(t, 200, nil)
	b.do("GET", "/healthz", "", host("echo.internal:8080")).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
}

// deadPeers has nobody beside itself.
type deadPeers struct{ *fakePeers }

func (deadPeers) Others() []store.Director { return nil }

var _ httpapi.Peers = deadPeers{}

// The executor of another director is shown as its lease says.
func TestExecutorsOfOtherDirectors(t *testing.T) {
	r := newOthers(t, 2)
	alfa, bravo := r.all[0], r.all[1]
	for _, name := range []string{"commands@alfa", "commands@bravo", "commands@gone"} {
		if err := alfa.view.PutAgent(t.Context(), signalbox.Agent{Name: name, Kind: "commands", Slots: 10, Source: signalbox.AgentInternal}, signalbox.Entry{Kind: signalbox.EventAgentAdded, Agent: name}); err != nil {
			t.Fatal(err)
		}
	}
	state := func() map[string]string {
		var out api.Agents
		alfa.over("GET", "/api/agents", "").want(t, 200, &out)
		all := map[string]string{}
		for _, x := range out.Executors {
			all[x.Name] = x.State + ": " + x.Message
		}
		return all
	}
	if got := state(); got["commands@bravo"] != "idle: " || got["commands@gone"] != "down: its director has died or left" || !strings.HasPrefix(got["commands@alfa"], "down: not heard") {
		t.Errorf("%v", got)
	}
	// What runs at another director counts; doctor looks at this one's own.
	for _, name := range []string{"commands@alfa", "commands@bravo"} {
		alfa.live.set(engine.LiveAgent{Agent: signalbox.Agent{Name: name, Kind: "commands", Slots: 10}, Up: true})
	}
	got, err := alfa.engine.Submit(t.Context(), engine.NewTask{Mode: signalbox.ModeTool, Tool: "report", Arguments: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	row, err := bravo.view.Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(row, func(a signalbox.Agent) bool { return a.Name == "commands@bravo" })
	if c := bravo.claim(row[at]); c.ID != got.Task.ID {
		t.Fatalf("claimed %s", c.ID)
	}
	var status api.Status
	if alfa.over("GET", "/status", "").want(t, 200, &status); status.Tools == nil || status.Tools.Running != 1 {
		t.Errorf("%+v", status.Tools)
	}
	bravo.expire()
	if got := state(); got["commands@bravo"] != "down: its director has died or left" {
		t.Errorf("%v", got)
	}
}

// Who listens where a director was that has died, and whose lease still holds, gets
// nothing of what is passed on to it, and what it answers is not believed.
func TestAttackASquatterOfADirectorsPort(t *testing.T) {
	r := newOthers(t, 2, withToken)
	alfa, bravo := r.all[0], r.all[1]
	token := bearer(secret)
	coder := r.holds(bravo, "coder")
	var made struct {
		QueueID string `json:"queue_id"`
	}
	alfa.over("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, token).want(t, 201, &made)
	bravo.runs.print(bravo.work(coder).ID, "Reading …\n")
	var seen []string
	var mu sync.Mutex
	var squatter http.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		mu.Lock()
		seen = append(seen, fmt.Sprint(q.Method, " ", q.URL, " ", q.Header, " ", string(body)))
		mu.Unlock()
		_, _ = io.WriteString(w, `{"queue_id":"`+made.QueueID+`","state":"working","text":"forged","next":6,"mac":"00"}`)
	})
	bravo.serve.Store(&squatter)
	for _, path := range []string{"/api/queue/" + made.QueueID + "/output", "/api/agents/coder/terminal/token"} {
		got := alfa.over("GET", path, "", token)
		if bytes.Contains(got.body, []byte("forged")) {
			t.Errorf("%s: the forged answer is believed: %s", path, got.body)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 {
		t.Fatal("the squatter was not asked for a proof")
	}
	for _, q := range seen {
		if !strings.HasPrefix(q, "POST "+handshake.Path+" ") || strings.Contains(q, secret) || strings.Contains(q, made.QueueID) {
			t.Errorf("the squatter was sent %s", q)
		}
	}
}
