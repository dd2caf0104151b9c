package terminal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
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
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// fixture is a director in front of a real agent daemon, whose terminals run
// /bin/sh.
type fixture struct {
	*apitest.Fixture
	daemon *agentd.Daemon
	row    signalbox.Agent
	work   string
	user   string // token with the scope terminal
	userID string // of that token
	kill   func() // stops the agent
}

func newFixture(t *testing.T, change ...func(*agentd.Config)) *fixture {
	t.Helper()
	b := &fixture{Fixture: apitest.New(t, func(o *apitest.Options) { o.Config.Token, o.Config.Terminal = "the-static-token", true })}
	root := t.TempDir()
	cfg := agentd.Config{
		Name: "coder", Kind: "command", Token: "agent-secret", Terminal: true, KillGrace: 200 * time.Millisecond,
		DataDir: filepath.Join(root, "data"), WorkDir: root, Home: root, Runner: runner.Options{Command: []string{"true"}},
		Environ: []string{"PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh", "PS1=$ "},
	}
	for _, f := range change {
		f(&cfg)
	}
	b.work = root
	b.startAgent(cfg)
	known, secret, err := b.Identity.CreateToken(t.Context(), identity.NewToken{Name: "ops", Scopes: []signalbox.Scope{signalbox.ScopeTerminal, signalbox.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	b.user, b.userID = secret, known.ID
	b.Serve()
	t.Cleanup(func() { // before the server is closed
		b.Server.Stop()
		b.Server.WaitTerminals()
	})
	return b
}

func (b *fixture) startAgent(cfg agentd.Config) {
	b.T.Helper()
	var err error
	if b.daemon, err = agentd.New(cfg); err != nil {
		b.T.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- b.daemon.Serve(ctx, ln) }()
	b.kill = func() {
		cancel()
		if err, ok := <-served; ok && err != nil {
			b.T.Error(err)
		}
	}
	b.T.Cleanup(func() {
		cancel()
		select {
		case <-served:
		default:
			_ = b.daemon.Close()
		}
	})
	row := signalbox.Agent{Name: "coder", Kind: "command", URL: "http://" + ln.Addr().String(), Slots: 1, Source: signalbox.AgentRegistered}
	if b.row, err = b.Engine.PutAgent(b.T.Context(), row, "agent-secret"); err != nil {
		b.T.Fatal(err)
	}
	b.Live.Set(engine.LiveAgent{Agent: b.row, Up: true, Terminal: true})
}

func (b *fixture) as(token string) apitest.Edit {
	return apitest.Header("Authorization", "Bearer "+token)
}

func (b *fixture) ticket(token string) string {
	b.T.Helper()
	var out api.TerminalTicket
	b.Do("POST", "/api/agents/coder/terminal", "", b.as(token)).Want(b.T, http.StatusCreated, &out)
	if out.Agent != "coder" || out.URL != "/api/agents/coder/terminal" || len(out.Ticket) < 43 || time.Until(out.ExpiresAt) > 31*time.Second {
		b.T.Fatalf("ticket %+v", out)
	}
	return out.Ticket
}

// console is a client of a terminal.
type console struct {
	t      *testing.T
	conn   *websocket.Conn
	screen bytes.Buffer
}

func (b *fixture) dial(agent string, h http.Header) (*console, *http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), apitest.Timeout)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, b.HTTP.URL+"/api/agents/"+agent+"/terminal", &websocket.DialOptions{HTTPHeader: h})
	if err == nil {
		b.T.Cleanup(func() { conn.CloseNow() })
	}
	return &console{t: b.T, conn: conn}, resp, err
}

// connect connects and sends a ticket.
func (b *fixture) connect(ticket string) *console {
	b.T.Helper()
	c, _, err := b.dial("coder", nil)
	if err != nil {
		b.T.Fatal(err)
	}
	c.tell(api.TerminalMessage{Type: "auth", Token: ticket, Cols: 91, Rows: 17})
	return c
}

// open opens a terminal, and waits until it is ready.
func (b *fixture) open(token string) *console {
	b.T.Helper()
	c := b.connect(b.ticket(token))
	if m := c.message(); m.Type != "ready" {
		b.T.Fatalf("first message %+v", m)
	}
	return c
}

func (c *console) write(kind websocket.MessageType, data []byte) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), apitest.Timeout)
	defer cancel()
	if err := c.conn.Write(ctx, kind, data); err != nil {
		c.t.Fatal(err)
	}
}

func (c *console) tell(m api.TerminalMessage) {
	c.t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(websocket.MessageText, data)
}

func (c *console) keys(s string) {
	c.t.Helper()
	c.write(websocket.MessageBinary, []byte(s))
}

// next reads a message; binary data goes to the screen.
func (c *console) next() (*api.TerminalMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), apitest.Timeout)
	defer cancel()
	kind, data, err := c.conn.Read(ctx)
	if err != nil || kind == websocket.MessageBinary {
		c.screen.Write(data)
		return nil, err
	}
	var m api.TerminalMessage
	return &m, json.Unmarshal(data, &m)
}

func (c *console) message() api.TerminalMessage {
	c.t.Helper()
	for {
		m, err := c.next()
		if err != nil {
			c.t.Fatalf("%v; the screen is %q", err, c.screen.String())
		}
		if m != nil {
			return *m
		}
	}
}

// shows waits until the text is on the screen.
func (c *console) shows(text string) {
	c.t.Helper()
	for !strings.Contains(c.screen.String(), text) {
		if m, err := c.next(); err != nil || m != nil {
			c.t.Fatalf("%q was never on the screen: %v, %+v, %q", text, err, m, c.screen.String())
		}
	}
}

// refused expects an error with that text, and the end.
func (c *console) refused(text string) {
	c.t.Helper()
	c.ends(c.message(), text)
}

// cutOff waits for the end of a terminal that is open only briefly, or on a slow machine not at
// all.
func (c *console) cutOff(text string) {
	c.t.Helper()
	m := c.message()
	if m.Type == "ready" {
		m = c.message()
	}
	c.ends(m, text)
}

func (c *console) ends(m api.TerminalMessage, text string) {
	c.t.Helper()
	if m.Type != "error" || !strings.Contains(m.Reason, text) {
		c.t.Errorf("told %+v, want an error with %q", m, text)
	}
	c.closed(websocket.StatusPolicyViolation)
}

func (c *console) closed(code websocket.StatusCode) {
	c.t.Helper()
	if _, err := c.next(); websocket.CloseStatus(err) != code {
		c.t.Errorf("closed with %v, want %v", err, code)
	}
}

// empty waits until no terminal is open at the agent or known here.
func (b *fixture) empty() {
	b.T.Helper()
	for deadline := time.After(apitest.Timeout); ; {
		changed := b.daemon.Changed()
		if len(b.daemon.Status().Terminals) == 0 {
			break
		}
		select {
		case <-changed:
		case <-deadline:
			b.T.Fatalf("still open: %+v", b.daemon.Status().Terminals)
		}
	}
	testkit.Wait(b.T, "no terminal is known", func() bool { return len(b.shown()) == 0 })
}

// shown returns the terminals that GET /api/agents shows.
func (b *fixture) shown() []api.AgentTerminal {
	b.T.Helper()
	var list api.Agents
	b.Do("GET", "/api/agents", "", b.as("the-static-token")).Want(b.T, http.StatusOK, &list)
	return list.Agents[0].Terminals
}

// audited returns the audit rows of terminals: action, result and principal.
func (b *fixture) audited() (rows []signalbox.Audit) {
	b.T.Helper()
	rows, err := b.Store.AuditLog(b.T.Context(), store.AuditQuery{EventType: "terminal", Limit: 100})
	if err != nil {
		b.T.Fatal(err)
	}
	return rows
}
