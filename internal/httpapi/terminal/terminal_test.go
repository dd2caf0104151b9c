package terminal_test

import (
	"cmp"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/httpapi/terminal"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// The whole path: ticket, WebSocket, agent, shell and back.
func TestTerminal(t *testing.T) {
	b := newFixture(t)
	c := b.open(b.user)
	c.keys("stty size; echo he\"\"llo\r")
	c.shows("17 91")
	c.shows("hello")
	c.tell(api.TerminalMessage{Type: "resize", Cols: 120, Rows: 40})
	c.keys("stty size\r")
	c.shows("40 120")
	if at := b.daemon.Status().Terminals; len(at) != 1 || at[0].By != "service ops" {
		t.Errorf("the agent knows of %+v", at)
	}
	if at := b.shown(); len(at) != 1 || at[0].By != "service ops" || at[0].Since.IsZero() {
		t.Errorf("GET /api/agents shows %+v", at)
	}
	c.keys("exit 3\r")
	if m := c.message(); m.Type != "exit" || m.Code != 3 || m.Reason != "exit status 3" {
		t.Errorf("%+v", m)
	}
	c.closed(websocket.StatusNormalClosure)
	b.empty()

	rows := b.audited()
	if len(rows) != 2 || rows[0].Action != "open" || rows[1].Action != "close" {
		t.Fatalf("audit rows %+v", rows)
	}
	for _, row := range rows {
		if row.Principal != "service:ops" || row.AgentName != "coder" || row.Result != "success" || row.IPAddress != "127.0.0.1" {
			t.Errorf("audit row %+v", row)
		}
	}
	if d := rows[1].Details; !strings.Contains(d, `"bytes_out":`) || !strings.Contains(d, `"duration_seconds":`) || strings.Contains(d, `"bytes_in":0,`) {
		t.Errorf("details %s", d)
	}
}

func TestTerminalTicketsOpenOneThing(t *testing.T) {
	b := newFixture(t)
	b.user2()
	other, _, err := b.dial("nobody", nil)
	if err != nil {
		t.Fatal(err)
	}
	wrong := b.ticket(b.user)
	other.tell(api.TerminalMessage{Type: "auth", Token: wrong})
	other.refused("the agent that it was made for")
	b.connect(wrong).refused("once") // it was used up

	used := b.ticket(b.user)
	c := b.connect(used)
	c.message()
	b.connect(used).refused("once")
	c.conn.CloseNow()
	b.empty()

	b.Server.Terminals().SetLimits(-time.Second, 0, 0, 0)
	late := b.Do("POST", "/api/agents/coder/terminal", "", b.as(b.user))
	var out api.TerminalTicket
	late.Want(t, http.StatusCreated, &out)
	b.connect(out.Ticket).refused("within 30 s")
	for _, none := range []string{"", "x", strings.Repeat("A", 43)} {
		b.connect(none).refused("ticket")
	}
}

// user2 adds another principal with a login.
func (b *fixture) user2() {
	b.T.Helper()
	b.Fixture.AddUser(identity.PutUser{ID: "ann", Password: apitest.Password, Role: signalbox.RoleAdmin})
}

// In a browser with a login only tickets of that user are valid.
func TestTerminalTicketIsOfTheLogin(t *testing.T) {
	b := newFixture(t)
	b.user2()
	login := b.Login("ann")
	r, _ := http.NewRequest("GET", b.HTTP.URL, nil)
	login(r)
	c, _, err := b.dial("coder", http.Header{"Cookie": r.Header["Cookie"]})
	if err != nil {
		t.Fatal(err)
	}
	c.tell(api.TerminalMessage{Type: "auth", Token: b.ticket(b.user)})
	c.refused("ticket")

	var out api.TerminalTicket
	b.Do("POST", "/api/agents/coder/terminal", "", login).Want(t, http.StatusCreated, &out)
	if c, _, err = b.dial("coder", http.Header{"Cookie": r.Header["Cookie"], "Origin": {b.HTTP.URL}}); err != nil {
		t.Fatal(err)
	}
	c.tell(api.TerminalMessage{Type: "auth", Token: out.Ticket})
	if m := c.message(); m.Type != "ready" {
		t.Errorf("%+v", m)
	}
	if at := b.shown(); len(at) != 1 || at[0].By != "user ann" {
		t.Errorf("shown %+v", at)
	}
}

func TestTerminalRefusals(t *testing.T) {
	b := newFixture(t)
	post := func(agent string) apitest.Reply {
		return b.Do("POST", "/api/agents/"+agent+"/terminal", "", b.as(b.user))
	}
	post("nobody").WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	b.Live.Set(engine.LiveAgent{Agent: b.row, Up: true})
	if e := post("coder").WantError(t, http.StatusNotImplemented, signalbox.CodeUnsupported); !strings.Contains(e.Hint, "--terminal") {
		t.Errorf("no cure: %+v", e)
	}
	b.Live.Set(engine.LiveAgent{Agent: b.row, Message: "connection refused"})
	post("coder").WantError(t, http.StatusServiceUnavailable, signalbox.CodeAgentDown)

	b.Do("GET", "/api/agents/coder/terminal", "").WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	if _, resp, err := b.dial("coder", http.Header{"Origin": {"http://evil.example"}}); err == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("another site got in: %v, %v", resp, err)
	}
	off := apitest.New(t)
	off.AddAgent("coder", 1)
	if e := off.Do("POST", "/api/agents/coder/terminal", "").WantError(t, http.StatusNotImplemented, signalbox.CodeUnsupported); !strings.Contains(e.Hint, "--terminal") {
		t.Errorf("no cure: %+v", e)
	}
	off.Do("GET", "/api/agents/nobody/terminal", "").WantError(t, http.StatusNotImplemented, signalbox.CodeUnsupported)
}

func TestTerminalFirstMessage(t *testing.T) {
	b := newFixture(t)
	b.Server.Terminals().SetLimits(0, 100*time.Millisecond, 0, 0)
	c, _, err := b.dial("coder", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.refused("no ticket arrived within 100ms")
	b.Server.Terminals().SetLimits(0, apitest.Timeout, 0, 0)
	for name, first := range map[string]func(*console){
		"keys":    func(c *console) { c.keys("ls\r") },
		"resize":  func(c *console) { c.tell(api.TerminalMessage{Type: "resize", Cols: 1, Rows: 1}) },
		"no JSON": func(c *console) { c.write(websocket.MessageText, []byte("hello")) },
	} {
		t.Run(name, func(t *testing.T) {
			if c, _, err = b.dial("coder", nil); err != nil {
				t.Fatal(err)
			}
			first(c)
			c.refused("first message")
		})
	}
	if c, _, err = b.dial("coder", nil); err != nil {
		t.Fatal(err)
	}
	_ = c.conn.Write(t.Context(), websocket.MessageText, make([]byte, 65<<10))
	if m, err := c.next(); err == nil {
		t.Errorf("a huge first message was answered %+v", m)
	}
}

// Connections without a ticket cannot lock out those with one.
func TestTerminalConnectionsWithoutTicketAreBounded(t *testing.T) {
	b := newFixture(t)
	var oldest *console
	for range terminal.MaxUnproved {
		c, _, err := b.dial("coder", nil)
		if err != nil {
			t.Fatal(err)
		}
		oldest = cmp.Or(oldest, c)
	}
	c := b.open(b.user) // the oldest connection was closed for it
	if m := oldest.message(); m.Type != "error" || !strings.Contains(m.Reason, "sent no ticket") {
		t.Errorf("%+v", m)
	}
	if _, err := oldest.next(); err == nil {
		t.Error("it was not closed")
	}
	c.keys("exit\r")
	b.empty()
	for range terminal.MaxTicketsOf {
		b.ticket(b.user)
	}
	b.Do("POST", "/api/agents/coder/terminal", "", b.as(b.user)).WantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	b.ticket("the-static-token") // others are not affected
	b.Server.Terminals().SetLimits(-time.Second, 0, 0, 0)
	b.user2()
	ann := b.Login("ann")
	for range terminal.MaxTicketsOf + 1 { // expired tickets do not count
		b.Do("POST", "/api/agents/coder/terminal", "", ann).Want(t, http.StatusCreated, nil)
	}
}

func TestTerminalIsOneForEachUserAndAgent(t *testing.T) {
	b := newFixture(t)
	early := b.ticket(b.user)
	c := b.open(b.user)
	b.Do("POST", "/api/agents/coder/terminal", "", b.as(b.user)).WantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.connect(early).refused("close that one first")
	b.open("the-static-token") // another principal
	c.conn.CloseNow()
	testkit.Wait(t, "the closed one is forgotten", func() bool { return len(b.shown()) <= 1 })
	b.open(b.user)
}

func TestTerminalEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*fixture)
		want string
	}{
		"the agent stops":      {func(b *fixture) { b.kill() }, "the agent was shut down"},
		"the director stops":   {func(b *fixture) { b.Server.Stop() }, "the director stops"},
		"the token is revoked": {func(b *fixture) { _, _ = b.Identity.RevokeToken(b.T.Context(), b.userID) }, "no longer valid"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			s := b.open(b.user)
			go c.end(b)
			if m := s.message(); m.Type != "error" || !strings.Contains(m.Reason, c.want) {
				t.Errorf("told %+v, want %q", m, c.want)
			}
			if _, err := s.next(); err == nil {
				t.Error("it is still open")
			}
			b.Server.Stop()
			b.Server.WaitTerminals()
			if rows := b.audited(); len(rows) != 2 || rows[1].Action != "close" {
				t.Errorf("audit rows %+v", rows)
			}
		})
	}
}

func TestTerminalLimits(t *testing.T) {
	t.Run("whole", func(t *testing.T) {
		b := newFixture(t)
		b.Server.Terminals().SetLimits(0, 0, 200*time.Millisecond, 0)
		b.connect(b.ticket(b.user)).cutOff("open for 200ms, the maximum")
		b.empty()
	})
	t.Run("idle", func(t *testing.T) {
		b := newFixture(t, func(c *agentd.Config) { c.TerminalIdle = 200 * time.Millisecond })
		c := b.open(b.user)
		if m := c.message(); m.Type != "error" || !strings.Contains(m.Reason, "200ms without input or output") {
			t.Errorf("told %+v", m)
		}
		c.closed(websocket.StatusNormalClosure)
		b.empty()
	})
	t.Run("expiry", func(t *testing.T) {
		b := newFixture(t)
		b.Server.Terminals().SetLimits(0, 0, 0, time.Hour) // no review
		brief := b.AddToken(identity.NewToken{Name: "brief", Scopes: []signalbox.Scope{signalbox.ScopeTerminal}, Expires: 2 * time.Second})
		b.connect(b.ticket(brief)).cutOff("no longer valid")
		b.empty()
	})
}

func TestTerminalAgentGone(t *testing.T) {
	b := newFixture(t)
	b.kill()
	b.connect(b.ticket(b.user)).refused("does not answer")
	rows := b.audited()
	if len(rows) != 1 || rows[0].Action != "open" || rows[0].Result != "failed" {
		t.Errorf("audit rows %+v", rows)
	}
}

// The refusal of an agent is shown with the agent's text.
func TestTerminalAgentRefuses(t *testing.T) {
	b := newFixture(t, func(c *agentd.Config) { c.Terminal = false })
	b.connect(b.ticket(b.user)).refused("offers no terminal")
}

func TestTerminalHugeMessage(t *testing.T) {
	b := newFixture(t)
	c := b.open(b.user)
	_ = c.conn.Write(t.Context(), websocket.MessageBinary, make([]byte, 65<<10)) // the connection may be closed in the middle
	for {
		if _, err := c.next(); err != nil {
			break
		}
	}
	b.empty()
}

// All processes of a terminal end when its user disconnects.
func TestTerminalLeavesNothingAlive(t *testing.T) {
	b := newFixture(t)
	c := b.open(b.user)
	file := filepath.Join(b.work, "pid")
	c.keys("(trap '' HUP TERM; exec sleep 1000) & echo $! > " + file + "; echo st\"\"arted\r")
	c.shows("started")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || proc.Identify(pid).Start == 0 {
		t.Fatalf("no process %q: %v", data, err)
	}
	c.conn.CloseNow()
	b.empty()
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("process %d lives: %s", pid, stat)
	}
}

// A client that reads nothing blocks the program, but not the director's stop.
func TestTerminalSlowClient(t *testing.T) {
	b := newFixture(t)
	c := b.open(b.user)
	file := filepath.Join(b.work, "count")
	c.keys("i=0; while :; do head -c 1048576 /dev/zero; i=$((i+1)); echo $i > " + file + "; done\r")
	count := func() int {
		data, _ := os.ReadFile(file)
		n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
		return n
	}
	last, since := 0, time.Now()
	testkit.Wait(t, "the program stands", func() bool {
		if now := count(); now != last || now == 0 {
			last, since = now, time.Now()
		}
		if last > 200 {
			t.Fatalf("%d MiB were printed to a client that reads nothing", last)
		}
		return time.Since(since) > 400*time.Millisecond
	})
	b.Server.Stop()
	b.Server.WaitTerminals()
	b.empty()
	if rows := b.audited(); len(rows) != 2 || !strings.Contains(rows[1].Details, "the director stops") {
		t.Errorf("audit rows %+v", rows)
	}
}
