package agentd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// tty is the client of a terminal.
type tty struct {
	t      *testing.T
	conn   *websocket.Conn
	screen bytes.Buffer
}

// terminals configures an agent that offers a plain shell.
func terminals(t *testing.T) agentd.Config {
	cfg := config(t, "command")
	cfg.Runner.Command = []string{"true"}
	cfg.Terminal, cfg.Token = true, "agent-secret"
	cfg.Environ = append(cfg.Environ, "SHELL=/bin/sh", "PS1=$ ")
	return cfg
}

// dial requests a terminal; on a refusal, the response has the status.
func (a *agent) dial(query string, header http.Header) (*websocket.Conn, *http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	if header == nil {
		header = http.Header{}
	}
	if header.Get("Authorization") == "" && a.cfg.Token != "" {
		header.Set("Authorization", "Bearer "+a.cfg.Token)
	}
	return websocket.Dial(ctx, a.url+"/terminal?"+query, &websocket.DialOptions{HTTPClient: a.client, HTTPHeader: header})
}

func (a *agent) open(query string) *tty {
	a.t.Helper()
	conn, _, err := a.dial(query, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { conn.CloseNow() })
	c := &tty{t: a.t, conn: conn}
	if m := c.message(); m.Type != "ready" {
		a.t.Fatalf("first message %+v", m)
	}
	return c
}

// next reads one message; it returns text messages, and others go to the
// screen.
func (c *tty) next() (*api.TerminalMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	kind, b, err := c.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	if kind == websocket.MessageBinary {
		c.screen.Write(b)
		return nil, nil
	}
	var m api.TerminalMessage
	return &m, json.Unmarshal(b, &m)
}

// message returns the next text message.
func (c *tty) message() api.TerminalMessage {
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

// ends reads until the connection ends, which answers the other side's close.
func (c *tty) ends() {
	c.t.Helper()
	if _, err := c.next(); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		c.t.Errorf("closed with %v", err)
	}
}

func (c *tty) keys(s string) {
	c.t.Helper()
	c.write(websocket.MessageBinary, []byte(s))
}

func (c *tty) tell(m any) {
	c.t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(websocket.MessageText, b)
}

func (c *tty) write(kind websocket.MessageType, b []byte) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	if err := c.conn.Write(ctx, kind, b); err != nil {
		c.t.Fatal(err)
	}
}

// shows waits until the text is on the screen.
func (c *tty) shows(text string) {
	c.t.Helper()
	for !strings.Contains(c.screen.String(), text) {
		if m, err := c.next(); err != nil || m != nil {
			c.t.Fatalf("%q did not appear on the screen: %v, %+v, %q", text, err, m, c.screen.String())
		}
	}
}

// until waits for a status of the agent.
func (a *agent) until(what string, ok func(api.AgentStatus) bool) {
	a.t.Helper()
	for timeout := time.After(long); ; {
		ch := a.daemon.Changed()
		if ok(a.daemon.Status()) {
			return
		}
		select {
		case <-ch:
		case <-timeout:
			a.t.Fatalf("never %s: %+v", what, a.daemon.Status())
		}
	}
}

func noTerminals(s api.AgentStatus) bool { return len(s.Terminals) == 0 }

// dead waits for the end of a process: its terminal is told first.
func dead(t *testing.T, pid int) {
	t.Helper()
	testkit.Wait(t, fmt.Sprintf("process %d has ended", pid), func() bool {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return proc.Identify(pid).Start == 0 || strings.Contains(string(b), ") Z ")
	})
}

// background starts a stubborn job in the terminal and returns its PID.
func (c *tty) background(dir string) int {
	c.t.Helper()
	file := filepath.Join(dir, "pid")
	c.keys("(trap '' HUP TERM; exec sleep 1000) & echo $! > " + file + "; echo st\"\"arted\r")
	c.shows("started")
	b, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		c.t.Fatal(err)
	}
	return pid
}

func TestTerminal(t *testing.T) {
	a := start(t, terminals(t))
	c := a.open("cols=91&rows=17&by=ann")
	c.keys("stty size; echo \"$TERM in $PWD of $SIGNALBOX_AGENT, token <$SIGNALBOX_TOKEN>, $SECRET_OF_DAEMON\"\r")
	c.shows("17 91")
	work, _ := filepath.EvalSymlinks(a.cfg.WorkDir)
	c.shows("xterm-256color in " + work + " of command, token <>, \r\n")
	c.tell(api.TerminalMessage{Type: "resize", Cols: 120, Rows: 40})
	c.keys("stty size\r")
	c.shows("40 120")

	var s api.AgentStatus
	if a.do("GET", "/status", nil, &s); len(s.Terminals) != 1 || s.Terminals[0].By != "ann" || !s.Terminal || s.State != "idle" {
		t.Errorf("status %+v", s)
	}
	// A terminal takes no slot.
	if e := a.end(a.submit(api.AgentTask{Prompt: "x"}).TaskID); e.State != "completed" {
		t.Errorf("%+v", e)
	}
	c.keys("exit 3\r")
	if m := c.message(); m.Type != "exit" || m.Code != 3 || m.Reason != "exit status 3" {
		t.Errorf("%+v", m)
	}
	c.ends()
	a.until("closed", noTerminals)
	if left, _ := os.ReadDir(filepath.Join(a.cfg.DataDir, "terminals")); len(left) != 0 {
		t.Errorf("marks left: %v", left)
	}
}

// Everything that a terminal started ends with it, for whatever reason.
func TestTerminalLeavesNothingAlive(t *testing.T) {
	for name, end := range map[string]func(*agent, *tty){
		"the shell ends":     func(_ *agent, c *tty) { c.keys("exit\r"); c.message() },
		"the client closes":  func(_ *agent, c *tty) { c.conn.Close(websocket.StatusNormalClosure, "") },
		"the client is gone": func(_ *agent, c *tty) { c.conn.CloseNow() },
		"the daemon stops": func(a *agent, c *tty) {
			go a.daemon.Close()
			if m := c.message(); m.Type != "error" || !strings.Contains(m.Reason, "shut down") {
				a.t.Errorf("told %+v", m)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, terminals(t))
			c := a.open("")
			pid := c.background(t.TempDir())
			end(a, c)
			a.until("closed", noTerminals)
			dead(t, pid)
		})
	}
}

func TestTerminalIdle(t *testing.T) {
	cfg := terminals(t)
	cfg.TerminalIdle = 300 * time.Millisecond
	a := start(t, cfg)
	c := a.open("")
	var last time.Time
	for range 4 { // each key keeps it open; on a slow machine it may end in between
		last = time.Now()
		_ = c.conn.Write(t.Context(), websocket.MessageBinary, []byte("x"))
		time.Sleep(cfg.TerminalIdle / 3)
	}
	if m := c.message(); m.Type != "error" || !strings.Contains(m.Reason, "300ms without input or output") {
		t.Errorf("%+v", m)
	}
	if d := time.Since(last); d < cfg.TerminalIdle {
		t.Errorf("it was closed %s after the last key", d)
	}
	a.until("closed", noTerminals)
}

func TestTerminalsAreBounded(t *testing.T) {
	a := start(t, terminals(t))
	for range 4 {
		a.open("")
	}
	_, resp, err := a.dial("", nil)
	if err == nil || resp == nil || resp.StatusCode != 409 {
		t.Fatalf("a fifth terminal: %v, %v", resp, err)
	}
}

func TestTerminalRefusals(t *testing.T) {
	open := terminals(t)
	off, bare := terminals(t), terminals(t)
	off.Terminal, bare.Token = false, ""
	for name, c := range map[string]struct {
		cfg    agentd.Config
		query  string
		header http.Header
		status int
	}{
		"off":          {off, "", nil, 403},
		"no token":     {bare, "", nil, 403},
		"wrong token":  {open, "", http.Header{"Authorization": {"Bearer wrong"}}, 401},
		"other origin": {open, "", http.Header{"Origin": {"http://evil.example"}}, 403},
		"no size":      {open, "cols=0", nil, 400},
		"huge":         {open, "rows=1001", nil, 400},
		"bad name":     {open, "by=%07", nil, 400},
		"long name":    {open, "by=" + strings.Repeat("x", 201), nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.DataDir = t.TempDir()
			a := start(t, c.cfg)
			if a.daemon.Status().Terminal != (c.cfg.Terminal && c.cfg.Token != "") {
				t.Error("the status says otherwise")
			}
			_, resp, err := a.dial(c.query, c.header)
			if err == nil || resp == nil || resp.StatusCode != c.status {
				t.Fatalf("got %v, %v, want %d", resp, err, c.status)
			}
			a.until("closed", noTerminals)
		})
	}
	a := start(t, terminals(t))
	var ref api.AgentRefusal
	if code := a.do("GET", "/terminal", nil, &ref); code != 400 || !strings.Contains(ref.Message, "WebSocket") {
		t.Errorf("a plain GET: %d %+v", code, ref)
	}
}

func TestTerminalBadMessages(t *testing.T) {
	a := start(t, terminals(t))
	for name, bad := range map[string]string{
		"resize":      `{"type":"resize","cols":0,"rows":5}`,
		"other":       `{"type":"dance"}`,
		"not JSON":    `hello`,
		"not a shape": `[]`,
	} {
		c := a.open("")
		c.write(websocket.MessageText, []byte(bad))
		if m := c.message(); m.Type != "error" || m.Reason == "" {
			t.Errorf("%s: %+v", name, m)
		}
		c.ends()
	}
	c := a.open("")
	_ = c.conn.Write(t.Context(), websocket.MessageBinary, make([]byte, 65<<10)) // the connection may be closed in the middle
	for {
		if m, err := c.next(); err != nil {
			break
		} else if m != nil {
			t.Errorf("a message of 65 KiB: %+v", m)
		}
	}
	a.until("closed", noTerminals)
}

func TestTerminalStartError(t *testing.T) {
	cfg := terminals(t)
	cfg.TerminalCommand = []string{"/nonexistent/shell"}
	a := start(t, cfg)
	conn, _, err := a.dial("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	c := &tty{t: t, conn: conn}
	if m := c.message(); m.Type != "error" || !strings.Contains(m.Reason, "could not be started") {
		t.Errorf("%+v", m)
	}
	c.ends()
	a.until("closed", noTerminals)
}

// A client that does not read blocks the program, and no data piles up.
func TestTerminalBackpressure(t *testing.T) {
	a := start(t, terminals(t))
	file := filepath.Join(t.TempDir(), "count")
	c := a.open("")
	c.keys("i=0; while :; do head -c 1048576 /dev/zero; i=$((i+1)); echo $i > " + file + "; done\r")
	written := func() string { b, _ := os.ReadFile(file); return string(b) }
	testkit.Wait(t, "something is written", func() bool { return written() != "" })
	// The sockets buffer some MiB; then the program is blocked.
	last, since := "", time.Now()
	testkit.Wait(t, "the program stands", func() bool {
		if now := written(); now != last {
			last, since = now, time.Now()
		}
		if n, _ := strconv.Atoi(strings.TrimSpace(last)); n > 200 {
			t.Fatal("a client that reads nothing was sent 200 MiB")
		}
		return time.Since(since) > 400*time.Millisecond
	})
	c.conn.CloseNow()
	a.until("closed", noTerminals)
}

// The next daemon ends a terminal whose daemon was killed.
func TestTerminalIsEndedAfterCrash(t *testing.T) {
	a, cmd := process(t, terminals(t))
	c := a.open("")
	pid := c.background(t.TempDir())
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if proc.Identify(pid).Start == 0 {
		t.Fatal("the job did not outlive the daemon; the test proves nothing")
	}
	start(t, a.cfg)
	dead(t, pid)
}

// The CLIs run in a terminal as a user would start them.
func TestCLITerminal(t *testing.T) {
	for _, kind := range clis {
		t.Run(kind, func(t *testing.T) {
			if kind == "opencode" {
				soak.Only(t, "an opencode that draws nothing, or outlives its terminal; the other CLIs have the rest")
			}
			a, _ := cli(t, kind, func(c *agentd.Config) { c.Terminal, c.Token = true, "agent-secret" })
			c := a.open("cols=100&rows=30&by=ann")
			for !strings.Contains(c.screen.String(), "\x1b[") { // it draws its screen
				if m, err := c.next(); err != nil || m != nil {
					t.Fatalf("%v, %+v, %q", err, m, c.screen.String())
				}
			}
			c.conn.CloseNow()
			a.until("closed", noTerminals)
		})
	}
}
