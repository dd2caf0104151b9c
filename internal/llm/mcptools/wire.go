package mcptools

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// wire is a transport whose answers to tools/list and tools/call are kept as
// they came. The SDK would read them into types of its own, which refuse
// unknown kinds of content, round large numbers and sort the keys of schemas.
type wire struct {
	inner   mcp.Transport
	carrier *carrier
	heard   func(token string, p progress)

	mu   sync.Mutex
	open map[jsonrpc.ID]request     // asked and not answered
	kept map[string]json.RawMessage // answers by the token of the request
}

// request is one whose answer is to be kept.
type request struct{ method, token string }

// hollow is what the SDK is given in place of the answer.
var hollow = map[string]json.RawMessage{
	"tools/list": json.RawMessage(`{"tools":[]}`),
	"tools/call": json.RawMessage(`{"content":[]}`),
}

// progress is a word on how far a request is.
type progress struct {
	Token    any     `json:"progressToken"`
	Message  string  `json:"message"`
	Progress float64 `json:"progress"`
	Total    float64 `json:"total"`
}

func newWire(inner mcp.Transport, c *carrier, heard func(string, progress)) *wire {
	return &wire{inner: inner, carrier: c, heard: heard, open: map[jsonrpc.ID]request{}, kept: map[string]json.RawMessage{}}
}

func (w *wire) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := w.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &wireConn{c, w}, nil
}

// take returns the answer to the request with the token, once.
func (w *wire) take(token string) json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	raw := w.kept[token]
	delete(w.kept, token)
	return raw
}

// forget drops what is left of a request that failed.
func (w *wire) forget(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.kept, token)
	for id, r := range w.open {
		if r.token == token {
			delete(w.open, id)
		}
	}
}

type wireConn struct {
	mcp.Connection
	w *wire
}

func (c *wireConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && hollow[r.Method] != nil {
		var params struct {
			Meta struct {
				Token string `json:"progressToken"`
			} `json:"_meta"`
		}
		if json.Unmarshal(r.Params, &params) == nil && params.Meta.Token != "" {
			c.w.mu.Lock()
			c.w.open[r.ID] = request{r.Method, params.Meta.Token}
			c.w.mu.Unlock()
		}
	}
	return c.Connection.Write(ctx, m)
}

func (c *wireConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil {
		return m, err
	}
	switch r := m.(type) {
	case *jsonrpc.Request:
		// Here, because the SDK tells of progress beside the answer, and so
		// perhaps after it.
		var p progress
		if r.Method == "notifications/progress" && json.Unmarshal(r.Params, &p) == nil {
			token, _ := p.Token.(string)
			c.w.heard(token, p)
		}
	case *jsonrpc.Response:
		if r.Error == nil {
			return c.keep(r), nil
		}
	}
	return m, nil
}

// keep puts an answer aside that was asked for by token.
func (c *wireConn) keep(r *jsonrpc.Response) *jsonrpc.Response {
	var hello struct {
		Version string `json:"protocolVersion"`
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	q, ok := c.w.open[r.ID]
	if !ok {
		// The SDK tells the version only to a connection of its own kind.
		if json.Unmarshal(r.Result, &hello) == nil && hello.Version != "" {
			c.w.carrier.speak(hello.Version)
		}
		return r
	}
	delete(c.w.open, r.ID)
	c.w.kept[q.token] = r.Result
	told := *r
	told.Result = hollow[q.method]
	return &told
}
