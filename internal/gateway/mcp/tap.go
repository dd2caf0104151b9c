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
)

const (
	// maxMessage bounds one message of a server.
	maxMessage = 16 << 20
	// maxGarbage is how many messages in a row may be of no use.
	maxGarbage = 1000
	// loggedGarbage is how many of them are worth a line each.
	loggedGarbage = 5
	// maxAsked is how many requests of a server may be without their answer.
	maxAsked = 1000
)

var errGarbage = errors.New("it writes other things than MCP messages where those belong (programs log to stderr)")

var errAsks = fmt.Errorf("it asks more than %d things at a time without reading the answers", maxAsked)

// message is a JSON-RPC message in its parts, each as it was written.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// reply takes what a server says to one request.
type reply struct {
	passOn   bool                  // the SDK is to see the result too
	progress func(json.RawMessage) // must not block; nil: nobody wants to know
	token    string                // of its progress
	settled  chan struct{}         // closed once got

	forgotten atomic.Bool   // 404: the server may know no such session, and ran nothing
	told      chan struct{} // closed once the server was told that nobody waits any more

	mu     sync.Mutex
	hushed bool // told is closed
	id     jsonrpc.ID
	got    bool // the rest says what
	result json.RawMessage
	error  json.RawMessage
	fault  *signalbox.Error // of the answer, or of the way it came
}

func newReply() *reply {
	return &reply{settled: make(chan struct{}), told: make(chan struct{})}
}

// sent is told of what has just gone out. Where that is the cancel of the call
// that waits for r, it closes told: the SDK sends it with that call's context,
// on its own time.
func (t *tap) sent(ctx context.Context, msg jsonrpc.Message) {
	if answer, ok := msg.(*jsonrpc.Response); ok {
		t.mu.Lock()
		delete(t.asked, answer.ID)
		t.mu.Unlock()
		return
	}
	r, _ := ctx.Value(replyKey{}).(*reply)
	req, ok := msg.(*jsonrpc.Request)
	if r == nil || !ok || req.Method != "notifications/cancelled" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.hushed {
		r.hushed = true
		close(r.told)
	}
}

func (r *reply) settle(result, rpcError json.RawMessage, fault *signalbox.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.got {
		r.got, r.result, r.error, r.fault = true, result, rpcError, fault
		close(r.settled)
	}
}

// answer is what was settled, if anything was.
func (r *reply) answer() (result, rpcError json.RawMessage, fault *signalbox.Error, got bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result, r.error, r.fault, r.got
}

type replyKey struct{}

// withReply has the answer to the request that is sent with the context put
// into r.
func withReply(ctx context.Context, r *reply) context.Context {
	return context.WithValue(ctx, replyKey{}, r)
}

// tap stands between a transport and the SDK: see the package's description.
type tap struct {
	name string
	log  *slog.Logger
	mask *mask
	bad  func(error) // the server is of no use

	over    atomic.Bool  // nothing is taken from the server any more
	garbage atomic.Int32 // messages of no use in a row
	tokens  atomic.Int64

	mu    sync.Mutex
	open  map[jsonrpc.ID]*reply
	asked map[jsonrpc.ID]bool // by the server, and not answered yet
}

func newTap(name string, log *slog.Logger, m *mask, bad func(error)) *tap {
	return &tap{name: name, log: log, mask: m, bad: bad, open: map[jsonrpc.ID]*reply{}, asked: map[jsonrpc.ID]bool{}}
}

// outgoing notes to which request of the SDK the reply in its context belongs.
func (t *tap) outgoing(ctx context.Context, msg jsonrpc.Message) *reply {
	r, _ := ctx.Value(replyKey{}).(*reply)
	req, ok := msg.(*jsonrpc.Request)
	if r == nil || !ok || !req.IsCall() {
		return nil
	}
	r.mu.Lock()
	r.id = req.ID
	r.mu.Unlock()
	t.mu.Lock()
	t.open[req.ID] = r
	t.mu.Unlock()
	return r
}

// forget lets go of a request that is over, answered or not.
func (t *tap) forget(r *reply) {
	r.mu.Lock()
	id := r.id
	r.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[id] == r {
		delete(t.open, id)
	}
}

func (t *tap) reply(id jsonrpc.ID) *reply {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[id]
}

// incoming takes one message of the server, and returns what the SDK is to
// read instead: nil for nothing. It keeps nothing of data.
func (t *tap) incoming(data []byte) jsonrpc.Message {
	if t.over.Load() {
		return nil
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		t.skip(data)
		return nil
	}
	if m.Method != nil && *m.Method == "notifications/progress" && t.progress(m.Params) {
		t.good()
		return nil
	}
	id := idOf(m.ID)
	r := t.reply(id)
	if m.Method == nil && r != nil && id.IsValid() {
		t.good()
		r.settle(m.Result, notNull(m.Error), nil)
		if !r.passOn || len(m.Result) == 0 {
			return stub(id)
		}
	}
	msg, err := jsonrpc.DecodeMessage(bytes.Clone(data)) // it keeps parts of what it is given
	if err != nil {
		t.skip(data)
		return nil
	}
	t.good()
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() && !t.asks(req.ID) {
		return nil
	}
	return msg
}

// asks counts a request of the server in. The SDK would keep any number of
// them in memory; a server that sends so many and reads no answer is of no
// use. One whose id is taken is dropped: its answer could not be told apart.
func (t *tap) asks(id jsonrpc.ID) bool {
	t.mu.Lock()
	taken, full := t.asked[id], len(t.asked) >= maxAsked
	if !taken && !full {
		t.asked[id] = true
	}
	t.mu.Unlock()
	if !taken && full {
		t.over.Store(true)
		t.bad(errAsks)
	}
	return !taken && !full
}

// tooLarge is told of a message beyond the limit that answers a request.
func (t *tap) tooLarge(id jsonrpc.ID) jsonrpc.Message {
	r := t.reply(id)
	if r == nil {
		t.log.Warn("a message is larger than 16 MiB and was skipped", "server", t.name)
		return nil
	}
	t.good()
	r.settle(nil, nil, errTooLarge(t.name))
	return stub(id)
}

func errTooLarge(server string) *signalbox.Error {
	return signalbox.Errorf(signalbox.CodeTooLarge, "The answer of the server %q is larger than 16 MiB, which is the limit. Ask for less at a time.", server)
}

// progress hands a word on to the call it belongs to. It reports whether there
// is one.
func (t *tap) progress(params json.RawMessage) bool {
	var p struct {
		Token any `json:"progressToken"`
	}
	if json.Unmarshal(params, &p) != nil {
		return false
	}
	token, ok := p.Token.(string)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.open {
		if ok && r.progress != nil && r.token == token {
			r.progress(params)
			return true
		}
	}
	return false
}

func (t *tap) good() {
	t.garbage.Store(0)
}

func (t *tap) skip(data []byte) {
	n := t.garbage.Add(1)
	if n <= loggedGarbage {
		t.log.Warn("skipped what is no MCP message", "server", t.name, "text", t.mask.hide(string(data[:min(len(data), 200)])))
	}
	if n == maxGarbage {
		t.over.Store(true)
		t.bad(errGarbage)
	}
}

// idOf reads an id; the zero ID stands for none and for a wrong one.
func idOf(raw json.RawMessage) jsonrpc.ID {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return jsonrpc.ID{}
	}
	id, _ := jsonrpc.MakeID(v)
	return id
}

// stub is an answer without content that every method of ours accepts.
func stub(id jsonrpc.ID) *jsonrpc.Response {
	return &jsonrpc.Response{ID: id, Result: json.RawMessage(`{"content":[],"tools":[]}`)}
}

func notNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// maxSaid is how many lines of a server's stderr are logged in a second.
const maxSaid = 100

// budget bounds what is logged of what a server says, over all its processes.
type budget struct {
	tell func(left int) // of a second in which lines were left out

	mu   sync.Mutex
	end  time.Time // of the second
	used int
	left int
}

// take reports whether one line more may be logged now.
func (b *budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.left == 0 && !now.Before(b.end) {
		b.end, b.used = now.Add(time.Second), 0
	}
	if b.used < maxSaid {
		b.used++
		return true
	}
	if b.left++; b.left == 1 {
		time.AfterFunc(b.end.Sub(now), b.over)
	}
	return false
}

// over ends a second in which lines were left out.
func (b *budget) over() {
	b.mu.Lock()
	left := b.left
	b.left, b.end = 0, time.Time{}
	b.mu.Unlock()
	b.tell(left)
}
