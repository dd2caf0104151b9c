package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// WholeLog returns, without waiting, at most 128 KiB of the log of a task's last attempt from byte after on,
// as far as its agent has it. Any director may ask: it changes nothing.
//
// Codes: CodeAgentDown, also for an agent that is not registered; CodeNotFound if it does
// not have the log.
func (d *Dispatcher) WholeLog(ctx context.Context, t *signalbox.Task, after int64) (api.AgentOutput, error) {
	conn, err := d.connTo(t.Agent)
	if err != nil {
		return api.AgentOutput{}, err
	}
	out, err := conn.output(ctx, t.TaskID, after, 0)
	if err == nil && (out.Seq < 0 || out.Next < out.Seq) {
		err = errors.New("positions in the log make no sense")
	}
	return out, notGiven(t, "log", err)
}

// Patch returns the patch of a task's last attempt, of size bytes, from its agent. The caller reads it to the
// end and closes it.
//
// Codes: as WholeLog.
func (d *Dispatcher) Patch(ctx context.Context, t *signalbox.Task, size int64) (io.ReadCloser, error) {
	conn, err := d.connTo(t.Agent)
	if err != nil {
		return nil, err
	}
	patch, err := conn.patch(ctx, t.TaskID, size)
	if err != nil {
		return nil, notGiven(t, "patch", err)
	}
	return patch, nil
}

// connTo returns the client of an agent.
func (d *Dispatcher) connTo(agent string) (*conn, error) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if l := d.Lanes[agent]; l != nil {
		return l.conn, nil
	}
	return nil, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s is not registered", agent)
}

// notGiven converts the error of an agent that was asked for something it keeps of a task.
func notGiven(t *signalbox.Task, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case statusOf(err) == http.StatusNotFound:
		return signalbox.Errorf(signalbox.CodeNotFound, "agent %s does not have the %s of this task", t.Agent, what)
	}
	return signalbox.Errorf(signalbox.CodeAgentDown, "agent %s does not give the %s: %v", t.Agent, what, err)
}

// patch opens a patch of size bytes. ask bounds the wait for its beginning, and for each piece.
func (c *conn) patch(ctx context.Context, id string, size int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &patchReader{wait: c.ask, cancel: cancel, silent: time.AfterFunc(c.ask, func() { cancel(context.DeadlineExceeded) })}
	resp, err := c.send(ctx, http.MethodGet, "/task/"+url.PathEscape(id)+"/patch", nil, nil)
	if err != nil {
		_ = p.Close()
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			err = timeoutError{err}
		}
		return nil, err
	}
	p.body = resp.Body
	switch {
	case resp.StatusCode != http.StatusOK:
		err = c.read(resp, nil)
		if err == nil {
			err = fmt.Errorf("it answered %d", resp.StatusCode)
		}
	case resp.ContentLength >= 0 && resp.ContentLength != size:
		err = fmt.Errorf("it has %d bytes, and not %d as the agent said before", resp.ContentLength, size)
	}
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	p.silent.Stop()
	return p, nil
}

// patchReader reads a patch. Only the time of the reads counts towards the agent's timeout.
type patchReader struct {
	body   io.ReadCloser // nil: no response came
	wait   time.Duration
	silent *time.Timer
	cancel context.CancelCauseFunc
}

func (p *patchReader) Read(b []byte) (int, error) {
	p.silent.Reset(p.wait)
	defer p.silent.Stop()
	return p.body.Read(b)
}

func (p *patchReader) Close() error {
	p.silent.Stop()
	p.cancel(nil)
	if p.body == nil {
		return nil
	}
	return p.body.Close()
}
