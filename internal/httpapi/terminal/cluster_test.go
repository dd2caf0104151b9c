package terminal_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// newTermOthers makes two directors. The second holds an agent that offers terminals; the fixture
// is the first.
func newTermOthers(t *testing.T) (*apitest.Cluster, *fixture) {
	t.Helper()
	r := apitest.NewCluster(t, 2, func(o *apitest.Options) { o.Config.Token, o.Config.Terminal = "the-static-token", true })
	alfa, bravo := r.Members[0], r.Members[1]
	b := &fixture{Fixture: alfa.Fixture}
	root := t.TempDir()
	b.startAgent(agentd.Config{
		Name: "coder", Kind: "command", Token: "agent-secret", Terminal: true, KillGrace: 200 * time.Millisecond,
		DataDir: filepath.Join(root, "data"), WorkDir: root, Home: root, Runner: runner.Options{Command: []string{"true"}},
		Environ: []string{"PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh", "PS1=$ "},
	})
	bravo.Live.Set(engine.LiveAgent{Agent: b.row, Up: true, Terminal: true})
	bravo.Beat("coder")
	var known identity.Known
	var err error
	if known, b.user, err = alfa.Identity.CreateToken(t.Context(), identity.NewToken{Name: "ops", Scopes: []signalbox.Scope{signalbox.ScopeTerminal, signalbox.ScopeRead}}); err != nil {
		t.Fatal(err)
	}
	b.userID = known.ID
	return r, b
}

// A ticket is requested at one director and used at another. Both forward to the director that
// dispatches to the agent, which knows the open terminals.
func TestATerminalThroughAnotherDirector(t *testing.T) {
	r, b := newTermOthers(t)
	bravo := r.Members[1]
	c := b.open(b.user)
	c.keys("echo he\"\"llo\r")
	c.shows("hello")
	if at := (&fixture{Fixture: bravo.Fixture}).shown(); len(at) != 1 || at[0].By != "service ops" {
		t.Errorf("its holder shows %+v", at)
	}
	for _, m := range r.Members { // each refuses a second one
		e := m.Do("POST", "/api/agents/coder/terminal", "", b.as(b.user)).WantError(t, http.StatusConflict, signalbox.CodeConflict)
		if !strings.Contains(e.Message, "close that one first") {
			t.Errorf("%+v", e)
		}
	}
	if _, err := b.Identity.RevokeToken(t.Context(), b.userID); err != nil { // at the director that only forwards
		t.Fatal(err)
	}
	begin := time.Now()
	if m := c.message(); m.Type != "error" || !strings.Contains(m.Reason, "no longer valid") {
		t.Errorf("told %+v", m)
	}
	if took := time.Since(begin); took > apitest.SoonAcrossDirectors {
		t.Errorf("it ended %s after its token was revoked", took)
	}
	c.closed(websocket.StatusPolicyViolation)
	b.empty()
}

// A ticket of the holder is valid at any director, once.
func TestATicketIsGoodAtAnyDirector(t *testing.T) {
	r, b := newTermOthers(t)
	ticket := (&fixture{Fixture: r.Members[1].Fixture}).ticket(b.user)
	c := b.connect(ticket)
	if m := c.message(); m.Type != "ready" {
		t.Fatalf("%+v", m)
	}
	b.connect(ticket).refused("is not valid")
	c.keys("exit\r")
	if m := c.message(); m.Type != "exit" {
		t.Errorf("%+v", m)
	}
	b.empty()
}

func TestATerminalOfADirectorThatDoesNotAnswer(t *testing.T) {
	r, b := newTermOthers(t)
	bravo := r.Members[1]
	bravo.Kill()
	e := b.Do("POST", "/api/agents/coder/terminal", "", b.as(b.user)).WantError(t, http.StatusServiceUnavailable, signalbox.CodeUnavailable)
	if !strings.Contains(e.Message, "agent coder is at director bravo ("+bravo.HTTP.URL+"), which does not answer") || !strings.Contains(e.Hint, "takes over") || e.RetryAfter == 0 {
		t.Errorf("%+v", e)
	}
	if _, resp, err := b.dial("coder", nil); err == nil || resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("dial: %v", err)
	}
	bravo.ExpireLease()
	c := b.open(b.user) // no director holds the agent now
	c.tell(api.TerminalMessage{Type: "resize", Cols: 90, Rows: 20})
	c.keys("exit\r")
	if m := c.message(); m.Type != "exit" {
		t.Errorf("%+v", m)
	}
	b.empty()
}
