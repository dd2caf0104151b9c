package agentd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/coder/websocket"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

const (
	// inputTimeout is how long a program may leave input unread before the input is dropped,
	// and inputTimeoutStuck the same after it has dropped some.
	inputTimeout      = 5 * time.Second
	inputTimeoutStuck = 20 * time.Millisecond
	// drainTerminal is how long the rest of the output may take to reach the client
	// after the program has ended.
	drainTerminal = 5 * time.Second
)

// termConn connects a terminal's program with its client. A client that does not read blocks
// the program, as a terminal does: at most one message is buffered.
type termConn struct {
	d            *Daemon
	t            *terminal
	conn         *websocket.Conn
	ready        chan struct{} // closed once the client knows that output follows
	ctx          context.Context
	end          context.CancelCauseFunc // its cause is sent to the client
	out          context.Context         // context of writes: outlives ctx a little, because cancelling a write closes the connection
	cut          context.CancelFunc
	idle         *time.Timer
	inputBlocked bool // the program did not read the last input
}

// errClientGone ends a terminal whose client has disconnected.
var errClientGone = errors.New("the client has gone")

func newTermConn(d *Daemon, t *terminal, conn *websocket.Conn) *termConn {
	c := &termConn{d: d, t: t, conn: conn, ready: make(chan struct{}), idle: time.NewTimer(d.cfg.TerminalIdle)}
	c.ctx, c.end = context.WithCancelCause(t.end)
	c.out, c.cut = context.WithCancel(context.Background())
	return c
}

// serve runs the program, and returns once its processes are dead and the client has
// been told.
func (c *termConn) serve() {
	defer c.idle.Stop()
	defer c.end(nil)
	defer c.cut()
	context.AfterFunc(c.ctx, func() { time.AfterFunc(terminalCloseTimeout, c.cut) })
	child, err := c.d.startTerminal(c.t, c)
	if err != nil {
		close(c.ready)
		c.sendEnd(api.TerminalMessage{Type: "error", Reason: "the terminal could not be started: " + err.Error()})
		return
	}
	c.d.cfg.Logger.Info("terminal opened", "by", c.t.view.By)
	if err := c.sendControl(api.TerminalMessage{Type: "ready"}); err != nil {
		c.end(errClientGone)
	}
	close(c.ready)
	go c.ping()
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		c.end(c.read(child))
	}()
	c.await(child)
	exit := c.endProgram(child)
	c.d.removeTerminal(c.t) // before the end message, whose reader may open another
	c.d.cfg.Logger.Info("terminal closed", "by", c.t.view.By)
	switch cause := context.Cause(c.ctx); {
	case cause == nil:
		c.sendEnd(api.TerminalMessage{Type: "exit", Code: exit.Code, Reason: exit.String()})
	case !errors.Is(cause, errClientGone):
		c.sendEnd(api.TerminalMessage{Type: "error", Reason: cause.Error()})
	}
	_ = c.conn.CloseNow()
	<-reading
}

// await returns when the program has ended or must end.
func (c *termConn) await(child *proc.Process) {
	select {
	case <-child.Exited():
	case <-c.ctx.Done():
	case <-c.idle.C:
		c.end(fmt.Errorf("the terminal was closed after %s without input or output", c.d.cfg.TerminalIdle))
	}
}

// endProgram kills the remaining processes. The rest of the output is still
// sent.
func (c *termConn) endProgram(child *proc.Process) proc.Exit {
	ended := make(chan proc.Exit, 1)
	go func() { ended <- c.d.endTerminal(c.t, child) }()
	select {
	case exit := <-ended:
		return exit
	case <-time.After(drainTerminal):
	case <-c.ctx.Done():
	}
	c.end(errClientGone) // has no effect if there is a better reason
	return <-ended
}

// Write sends output of the program.
func (c *termConn) Write(b []byte) (int, error) {
	<-c.ready
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	if err := c.conn.Write(c.out, websocket.MessageBinary, b); err != nil {
		c.end(errClientGone)
		return 0, err
	}
	c.idle.Reset(c.d.cfg.TerminalIdle)
	return len(b), nil
}

// read handles the client's messages until it disconnects, and returns the reason. Its reads
// end only with the connection, so that the end message can be sent.
func (c *termConn) read(child *proc.Process) error {
	for {
		kind, b, err := c.conn.Read(context.Background())
		if err != nil {
			return errClientGone
		}
		c.idle.Reset(c.d.cfg.TerminalIdle)
		if kind == websocket.MessageBinary {
			c.writeInput(child, b)
			continue
		}
		if err := c.resize(child, b); err != nil {
			return err
		}
	}
}

// writeInput passes input on. If the program does not read it, it is dropped, so that the
// client's other messages are still handled.
func (c *termConn) writeInput(child *proc.Process, b []byte) {
	wait := inputTimeout
	if c.inputBlocked {
		wait = inputTimeoutStuck
	}
	c.inputBlocked = errors.Is(child.Type(b, wait), os.ErrDeadlineExceeded)
}

func (c *termConn) resize(child *proc.Process, b []byte) error {
	var m api.TerminalMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return errors.New("a text message that is not JSON: input goes in binary messages")
	}
	size := proc.Size{Cols: m.Cols, Rows: m.Rows}
	switch {
	case m.Type != "resize":
		return fmt.Errorf("a message of type %q: only resize is expected here", preview(m.Type))
	case size.Cols < 1 || size.Cols > maxTerminalSide || size.Rows < 1 || size.Rows > maxTerminalSide:
		return fmt.Errorf("resize to %d columns and %d rows: each is 1 to %d", size.Cols, size.Rows, maxTerminalSide)
	}
	if err := child.Resize(size); err != nil {
		c.d.cfg.Logger.Debug("terminal not resized", "error", err) // it has just ended
	}
	return nil
}

// ping keeps proxies from closing an idle connection. TCP keepalive or the idle timeout
// detects a dead peer: a slow reader could not answer a ping in time either.
func (c *termConn) ping() {
	t := time.Tick(terminalPing)
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-t:
			ctx, cancel := context.WithTimeout(c.ctx, terminalPing/2)
			_ = c.conn.Ping(ctx)
			cancel()
		}
	}
}

func (c *termConn) sendControl(m api.TerminalMessage) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), terminalCloseTimeout)
	defer cancel()
	return c.conn.Write(ctx, websocket.MessageText, b)
}

// sendEnd sends the end message and closes the connection.
func (c *termConn) sendEnd(m api.TerminalMessage) {
	if c.sendControl(m) == nil {
		_ = c.conn.Close(websocket.StatusNormalClosure, "")
	}
}
