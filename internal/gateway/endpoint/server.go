package endpoint

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// Gateway is what the endpoint serves; *gateway.Gateway does.
type Gateway interface {
	Tools() []gateway.Tool
	Call(ctx context.Context, c gateway.Call) (gateway.Result, error)
	OnChange(f func()) (stop func())
	EndSession(session string)
}

const (
	// modern is the first version of the protocol without sessions.
	modern = "2026-07-28"
	// pageSize is the number of tools per page of tools/list. It is large because many clients
	// ignore further pages.
	pageSize = 500

	methodInitialize = "initialize"
	methodListTools  = "tools/list"
	methodCallTool   = "tools/call"
	methodCancelled  = "notifications/cancelled"
)

// request is the origin of a client's message.
type request struct {
	ctx    context.Context //nolint:containedctx // of the connection: a call ends with it
	caller gateway.Caller
	answer *answer // nil on stdio
	listen *listen // of a listen request that names tasks
}

// server is the MCP server of all transports.
type server struct {
	gw  Gateway
	sdk *mcp.Server
	log *slog.Logger
	// info is the server's name and version in answers of the newer protocol.
	info json.RawMessage
	// from returns the request that carried a message.
	from func(*mcp.RequestExtra) *request
	// The source of tasks; both nil: none.
	tasks     gateway.Tasks
	relay     *Relay
	taskAfter time.Duration
	agentName string
	// watched are the definitions of the tools whose headers are compared.
	watchMu sync.Mutex
	watched map[string]string
	// allowSession decides whether a session may begin; nil: any may.
	allowSession func(*request, *mcp.ServerSession) error
}

func newServer(gw Gateway, o Options) *server {
	s := &server{gw: gw, log: o.Log, tasks: o.Tasks, relay: o.Relay, taskAfter: o.TaskAfter, agentName: o.AgentName}
	able := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}
	if s.hasTasks() {
		able.AddExtension(extension, nil)
	}
	impl := &mcp.Implementation{Name: "signalbox", Title: "Signalbox", Version: o.Version}
	s.info, _ = marshal(impl) // text always marshals
	s.sdk = mcp.NewServer(impl, &mcp.ServerOptions{
		Instructions: o.Instructions, Capabilities: able,
	})
	s.sdk.AddReceivingMiddleware(s.middleware)
	if s.hasTasks() {
		s.sdk.AddSendingMiddleware(s.acknowledge)
		if err := s.offerTasks(); err != nil { // the SDK has tasks of its own by now
			panic(err)
		}
	}
	s.watchHeaders()
	return s
}

// changed notifies all sessions that the tools changed. The SDK does so when a tool of its own
// is replaced; that tool is not listed.
func (s *server) changed() {
	s.watchHeaders()
	s.sdk.AddTool(&mcp.Tool{Name: "signalbox", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, errNoOwnTools })
}

var errNoOwnTools = errors.New("endpoint: the SDK was asked for a tool")

// middleware handles tool methods in place of the SDK.
func (s *server) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch r := req.(type) {
		case *mcp.ListToolsRequest:
			if method == methodListTools {
				return s.listTools(r)
			}
		case *mcp.CallToolRequest:
			if method == methodCallTool {
				return s.callTool(ctx, r)
			}
		case *mcp.SubscriptionsListenRequest:
			return s.listen(ctx, next, r)
		case *taskRequest:
			return s.handleTask(ctx, method, r)
		}
		switch group, _, _ := strings.Cut(method, "/"); {
		case method == methodInitialize:
			return s.initialize(ctx, next, req)
		case notServed[group]: // the SDK would answer some of them with empty lists
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("%q is not served: this server has tools only", method)}
		}
		return next(ctx, method, req)
	}
}

// notServed are method groups without a capability.
var notServed = map[string]bool{"prompts": true, "resources": true, "completion": true, "logging": true}

// initialize begins a session of the older protocol.
func (s *server) initialize(ctx context.Context, next mcp.MethodHandler, req mcp.Request) (mcp.Result, error) {
	if s.allowSession != nil {
		ss, _ := req.GetSession().(*mcp.ServerSession)
		if err := s.allowSession(s.from(req.GetExtra()), ss); err != nil {
			return nil, &jsonrpc.Error{Code: codeSessionRefused, Message: err.Error()}
		}
	}
	res, err := next(ctx, methodInitialize, req)
	if r, ok := res.(*mcp.InitializeResult); ok && r != nil {
		delete(r.Capabilities.Extensions, extension) // tasks belong to the newer protocol; the SDK copied this map
	}
	return res, err
}

// codeSessionRefused is in the range that JSON-RPC reserves for servers.
const codeSessionRefused = -32000

func isModern(version string) bool { return version >= modern }

// listTools answers tools/list with the definitions exactly as their servers
// wrote them.
func (s *server) listTools(r *mcp.ListToolsRequest) (mcp.Result, error) {
	var after string
	if r.Params != nil && r.Params.Cursor != "" {
		name, err := base64.RawURLEncoding.DecodeString(r.Params.Cursor)
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is not one of this server: begin again without it"}
		}
		after = string(name)
	}
	tools := s.gw.Tools()
	first := sort.Search(len(tools), func(i int) bool { return tools[i].Name > after })
	if after == "" {
		first = 0
	}
	tools = tools[first:]
	list := &toolList{modern: isModern(r.ProtocolVersion())}
	if len(tools) > pageSize {
		tools = tools[:pageSize]
		list.next = base64.RawURLEncoding.EncodeToString([]byte(tools[pageSize-1].Name))
	}
	list.tools = make([]json.RawMessage, len(tools))
	for i := range tools {
		list.tools[i] = tools[i].Definition
	}
	return list, nil
}

// toolCall is a parsed tools/call.
type toolCall struct {
	name      string
	arguments json.RawMessage
	meta      mcp.Meta
	version   string                 // of the protocol
	progress  func(gateway.Progress) // nil: not requested
}

// result is an answer that marshals itself.
type result interface {
	mcp.Result
	json.Marshaler
}

// callTool answers a tools/call that the SDK has read.
func (s *server) callTool(ctx context.Context, r *mcp.CallToolRequest) (mcp.Result, error) {
	from := s.from(r.GetExtra())
	if from == nil {
		return nil, context.Canceled // the connection is already closed
	}
	// Use the connection's context, so that the call ends with the connection
	// even if the protocol would let it continue.
	during, cancel := context.WithCancel(from.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	c := toolCall{name: r.Params.Name, arguments: r.Params.Arguments, meta: r.Params.Meta, version: r.ProtocolVersion()}
	if declared(c.version, c.meta) && s.relay != nil && !s.hasHeaderParams(c.name) {
		defer from.keepAlive()()
		return s.relay.callTool(during, r)
	}
	if token := r.Params.GetProgressToken(); token != nil {
		c.progress = progress(token, func(p *mcp.ProgressNotificationParams) {
			_ = r.Session.NotifyProgress(ctx, p) // an error means that the client has gone, which ends the call anyway
		})
	}
	res, err := s.call(during, from, c)
	if err != nil {
		return nil, err
	}
	return res, nil
}

// call answers tools/call through the gateway.
func (s *server) call(ctx context.Context, from *request, c toolCall) (result, error) {
	args := bytes.TrimSpace(c.arguments)
	if bytes.Equal(args, []byte("null")) {
		args = nil
	}
	if len(args) > 0 && args[0] != '{' {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "arguments must be an object"}
	}
	meta, err := metaOf(c.meta)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "_meta: " + err.Error()}
	}
	defer from.keepAlive()()
	res, task, err := s.execute(ctx, gateway.Call{
		Tool: c.name, Arguments: args, Meta: meta, Caller: from.caller, Progress: c.progress,
	}, declared(c.version, c.meta))
	switch {
	case err != nil:
		return s.failed(ctx, c.name, isModern(c.version), err)
	case task != nil:
		return &taskResult{task: wireTask(task, false), kind: resultTask}, nil
	}
	return &callResult{Result: res, modern: isModern(c.version)}, nil
}

// keepAlive sends keep-alives until stop.
func (r *request) keepAlive() (stop func()) {
	if r.answer == nil {
		return func() {}
	}
	r.answer.startKeepAlive()
	return r.answer.stopKeepAlive
}

// failed converts an error of the gateway. Upstream errors pass unchanged, an unknown tool
// becomes the protocol's error, and all others become a result that the model reads.
func (s *server) failed(ctx context.Context, tool string, modern bool, err error) (result, error) {
	if said, ok := errors.AsType[*gateway.ProtocolError](err); ok {
		return nil, &jsonrpc.Error{Code: said.Code, Message: said.Message, Data: said.Data}
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, err
	}
	var known *signalbox.Error
	if !errors.As(err, &known) || known.Code == signalbox.CodeInternal {
		s.log.Error("tool call failed", "tool", tool, "error", err)
		known = signalbox.Errorf(signalbox.CodeInternal, "something went wrong inside the gateway; its log has the cause")
	}
	if known.Code == signalbox.CodeNotFound {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: known.Message}
	}
	return &callResult{Result: textResult(fmt.Sprintf("%s: %s", known.Code, known.Message), true), modern: modern}, nil
}

// logLevelKey requests log messages, which this endpoint does not support.
const logLevelKey = "io.modelcontextprotocol/logLevel"

// metaOf is the request's _meta without the fields meant for this endpoint.
func metaOf(meta mcp.Meta) (json.RawMessage, error) {
	var rest map[string]any
	for k, v := range meta {
		switch k {
		case "progressToken", mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities, logLevelKey:
		default:
			if rest == nil {
				rest = map[string]any{}
			}
			rest[k] = v
		}
	}
	if rest == nil {
		return nil, nil
	}
	return json.Marshal(rest)
}
