package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

const (
	// modernVersion is the first protocol version without sessions.
	modernVersion = "2026-07-28"
	// firstID is the ID of the first direct call; the SDK counts from 1.
	firstID = 1_000_000_000
	// resumeDelay is the delay before a broken stream is resumed, unless the server gives one.
	resumeDelay = time.Second
)

var errStreamEnded = errors.New("its stream of events ended without an answer")

// direct sends calls over streamable HTTP without the SDK, in the protocol versions with
// sessions: the SDK decodes each message several times, each time with a new buffer of 32 KB.
// All other messages go through the SDK.
type direct struct {
	i       *instance
	version string
	session string // "": the server has none
	client  *http.Client
	ids     atomic.Int64
}

// newDirect returns nil if the SDK must make all calls.
func newDirect(i *instance) *direct {
	version := i.session.InitializeResult().ProtocolVersion
	if i.p.server.Transport != toolconf.HTTP || version >= modernVersion {
		return nil
	}
	d := &direct{i: i, version: version, session: i.session.ID(), client: i.web.client()}
	d.ids.Store(firstID)
	return d
}

// send makes a call; the answer goes to the reply of ctx.
func (i *instance) send(ctx context.Context, r *reply, params *sdk.CallToolParams) error {
	if i.direct == nil {
		_, err := i.session.CallTool(ctx, params)
		return err
	}
	return i.direct.call(ctx, r, params)
}

// outgoing is a message to the server.
type outgoing struct {
	Version string `json:"jsonrpc"`
	ID      int64  `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

func (d *direct) call(ctx context.Context, r *reply, params *sdk.CallToolParams) error {
	id := d.ids.Add(1)
	rpcID, err := jsonrpc.MakeID(float64(id))
	if err != nil {
		return err
	}
	resp, err := d.post(ctx, &jsonrpc.Request{ID: rpcID, Method: "tools/call"}, outgoing{"2.0", id, "tools/call", params})
	if err == nil {
		err = d.follow(ctx, r, resp)
	}
	if ctx.Err() == nil {
		return err
	}
	if _, _, _, got := r.answer(); !got {
		go d.sendCancel(context.WithoutCancel(ctx), id, ctx.Err())
	}
	return ctx.Err()
}

// sendCancel cancels a call at the server.
func (d *direct) sendCancel(ctx context.Context, id int64, why error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	const method = "notifications/cancelled"
	resp, err := d.post(ctx, &jsonrpc.Request{Method: method}, outgoing{Version: "2.0", Method: method, Params: map[string]any{"requestId": id, "reason": why.Error()}})
	if err == nil { // on an error the server has gone or does not support cancels
		drain(resp)
	}
}

// drain reads a response to its end, so that its connection can be reused.
func drain(resp *http.Response) {
	_, _ = io.Copy(io.Discard, resp.Body) // a read error does not matter
	resp.Body.Close()
}

// sentKey is the context key of the message that a request carries.
type sentKey struct{}

// post sends a message. msg is the part that the interceptor needs.
func (d *direct) post(ctx context.Context, msg jsonrpc.Message, body any) (*http.Response, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, err
	}
	return d.do(context.WithValue(ctx, sentKey{}, msg), http.MethodPost, &b, "application/json, text/event-stream", "")
}

func (d *direct) do(ctx context.Context, method string, body io.Reader, accept, last string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, d.i.p.server.URL, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Mcp-Protocol-Version", d.version)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if d.session != "" {
		req.Header.Set("Mcp-Session-Id", d.session)
	}
	if last != "" {
		req.Header.Set("Last-Event-Id", last)
	}
	return d.client.Do(req)
}

// follow reads the response to a call. If the stream breaks before the answer, follow resumes
// it, if the server supports that.
func (d *direct) follow(ctx context.Context, r *reply, resp *http.Response) error {
	for {
		stream, ok := resp.Body.(*events)
		if !ok { // the reply has the outcome
			drain(resp)
			return nil
		}
		stream.take = d.handle
		stream.drain()
		if _, _, _, got := r.answer(); got || ctx.Err() != nil {
			return nil
		}
		if stream.last == "" {
			return errStreamEnded
		}
		var err error
		if resp, err = d.resume(ctx, stream); err != nil {
			return err
		}
	}
}

// resume requests the stream after the last event.
func (d *direct) resume(ctx context.Context, stream *events) (*http.Response, error) {
	wait := stream.retry
	if wait <= 0 {
		wait = resumeDelay + rand.N(resumeDelay)
	}
	for sleep(ctx, wait) {
		resp, err := d.do(ctx, http.MethodGet, nil, "text/event-stream", stream.last)
		if err != nil {
			wait = min(2*max(wait, resumeDelay), maxRestartDelay)
			continue
		}
		next, ok := resp.Body.(*events)
		if !ok {
			drain(resp)
			return nil, errStreamEnded
		}
		next.last, next.retry = stream.last, stream.retry
		return resp, nil
	}
	return nil, ctx.Err()
}

// handle handles other messages that the server sends during a call. It refuses
// requests that are meant for the caller.
func (d *direct) handle(msg jsonrpc.Message) {
	req, ok := msg.(*jsonrpc.Request)
	switch {
	case !ok: // a response to an unknown request
	case req.IsCall():
		go d.answer(req)
	case req.Method == "notifications/tools/list_changed":
		notify(d.i.toolsChanged)
	}
}

func (d *direct) answer(req *jsonrpc.Request) {
	ctx, cancel := context.WithTimeout(d.i.ctx, probeTimeout)
	defer cancel()
	out := struct {
		Version string         `json:"jsonrpc"`
		ID      any            `json:"id"`
		Result  any            `json:"result,omitempty"`
		Error   *jsonrpc.Error `json:"error,omitempty"`
	}{Version: "2.0", ID: req.ID.Raw()}
	switch req.Method {
	case "ping":
		out.Result = struct{}{}
	case "roots/list":
		out.Result = json.RawMessage(`{"roots":[]}`)
	default:
		out.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the client does not support " + req.Method}
	}
	if resp, err := d.post(ctx, &jsonrpc.Response{ID: req.ID}, out); err == nil { // on an error the server gets no answer, as from any client that has gone
		drain(resp)
	}
}
