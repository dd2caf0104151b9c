package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

const (
	// maxMessage is the maximum size of a server's message.
	maxMessage = 16 << 20
	// maxGarbage is how many consecutive malformed messages are tolerated.
	maxGarbage = 1000
	// loggedGarbage is how many malformed messages are logged individually.
	loggedGarbage = 5
	// maxServerRequests is how many unanswered requests a server may have.
	maxServerRequests = 1000
)

var errGarbage = errors.New("it writes text other than MCP messages (programs must log to stderr)")

var errServerRequests = fmt.Errorf("it sends more than %d requests without reading the answers", maxServerRequests)

// message is a JSON-RPC message split into its parts, each as it was written.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// reply collects the server's messages for one request.
type reply struct {
	passOn   bool                  // the SDK also needs the result
	progress func(json.RawMessage) // must not block; nil: no reports
	token    string                // progress token
	settled  chan struct{}         // closed once isSettled

	got404     atomic.Bool // the server may have lost the session; it ran nothing
	refused    atomic.Pointer[gateway.Refused]
	cancelSent chan struct{} // closed once the cancel is sent

	mu           sync.Mutex
	cancelClosed bool // cancelSent is closed
	id           jsonrpc.ID
	isSettled    bool // with the fields below
	result       json.RawMessage
	error        json.RawMessage
	fault        *signalbox.Error // an error in the answer or its transport
}

func newReply() *reply {
	return &reply{settled: make(chan struct{}), cancelSent: make(chan struct{})}
}

// sent is called for each message sent. If the message cancels the call that waits for r, it
// closes cancelSent. The SDK sends a cancel asynchronously, with the context of that call.
func (ic *interceptor) sent(ctx context.Context, msg jsonrpc.Message) {
	if answer, ok := msg.(*jsonrpc.Response); ok {
		ic.mu.Lock()
		delete(ic.pending, answer.ID)
		ic.mu.Unlock()
		return
	}
	r, _ := ctx.Value(replyKey{}).(*reply)
	req, ok := msg.(*jsonrpc.Request)
	if r == nil || !ok || req.Method != "notifications/cancelled" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.cancelClosed {
		r.cancelClosed = true
		close(r.cancelSent)
	}
}

func (r *reply) settle(result, rpcError json.RawMessage, fault *signalbox.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isSettled {
		r.isSettled, r.result, r.error, r.fault = true, result, rpcError, fault
		close(r.settled)
	}
}

// answer is the settled answer, if any.
func (r *reply) answer() (result, rpcError json.RawMessage, fault *signalbox.Error, got bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result, r.error, r.fault, r.isSettled
}

type replyKey struct{}

// withReply makes r receive the answer to the request that is sent with the
// context.
func withReply(ctx context.Context, r *reply) context.Context {
	return context.WithValue(ctx, replyKey{}, r)
}

// interceptor sits between a transport and the SDK: see the package
// documentation.
type interceptor struct {
	name string
	log  *slog.Logger
	mask *mask
	bad  func(error) // called when the server is unusable

	closed  atomic.Bool  // no more messages are accepted
	garbage atomic.Int32 // consecutive malformed messages
	tokens  atomic.Int64

	mu      sync.Mutex
	open    map[jsonrpc.ID]*reply
	pending map[jsonrpc.ID]bool // unanswered requests of the server
}

func newInterceptor(name string, log *slog.Logger, m *mask, bad func(error)) *interceptor {
	return &interceptor{name: name, log: log, mask: m, bad: bad, open: map[jsonrpc.ID]*reply{}, pending: map[jsonrpc.ID]bool{}}
}

// outgoing links a request of the SDK to the reply in its context.
func (ic *interceptor) outgoing(ctx context.Context, msg jsonrpc.Message) *reply {
	r, _ := ctx.Value(replyKey{}).(*reply)
	req, ok := msg.(*jsonrpc.Request)
	if r == nil || !ok || !req.IsCall() {
		return nil
	}
	r.mu.Lock()
	r.id = req.ID
	r.mu.Unlock()
	ic.mu.Lock()
	ic.open[req.ID] = r
	ic.mu.Unlock()
	return r
}

// forget removes a finished request, answered or not.
func (ic *interceptor) forget(r *reply) {
	r.mu.Lock()
	id := r.id
	r.mu.Unlock()
	ic.mu.Lock()
	defer ic.mu.Unlock()
	if ic.open[id] == r {
		delete(ic.open, id)
	}
}

func (ic *interceptor) reply(id jsonrpc.ID) *reply {
	ic.mu.Lock()
	defer ic.mu.Unlock()
	return ic.open[id]
}

// incoming handles a message of the server, and returns what the SDK reads instead; nil is
// nothing. It does not retain data.
func (ic *interceptor) incoming(data []byte) jsonrpc.Message {
	if ic.closed.Load() {
		return nil
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		ic.skip(data)
		return nil
	}
	if m.Method != nil && *m.Method == "notifications/progress" && ic.progress(m.Params) {
		ic.good()
		return nil
	}
	id := idOf(m.ID)
	r := ic.reply(id)
	if m.Method == nil && r != nil && id.IsValid() {
		ic.good()
		r.settle(m.Result, notNull(m.Error), nil)
		if !r.passOn || len(m.Result) == 0 {
			return stub(id)
		}
	}
	msg, err := jsonrpc.DecodeMessage(bytes.Clone(data)) // the decoder retains parts of its input
	if err != nil {
		ic.skip(data)
		return nil
	}
	ic.good()
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() && !ic.trackRequest(req.ID) {
		return nil
	}
	return msg
}

// trackRequest counts a request of the server. The SDK would keep any number in memory,
// so a server that sends too many requests and reads no answer counts as unusable. A
// request whose ID is in use is dropped.
func (ic *interceptor) trackRequest(id jsonrpc.ID) bool {
	ic.mu.Lock()
	taken, full := ic.pending[id], len(ic.pending) >= maxServerRequests
	if !taken && !full {
		ic.pending[id] = true
	}
	ic.mu.Unlock()
	if !taken && full {
		ic.closed.Store(true)
		ic.bad(errServerRequests)
	}
	return !taken && !full
}

// tooLarge fails the request whose answer is too large.
func (ic *interceptor) tooLarge(id jsonrpc.ID) jsonrpc.Message {
	r := ic.reply(id)
	if r == nil {
		ic.log.Warn("a message is larger than 16 MiB and was skipped", "server", ic.name)
		return nil
	}
	ic.good()
	r.settle(nil, nil, errTooLarge(ic.name))
	return stub(id)
}

func errTooLarge(server string) *signalbox.Error {
	return signalbox.Errorf(signalbox.CodeTooLarge, "The answer of the server %q is larger than 16 MiB, which is the limit. Ask for less at a time.", server)
}

// progress passes progress on to its call. It reports whether there is such a
// call.
func (ic *interceptor) progress(params json.RawMessage) bool {
	var p struct {
		Token any `json:"progressToken"`
	}
	if json.Unmarshal(params, &p) != nil {
		return false
	}
	token, ok := p.Token.(string)
	ic.mu.Lock()
	defer ic.mu.Unlock()
	for _, r := range ic.open {
		if ok && r.progress != nil && r.token == token {
			r.progress(params)
			return true
		}
	}
	return false
}

func (ic *interceptor) good() {
	ic.garbage.Store(0)
}

func (ic *interceptor) skip(data []byte) {
	n := ic.garbage.Add(1)
	if n <= loggedGarbage {
		ic.log.Warn("skipped text that is not an MCP message", "server", ic.name, "text", ic.mask.hide(string(data[:min(len(data), 200)])))
	}
	if n == maxGarbage {
		ic.closed.Store(true)
		ic.bad(errGarbage)
	}
}

// idOf parses an ID; the zero ID stands for none or an invalid one.
func idOf(raw json.RawMessage) jsonrpc.ID {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return jsonrpc.ID{}
	}
	id, _ := jsonrpc.MakeID(v)
	return id
}

// stub is an empty result that fits every method the provider calls.
func stub(id jsonrpc.ID) *jsonrpc.Response {
	return &jsonrpc.Response{ID: id, Result: json.RawMessage(`{"content":[],"tools":[]}`)}
}

func notNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// maxStderrLines is how many stderr lines of a server are logged per second.
const maxStderrLines = 100

// logBudget limits the logged stderr lines of a server, over all its processes.
type logBudget struct {
	reportTimer func(left int) // reports the lines dropped in a second

	mu   sync.Mutex
	end  time.Time // end of the current second
	used int
	left int
}

// take reports whether one more line may be logged now.
func (b *logBudget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.left == 0 && !now.Before(b.end) {
		b.end, b.used = now.Add(time.Second), 0
	}
	if b.used < maxStderrLines {
		b.used++
		return true
	}
	if b.left++; b.left == 1 {
		time.AfterFunc(b.end.Sub(now), b.over)
	}
	return false
}

// over ends a second in which lines were dropped.
func (b *logBudget) over() {
	b.mu.Lock()
	left := b.left
	b.left, b.end = 0, time.Time{}
	b.mu.Unlock()
	b.reportTimer(left)
}
