package mcptools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/llm"
)

// Options say where the tools are and who calls them.
type Options struct {
	URL       string // of the MCP endpoint, streamable HTTP
	Token     string // Authorization: Bearer; "": none
	Execution string // queue_id of the execution that calls the tools; "": none
	Trace     string // traceparent of the calls; "": none

	// Allowed restricts the tools; nil: all.
	Allowed func(name string) bool
	// Progress is called with the progress of a call, before the call returns.
	// Calls do not overlap. It must return quickly, because all calls wait for
	// it.
	Progress func(call llm.ToolCall, text string)
	// Patience is how long to retry an unreachable endpoint, so that a director
	// may restart in the middle of a run; default 30 s.
	Patience time.Duration
}

// Tools is an llm.Toolset. Make one with New, and call Close.
type Tools struct {
	o       Options
	shown   string // the URL without parts that may be secret
	carrier *carrier
	client  *mcp.Client
	last    atomic.Int64 // number of the last request

	turn chan struct{} // a semaphore that guards the session
	now  *session      // guarded by turn

	mu       sync.Mutex
	progress map[string]func(text string) // by token of the request
	offered  []string                     // names in the last list, allowed or not
}

// maxTools and maxPages bound a list of tools.
const (
	maxTools = 1000
	maxPages = 100
)

// New makes a toolset; it connects on first use.
func New(o Options) (*Tools, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the endpoint of the tools is not a URL such as http://127.0.0.1:8080/mcp")
	}
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	t := &Tools{
		o: o, shown: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(),
		carrier: newCarrier(u, &o), turn: make(chan struct{}, 1), progress: map[string]func(string){},
	}
	t.client = mcp.NewClient(&mcp.Implementation{Name: "signalbox-agent", Version: "1"}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	return t, nil
}

// Close ends the session, so that the server releases what it holds.
func (t *Tools) Close() {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	if t.now != nil {
		_ = t.now.Close() // if the server cannot be reached, the session times out
		t.now = nil
	}
	t.carrier.client().CloseIdleConnections()
}

// Tools lists the allowed tools.
func (t *Tools) Tools(ctx context.Context) ([]llm.Tool, error) {
	all, err := t.list(ctx)
	if err != nil {
		return nil, t.explain(ctx, err)
	}
	return all, nil
}

// Offered returns the names of all tools in the last list, including those
// that Options.Allowed leaves out. It is empty before the first list.
func (t *Tools) Offered() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.offered
}

func (t *Tools) list(ctx context.Context) ([]llm.Tool, error) {
	for tries := 1; ; tries++ {
		s, err := t.session(ctx)
		if err != nil {
			return nil, err
		}
		all, err := t.listOn(ctx, s)
		if err == nil || ctx.Err() != nil || errors.Is(err, errNoList) || !t.drop(s, err) || tries == 3 {
			return all, err
		}
	}
}

// listWait bounds one listing; the server bounds calls.
const listWait = 30 * time.Second

var errNoList = errors.New("no list of tools within 30s")

func (t *Tools) listOn(ctx context.Context, s *session) ([]llm.Tool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listWait, errNoList)
	defer cancel()
	var all []llm.Tool
	var offered []string
	for page, cursor := 0, ""; ; page++ {
		token := t.token()
		_, err := s.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor, Meta: mcp.Meta{"progressToken": token}})
		raw := s.wire.take(token)
		if err != nil {
			s.wire.forget(token)
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, err
		}
		var list struct {
			Tools []struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Schema      json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
			Next string `json:"nextCursor"`
		}
		if json.Unmarshal(raw, &list) != nil {
			return nil, errors.New("its answer is not a list of tools")
		}
		for _, tool := range list.Tools {
			offered = append(offered, tool.Name)
			if t.allowed(tool.Name) {
				all = append(all, llm.Tool{Name: tool.Name, Description: tool.Description, Schema: tool.Schema})
			}
		}
		if len(all) > maxTools || page == maxPages {
			return nil, fmt.Errorf("it offers more than %d tools, the limit for one model", maxTools)
		}
		if cursor = list.Next; cursor == "" {
			t.mu.Lock()
			t.offered = offered
			t.mu.Unlock()
			return all, nil
		}
	}
}

func (t *Tools) allowed(name string) bool { return t.o.Allowed == nil || t.o.Allowed(name) }

// Call runs a tool. A call is sent again only if the server certainly did not
// execute it: the server was unreachable, or no longer knew the session.
func (t *Tools) Call(ctx context.Context, c llm.ToolCall) (string, bool, error) {
	if !t.allowed(c.Name) {
		return fmt.Sprintf("There is no tool %s.", plain(c.Name)), true, nil
	}
	args := json.RawMessage(bytes.TrimSpace([]byte(c.Arguments)))
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if args[0] != '{' || !json.Valid(args) {
		return "The arguments are not a JSON object.", true, nil
	}
	for tries := 1; ; tries++ {
		s, err := t.session(ctx)
		if err != nil {
			return "", false, t.explain(ctx, err)
		}
		text, isError, err := t.callOn(ctx, s, c, args)
		said := spoken(err)
		switch {
		case err == nil:
			return text, isError, nil
		case ctx.Err() != nil:
			return "", false, context.Cause(ctx)
		case unsent(err) && tries < 5:
			t.drop(s, err)
		case said != nil:
			return fmt.Sprintf("%s (error %d)", said.Message, said.Code), true, nil //nolint:nilerr // reported to the model
		case t.drop(s, err):
			return lost(c.Name, err), true, nil
		default:
			return "", false, t.explain(ctx, err)
		}
	}
}

// lost describes a call whose connection ended, possibly because of another
// call.
func lost(name string, err error) string {
	text := "The connection was lost while " + name + " ran: whether it was carried out is not known."
	if strings.Contains(err.Error(), errTooLarge.Error()) { // the SDK keeps only the text
		text += " An answer was larger than 32 MiB; ask for less at a time."
	}
	return text
}

func (t *Tools) callOn(ctx context.Context, s *session, c llm.ToolCall, args json.RawMessage) (string, bool, error) {
	token := t.token()
	t.listen(token, c)
	defer t.listen(token, llm.ToolCall{})
	defer s.wire.forget(token)
	_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: c.Name, Arguments: args, Meta: mcp.Meta{"progressToken": token}})
	if err != nil {
		return "", false, err
	}
	text, isError, err := readResult(s.wire.take(token))
	if err != nil { // the error is not about the connection
		return fmt.Sprintf("The tool %s answered, but %v.", c.Name, err), true, nil
	}
	return text, isError, nil
}

func (t *Tools) token() string { return "call-" + strconv.FormatInt(t.last.Add(1), 10) }

// listen passes the progress of a request to its call, until the call ends.
func (t *Tools) listen(token string, c llm.ToolCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Name == "" || t.o.Progress == nil {
		delete(t.progress, token)
		return
	}
	t.progress[token] = func(text string) { t.o.Progress(c, text) }
}

// heard receives a progress report for the request with the token.
func (t *Tools) heard(token string, p progress) {
	t.mu.Lock()
	tell := t.progress[token]
	t.mu.Unlock()
	if tell == nil {
		return
	}
	text := plain(p.Message)
	if text == "" && p.Total > 0 {
		text = fmt.Sprintf("%g of %g", p.Progress, p.Total)
	}
	if text != "" {
		tell(text)
	}
}
