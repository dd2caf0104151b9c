package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

const (
	maxFrame  = 1 << 20 // bytes of a WebSocket message
	dialLimit = 30 * time.Second
)

func (a *app) terminalCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "terminal AGENT",
		Short: "Open a terminal at an agent",
		Long: "Open a terminal at an agent, with its CLI or a shell, outside its line. Director and agent must have been started\n" +
			"with --terminal, and the token needs the scope terminal. The terminal closes when its program ends, after a while\n" +
			"without input or output, or when you type Enter ~ .",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if a.io.TTY == nil {
				return usage("standard input and output are not a terminal").withHint("signalbox chat %s MESSAGE talks to it from a script", clean(args[0]))
			}
			return nil
		},
		RunE:              a.ask(func(ctx context.Context, c *client.Client, args []string) error { return a.terminal(ctx, c, args[0]) }),
		ValidArgsFunction: a.completeArg(agentNames),
	}
}

// terminal opens a terminal and connects it to standard input and output.
func (a *app) terminal(ctx context.Context, c *client.Client, agent string) error {
	ticket, err := c.OpenTerminal(ctx, agent)
	if err != nil {
		return err
	}
	conn, err := dialTerminal(ctx, c.HTTPClient(), c.URL()+ticket.URL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	t := &terminal{app: a, conn: conn}
	columns, rows := a.io.TTY.Size()
	if err := t.send(ctx, api.TerminalMessage{Type: "auth", Token: ticket.Ticket, Cols: columns, Rows: rows}); err != nil {
		return err
	}
	var end error
	if err := a.raw(func() { end = t.run(ctx) }); err != nil {
		return err
	}
	return t.ended(agent, end)
}

// raw runs f with the terminal in raw mode.
func (a *app) raw(f func()) error {
	restore, err := a.io.TTY.Raw()
	if err != nil {
		return fmt.Errorf("the terminal cannot be made raw: %w", err)
	}
	f()
	if err := restore(); err != nil {
		a.note("The terminal could not be restored (%v): run reset.", err)
	}
	return nil
}

func dialTerminal(ctx context.Context, through *http.Client, url string) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: through})
	if resp != nil && resp.Body != nil {
		defer resp.Body.Close()
	}
	if err != nil {
		f := failure(exitUnreachable, "unreachable", "the terminal cannot be opened: %v", err)
		if resp != nil {
			f.exit, f.code = exitError, "terminal_refused"
		}
		return nil, f.withHint("a proxy in front of the director must let WebSockets pass")
	}
	conn.SetReadLimit(maxFrame)
	return conn, nil
}

// terminal is the client's end of an open terminal.
type terminal struct {
	*app
	conn *websocket.Conn
}

// The reasons why the client closes a terminal.
var (
	errLeft   = errors.New("you left it")
	errHungUp = errors.New("standard input has ended")
)

// exited is the message that the program in the terminal has ended.
type exited api.TerminalMessage

func (exited) Error() string { return "exited" }

// run copies input and output until one side ends.
func (t *terminal) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(t.sendInput(ctx)) }() // the read cannot be interrupted and ends with the process
	go t.sendResizes(ctx)
	err := t.showOutput(ctx)
	if cause := context.Cause(ctx); cause != nil {
		_ = t.conn.Close(websocket.StatusNormalClosure, "the person left")
		return cause
	}
	return err
}

// sendInput sends standard input.
func (t *terminal) sendInput(ctx context.Context) error {
	var leave escapeDetector
	buf := make([]byte, 4096)
	for {
		n, err := t.io.In.Read(buf)
		if n > 0 {
			if leave.feed(buf[:n]) {
				return errLeft
			}
			if err := t.conn.Write(ctx, websocket.MessageBinary, buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return errHungUp
		}
		if err != nil {
			return err
		}
	}
}

// sendResizes sends each new size of the terminal.
func (t *terminal) sendResizes(ctx context.Context) {
	changed := t.io.TTY.Resized(ctx)
	for {
		select {
		case <-changed:
			columns, rows := t.io.TTY.Size()
			if t.send(ctx, api.TerminalMessage{Type: "resize", Cols: columns, Rows: rows}) != nil {
				return // showOutput returns the error
			}
		case <-ctx.Done():
			return
		}
	}
}

// showOutput writes the terminal's output, until it ends.
func (t *terminal) showOutput(ctx context.Context) error {
	for {
		kind, data, err := t.conn.Read(ctx)
		if err != nil {
			return err
		}
		if kind == websocket.MessageBinary {
			if _, err := t.io.Out.Write(data); err != nil {
				return err
			}
			continue
		}
		var m api.TerminalMessage
		if err := json.Unmarshal(data, &m); err != nil {
			return fmt.Errorf("the terminal sent a message that is not JSON: %w", err)
		}
		switch m.Type {
		case "exit":
			return exited(m)
		case "error":
			return &fault{exit: exitError, code: "terminal_error", message: cmp.Or(m.Reason, "the terminal ended with an error")}
		}
	}
}

func (t *terminal) send(ctx context.Context, m api.TerminalMessage) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return t.conn.Write(ctx, websocket.MessageText, data)
}

// ended reports how a terminal ended.
func (t *terminal) ended(agent string, err error) error {
	var exit exited
	var closed websocket.CloseError
	switch {
	case errors.As(err, &exit):
		t.note("The terminal of %s ended: exit code %d%s", agent, exit.Code, opt(" (%s)", exit.Reason))
		if exit.Code != 0 {
			return &fault{exit: exitError, silent: true}
		}
		return nil
	case errors.Is(err, errLeft), errors.Is(err, errHungUp):
		t.note("The terminal of %s ended: %v.", agent, err)
		return nil
	case errors.As(err, &closed):
		return failure(exitError, "terminal_closed", "the terminal of %s was closed: %s", agent, cmp.Or(closed.Reason, closed.Code.String()))
	case errors.Is(err, context.Canceled):
		return &fault{exit: exitDetached, code: "interrupted", message: "interrupted; the terminal of " + agent + " is closed"}
	}
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	return &fault{exit: exitUnreachable, code: "unreachable", retryable: true, message: fmt.Sprintf("the connection to the terminal of %s broke: %v", agent, err)}
}

// escapeDetector detects Enter ~ . in the input, which closes a terminal that hangs.
type escapeDetector struct{ seen int } // 1 after Enter, 2 after Enter ~

func (l *escapeDetector) feed(typed []byte) bool {
	for _, b := range typed {
		switch {
		case b == '\r' || b == '\n':
			l.seen = 1
		case l.seen == 1 && b == '~':
			l.seen = 2
		case l.seen == 2 && b == '.':
			return true
		default:
			l.seen = 0
		}
	}
	return false
}
