package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// fakeTTY is a terminal of 80 by 24 that is resized to 100 by 30.
type fakeTTY struct {
	raw, restored atomic.Bool
	wide          atomic.Bool
	resized       chan os.Signal
	passwords     []string
}

func (f *fakeTTY) Raw() (func() error, error) {
	f.raw.Store(true)
	return func() error { f.restored.Store(true); return nil }, nil
}

func (f *fakeTTY) Size() (int, int) {
	if f.wide.Load() {
		return 100, 30
	}
	return 80, 24
}
func (f *fakeTTY) Resized(context.Context) <-chan os.Signal { return f.resized }
func (f *fakeTTY) Password(context.Context, string) (string, error) {
	if len(f.passwords) == 0 {
		return "", errors.New("asked too often")
	}
	next := f.passwords[0]
	f.passwords = f.passwords[1:]
	return next, nil
}

// terminalServer is the other end of a terminal's connection.
type terminalServer func(t *testing.T, ctx context.Context, c *websocket.Conn)

func acceptTerminal(t *testing.T, w http.ResponseWriter, r *http.Request, serve terminalServer) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.CloseNow()
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	serve(t, ctx, c)
}

// terminals lets coder offer terminals of 80 by 24.
func (d *director) terminals(t *testing.T, serve terminalServer) {
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.RawQuery; got != "by=a+local+caller&cols=80&rows=24" {
			t.Errorf("opened with %s", got)
		}
		acceptTerminal(t, w, r, serve)
	}))
	t.Cleanup(agent.Close)
	t.Cleanup(d.Server.WaitTerminals)
	t.Cleanup(d.Server.Stop)
	a, err := d.Engine.PutAgent(t.Context(), signalbox.Agent{Name: "coder", Kind: "claude", URL: agent.URL, Slots: 1, Source: signalbox.AgentRegistered}, "the agent's token")
	d.check(err)
	d.Live.Set(engine.LiveAgent{Agent: a, Up: true, Terminal: true})
}

// terminals opens terminals in place of the director, which always gives a reason when it
// ends one.
func (p *proxy) terminals(t *testing.T, serve terminalServer) {
	p.answer("openTerminal", func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, 201, api.TerminalTicket{Ticket: "once", Agent: r.PathValue("name"), URL: "/api/agents/coder/terminal"})
	})
	p.answer("terminal", func(w http.ResponseWriter, r *http.Request) {
		acceptTerminal(t, w, r, func(t *testing.T, ctx context.Context, c *websocket.Conn) {
			if got := readMessage(t, ctx, c); got != `{"type":"auth","token":"once","cols":80,"rows":24}` {
				t.Errorf("first message: %s", got)
			}
			serve(t, ctx, c)
		})
	})
}

func readMessage(t *testing.T, ctx context.Context, c *websocket.Conn) string {
	t.Helper()
	_, data, err := c.Read(ctx)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func writeMessage(t *testing.T, ctx context.Context, c *websocket.Conn, m api.TerminalMessage) {
	t.Helper()
	data, _ := json.Marshal(m)
	if err := c.Write(ctx, websocket.MessageText, data); err != nil {
		t.Error(err)
	}
}

// keyboard returns a standard input that a test can type into.
func keyboard(t *testing.T) (io.Reader, io.Writer) {
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	return r, w
}

func TestTerminal(t *testing.T) {
	f := newDirector(t)
	tty := &fakeTTY{resized: make(chan os.Signal, 1)}
	in, keys := keyboard(t)
	f.terminals(t, func(t *testing.T, ctx context.Context, c *websocket.Conn) {
		writeMessage(t, ctx, c, api.TerminalMessage{Type: "ready"})
		c.Write(ctx, websocket.MessageBinary, []byte("$ "))
		if got := readMessage(t, ctx, c); got != "ls\r" {
			t.Errorf("typed: %q", got)
		}
		tty.wide.Store(true)
		tty.resized <- os.Interrupt // which signal it is does not matter
		if got := readMessage(t, ctx, c); got != `{"type":"resize","cols":100,"rows":30}` {
			t.Errorf("resize: %s", got)
		}
		c.Write(ctx, websocket.MessageBinary, []byte("file\x1b[0m"))
		writeMessage(t, ctx, c, api.TerminalMessage{Type: "exit", Code: 3, Reason: "the program ended"})
	})
	p := startWithInput(t, f, cli.IO{In: in, TTY: tty, InTTY: true, OutTTY: true, ErrTTY: true}, "terminal", "coder")
	p.out.waitFor(t, "$ ")
	fmt.Fprint(keys, "ls\r")
	p.expectExit(t, 1)
	if p.out.String() != "$ file\x1b[0m" || p.err.String() != "The terminal of coder ended: exit code 3 (the program ended)\n" {
		t.Fatalf("%q %q", p.out, p.err)
	}
	if !tty.raw.Load() || !tty.restored.Load() {
		t.Fatal("the terminal was not set back")
	}
}

func TestTerminalEnds(t *testing.T) {
	stay := func(t *testing.T, ctx context.Context, c *websocket.Conn) {
		c.Write(ctx, websocket.MessageBinary, []byte("ready"))
		for {
			if _, _, err := c.Read(ctx); err != nil {
				return
			}
		}
	}
	for name, test := range map[string]struct {
		server terminalServer
		typed  string
		code   int
		err    string
	}{
		"left":    {stay, "x\r~.", 0, "The terminal of coder ended: you left it.\n"},
		"hung up": {stay, "\x00EOF", 0, "The terminal of coder ended: standard input has ended.\n"},
		"error": {func(t *testing.T, ctx context.Context, c *websocket.Conn) {
			writeMessage(t, ctx, c, api.TerminalMessage{Type: "error", Reason: "you have one open already"})
		}, "", 1, "Error: you have one open already\n"},
		"closed": {func(t *testing.T, ctx context.Context, c *websocket.Conn) {
			c.Close(websocket.StatusPolicyViolation, "nobody typed for 15m")
		}, "", 1, "Error: the terminal of coder was closed: nobody typed for 15m\n"},
		"broken": {func(t *testing.T, ctx context.Context, c *websocket.Conn) {
			c.CloseNow()
		}, "", 7, "Error: the connection to the terminal of coder broke: "},
		"clean": {func(t *testing.T, ctx context.Context, c *websocket.Conn) {
			writeMessage(t, ctx, c, api.TerminalMessage{Type: "exit"})
		}, "", 0, "The terminal of coder ended: exit code 0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newDirector(t)
			if name == "closed" || name == "broken" {
				f.proxy.terminals(t, test.server)
			} else {
				f.terminals(t, test.server)
			}
			tty := &fakeTTY{}
			in, keys := keyboard(t)
			p := startWithInput(t, f, cli.IO{In: in, TTY: tty}, "terminal", "coder")
			switch test.typed {
			case "":
			case "\x00EOF":
				p.out.waitFor(t, "ready")
				keys.(io.Closer).Close()
			default:
				p.out.waitFor(t, "ready")
				fmt.Fprint(keys, test.typed)
			}
			p.expectExit(t, test.code)
			if !strings.HasPrefix(p.err.String(), test.err) {
				t.Fatalf("%q, want %q", p.err, test.err)
			}
			if !tty.restored.Load() {
				t.Error("the terminal was not set back")
			}
		})
	}
}

func TestTerminalIsRefused(t *testing.T) {
	f := newDirector(t)
	p := startWithInput(t, f, cli.IO{In: strings.NewReader("")}, "terminal", "coder")
	p.expectExit(t, 2)
	if !strings.Contains(p.err.String(), "standard input and output are not a terminal") {
		t.Error(p.err)
	}
	f.reset(func(o *apitest.Options) { o.Config.Terminal = false })
	p = startWithInput(t, f, cli.IO{In: strings.NewReader(""), TTY: &fakeTTY{}}, "terminal", "coder")
	p.expectExit(t, 1)
	if !strings.Contains(p.err.String(), "Error: this director opens no terminals\nHint: start the director with --terminal, or terminal: true in its configuration\n") {
		t.Error(p.err)
	}
}

func TestPasswordIsAskedForTwice(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		typed []string
		code  int
		put   string
	}{
		"new":       {[]string{"users", "set", "grace"}, []string{"correct horse", "correct horse"}, 0, "correct horse"},
		"different": {[]string{"users", "set", "grace"}, []string{"correct horse", "other horse"}, 2, ""},
		"known":     {[]string{"users", "set", "ada"}, nil, 0, ""},
		"changed":   {[]string{"users", "set", "ada", "--password"}, []string{"correct horse", "correct horse"}, 0, "correct horse"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withThings(t)
			p := startWithInput(t, f, cli.IO{In: strings.NewReader(""), TTY: &fakeTTY{passwords: test.typed}}, test.args...)
			p.expectExit(t, test.code)
			var put api.PutUser
			if test.code == 0 {
				f.check(json.Unmarshal([]byte(f.proxy.requests("putUser")[0].body), &put))
			}
			if put.Password != test.put {
				t.Fatalf("%+v", put)
			}
		})
	}
}
