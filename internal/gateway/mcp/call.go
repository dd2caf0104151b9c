package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

const (
	// progressBuffer is how many progress reports are buffered for a slow caller; beyond it,
	// the oldest are dropped.
	progressBuffer = 64
	// settleTimeout is how long the SDK may take to see the end of an answered call. Some ends
	// it never sees (a refused POST whose answer was due on a stream), and a stream may stay
	// open after the answer.
	settleTimeout = time.Second
	// cancelTimeout bounds the wait until a cancel is sent. The next call must not reach the
	// server before the cancel.
	cancelTimeout = time.Second
)

// errSessionLost ends an instance whose session the server no longer knows. The call did not
// run and is sent to the next instance.
var errSessionLost = errors.New("it has forgotten the session")

// call calls a tool by its name at the server.
func (i *instance) call(ctx context.Context, tool string, c gateway.Call) (gateway.Result, error) {
	if err := ctx.Err(); err != nil { // a cancel of calls in flight may miss a call that has just begun
		return gateway.Result{}, err
	}
	i.calls.Add(1)
	defer i.calls.Add(-1)
	r := newReply()
	defer i.interceptor.forget(r)
	params := &sdk.CallToolParams{Meta: forwardedMeta(c.Meta), Name: tool, Arguments: json.RawMessage("{}")}
	if len(c.Arguments) > 0 {
		params.Arguments = c.Arguments
	}
	var words chan json.RawMessage
	if c.Progress != nil {
		words = make(chan json.RawMessage, progressBuffer)
		r.token = "p" + strconv.FormatInt(i.interceptor.tokens.Add(1), 10)
		r.progress = func(p json.RawMessage) { pushDroppingOldest(words, p) }
		params.SetProgressToken(r.token)
	}
	a := i.startCall(ctx, r, params)
	if a.follow(r, c.Progress, words) {
		return i.outcome(ctx, r, nil)
	}
	if _, _, _, got := r.answer(); !got && (ctx.Err() != nil || i.closing()) {
		i.waitCancelSent(r)
	}
	return i.outcome(ctx, r, a.err)
}

// pendingCall is a call that was sent.
type pendingCall struct {
	cancel   func()
	detached func() bool // the call outlives the reply, unless its caller disconnects
	done     chan struct{}
	err      error // set once done
	late     atomic.Pointer[time.Timer]
}

// startCall sends a call. The call ends with the caller or with the instance.
func (i *instance) startCall(ctx context.Context, r *reply, params *sdk.CallToolParams) *pendingCall {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &pendingCall{cancel: cancel, detached: context.AfterFunc(ctx, cancel), done: make(chan struct{})}
	down := context.AfterFunc(i.ctx, func() {
		if i.sessionLost() { // unless the server ran it, this call is about to get the same error
			sleep(running, cancelTimeout)
		}
		cancel()
	})
	go func() {
		a.err = i.send(withReply(running, r), r, params)
		close(a.done)
		a.stop()
		down()
		a.detached()
		cancel()
	}()
	return a
}

// stop ends the wait for the SDK.
func (a *pendingCall) stop() {
	if t := a.late.Load(); t != nil {
		t.Stop()
	}
}

// waitCancelSent waits until the cancel of a call was sent to the server; the SDK sends it
// asynchronously.
func (i *instance) waitCancelSent(r *reply) {
	t := time.NewTimer(cancelTimeout)
	defer t.Stop()
	down := i.ctx.Done()
	if i.closing() {
		down = nil
	}
	select {
	case <-r.cancelSent:
	case <-down:
	case <-t.C:
	}
}

// follow reports progress until the call is answered. It returns true if the answer is enough:
// the SDK, which sees the answer or the end of the stream later, need not be waited for unless
// the caller disconnects.
func (a *pendingCall) follow(r *reply, tell func(gateway.Progress), words <-chan json.RawMessage) (answered bool) {
	settled := r.settled
	for over := false; !over; {
		select {
		case w := <-words:
			reportProgress(tell, w)
		case <-settled:
			settled = nil
			a.late.Store(time.AfterFunc(settleTimeout, a.cancel))
			select {
			case <-a.done:
				a.stop()
			default:
			}
			answered = a.detached()
			over = answered
		case <-a.done:
			over = true
		}
	}
	for {
		select {
		case w := <-words:
			reportProgress(tell, w)
		default:
			return answered
		}
	}
}

// pushDroppingOldest must not be called concurrently.
func pushDroppingOldest(words chan json.RawMessage, w json.RawMessage) {
	for {
		select {
		case words <- w:
			return
		default:
		}
		select {
		case <-words:
		default:
		}
	}
}

func reportProgress(tell func(gateway.Progress), params json.RawMessage) {
	var p struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total"`
		Message  string  `json:"message"`
	}
	if json.Unmarshal(params, &p) == nil {
		tell(gateway.Progress{Progress: p.Progress, Total: p.Total, Message: p.Message})
	}
}

// outcome is the answer of the server or the error.
func (i *instance) outcome(ctx context.Context, r *reply, err error) (gateway.Result, error) {
	result, rpcError, fault, got := r.answer()
	switch {
	case err != nil && ctx.Err() != nil: // even if the server answered the cancel
		if !got && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			notify(i.probeNow) // the server may hang; while other calls succeed, nothing else would probe it
		}
		return gateway.Result{}, ctx.Err()
	case r.got404.Load() && i.checkSessionLost(ctx):
		return gateway.Result{}, errSessionLost
	case r.refused.Load() != nil:
		return gateway.Result{}, r.refused.Load()
	case fault != nil:
		if fault.Code == signalbox.CodeToolDown || fault.Code == signalbox.CodeToolLost {
			notify(i.probeNow)
		}
		return gateway.Result{}, fault
	case got && rpcError != nil:
		return gateway.Result{}, i.protocolError(rpcError)
	case got:
		return i.result(result)
	case i.isDown(err):
		return gateway.Result{}, i.lost()
	}
	notify(i.probeNow)
	if err == nil {
		return gateway.Result{}, i.unknown(errors.New("no answer came"))
	}
	var unsent *net.OpError
	if errors.As(err, &unsent) && unsent.Op == "dial" {
		return gateway.Result{}, signalbox.Errorf(signalbox.CodeToolDown, "The server %q could not be reached: %s.", i.p.server.Name, i.explain(err))
	}
	return gateway.Result{}, i.unknown(i.explain(err))
}

// unknown is the error of a call that was sent, or may have been sent, and got no
// answer.
func (i *instance) unknown(why error) error {
	return signalbox.Errorf(signalbox.CodeToolLost, "The server %q did not answer: %s. Whether the tool did its work is not known.", i.p.server.Name, why)
}

// isDown reports whether the call failed because the instance is down. If a request other than
// the call's own failed, the connection has ended, which will be noticed soon.
func (i *instance) isDown(err error) bool {
	if _, ok := errors.AsType[*url.Error](err); ok {
		return i.ctx.Err() != nil
	}
	t := time.NewTimer(settleTimeout)
	defer t.Stop()
	select {
	case <-i.ctx.Done():
		return true
	case <-t.C:
		return false
	}
}

// lost is the error of a call in flight when the server went down.
func (i *instance) lost() error {
	why := i.explain(context.Cause(i.ctx)).Error()
	return signalbox.Errorf(signalbox.CodeToolLost, "The server %q went away during the call (%s). Whether the tool did its work is not known.", i.p.server.Name, why)
}

// protocolError reads a JSON-RPC error.
func (i *instance) protocolError(raw json.RawMessage) error {
	var e struct {
		Code    json.Number     `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return signalbox.Errorf(signalbox.CodeToolFailed, "The server %q answered with an error that cannot be read.", i.p.server.Name)
	}
	code, err := e.Code.Int64()
	if err != nil {
		f, _ := e.Code.Float64() // 0 if it is not a number
		code = int64(f)
	}
	return &gateway.ProtocolError{Code: code, Message: e.Message, Data: e.Data}
}

// result parses the parts of a CallToolResult.
func (i *instance) result(raw json.RawMessage) (gateway.Result, error) {
	var p struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		Meta       json.RawMessage `json:"_meta"`
		IsError    bool            `json:"isError"`
		Type       string          `json:"resultType"`
	}
	failed := func(what string) (gateway.Result, error) {
		return gateway.Result{}, signalbox.Errorf(signalbox.CodeToolFailed, "The server %q %s.", i.p.server.Name, what)
	}
	if len(raw) == 0 || json.Unmarshal(raw, &p) != nil {
		return failed("answered with neither a result nor an error of the protocol")
	}
	if p.Type != "" && p.Type != "complete" {
		return failed("wants more of its caller before it runs the tool (" + strconv.Quote(p.Type) + "), which does not pass the gateway")
	}
	content := notNull(p.Content)
	if content == nil {
		content = json.RawMessage("[]")
	}
	if content[0] != '[' {
		return failed("answered with content that is not a list")
	}
	return gateway.Result{Content: content, Structured: notNull(p.Structured), Meta: notNull(p.Meta), IsError: p.IsError}, nil
}

// forwardedMeta is the request's _meta without the fields that concern only the caller's
// connection.
func forwardedMeta(raw json.RawMessage) sdk.Meta {
	var in map[string]json.RawMessage
	_ = json.Unmarshal(raw, &in) // anything but an object is ignored
	out := sdk.Meta{}
	for k, v := range in {
		switch strings.TrimPrefix(k, "io.modelcontextprotocol/") {
		case "protocolVersion", "clientInfo", "clientCapabilities", "progressToken", "logLevel", "related-task":
		default:
			out[k] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
