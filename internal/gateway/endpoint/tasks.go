package endpoint

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/strictjson"
)

// The tasks extension of the protocol (SEP-2663). The SDK does not have it: this
// file and tasks_*.go implement all of it, so that the SDK's own implementation
// can replace it one day.
const (
	extension = "io.modelcontextprotocol/tasks"

	methodGetTask    = "tasks/get"
	methodUpdateTask = "tasks/update"
	methodCancelTask = "tasks/cancel"
)

// taskParams are the parameters of all methods about a task.
type taskParams struct {
	mcp.ParamsBase
	TaskID    string          `json:"taskId"`
	Responses json.RawMessage `json:"inputResponses,omitempty"` // answers to questions, which Signalbox's tasks never ask
}

type taskRequest = mcp.ServerRequest[*taskParams]

// hasTasks reports whether the extension is served.
func (s *server) hasTasks() bool { return s.tasks != nil || s.relay != nil }

// offerTasks registers the methods with the SDK, which passes them to the middleware.
func (s *server) offerTasks() error {
	for _, method := range []string{methodGetTask, methodUpdateTask, methodCancelTask} {
		if err := mcp.AddReceivingCustomMethod(s.sdk, method, func(context.Context, *mcp.ServerSession, *taskParams) (*ack, error) {
			return nil, errNoOwnTools
		}); err != nil {
			return err
		}
	}
	return nil
}

// declared reports whether a request declares the tasks extension with an object of settings.
// Only the request itself counts, not the session.
func declared(version string, meta mcp.Meta) bool {
	if !isModern(version) {
		return false
	}
	able, _ := meta[mcp.MetaKeyClientCapabilities].(map[string]any)
	extensions, _ := able["extensions"].(map[string]any)
	_, can := extensions[extension].(map[string]any)
	return can
}

// errUndeclared answers task methods of a client that did not declare the extension.
func errUndeclared() error {
	data, err := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{extension: struct{}{}}}})
	if err != nil { // text always marshals
		data = nil
	}
	return &jsonrpc.Error{
		Code: mcp.CodeMissingRequiredClientCapabilities, Data: data,
		Message: "missing required client capability: tasks are for clients that declare the extension " + extension + " in the _meta of each request",
	}
}

// execute makes a call, or creates a task for it: for a client with the extension if the tool
// is async or its queue is slow, for other clients only if the tool is async. These get the
// task's ID as text.
func (s *server) execute(ctx context.Context, c gateway.Call, tasks bool) (gateway.Result, *gateway.ToolTask, error) {
	switch {
	case s.tasks == nil:
	case tasks:
		res, task, err := s.tasks.CallOrPromote(ctx, gateway.TaskCall{Call: c}, s.taskAfter)
		if task != nil {
			return gateway.Result{}, task, s.cancelUnannounced(ctx, task, c.Caller)
		}
		return res, nil, err
	case s.async(c.Tool):
		task, err := s.tasks.Submit(ctx, gateway.TaskCall{Call: c})
		if err == nil {
			err = s.cancelUnannounced(ctx, &task, c.Caller)
		}
		if err != nil {
			return gateway.Result{}, nil, err
		}
		return gateway.Queued(task, s.agentName), nil, nil
	}
	res, err := s.gw.Call(ctx, c)
	return res, nil, err
}

// cancelUnannounced cancels a task whose creator disconnected before it got the ID.
// Disconnecting is a cancel of the call, and without the ID nobody could fetch the result.
func (s *server) cancelUnannounced(ctx context.Context, t *gateway.ToolTask, by gateway.Caller) error {
	gone := ctx.Err()
	if gone == nil {
		return nil
	}
	if _, err := s.tasks.Cancel(context.WithoutCancel(ctx), t.Task.ID, by.Who.String()); err != nil && !isCode(err, signalbox.CodeAlreadyEnded) {
		s.log.Error("a task whose caller has gone could not be cancelled", "task", t.Task.ID, "error", err)
	}
	return gone
}

// toolFinder is a Gateway with a lookup by name.
type toolFinder interface {
	Tool(name string) (gateway.Tool, bool)
}

// async reports whether a tool's calls are tasks.
func (s *server) async(name string) bool {
	if f, ok := s.gw.(toolFinder); ok {
		tool, _ := f.Tool(name)
		return tool.Async
	}
	tools := s.gw.Tools()
	i := sort.Search(len(tools), func(i int) bool { return tools[i].Name >= name })
	return i < len(tools) && tools[i].Name == name && tools[i].Async
}

// handleTask handles the methods of the extension.
func (s *server) handleTask(ctx context.Context, method string, r *taskRequest) (mcp.Result, error) {
	if !isModern(r.ProtocolVersion()) { // older versions have other methods of that name
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("%q is served from protocol version %s on", method, modern)}
	}
	from := s.from(r.Extra)
	if from == nil {
		return nil, context.Canceled // the connection is already closed
	}
	if r.Params == nil || !declared(r.ProtocolVersion(), r.Params.Meta) {
		return nil, errUndeclared()
	}
	if s.relay != nil {
		return s.relay.forwardTask(ctx, method, r.Params)
	}
	task, err := s.taskOf(ctx, from.caller, r.Params.TaskID)
	if err != nil {
		return nil, err
	}
	switch method {
	case methodGetTask:
		return &taskResult{task: wireTask(&task, true), kind: resultComplete}, nil
	case methodCancelTask:
		if _, err := s.tasks.Cancel(ctx, task.Task.ID, from.caller.Who.String()); err != nil && !isCode(err, signalbox.CodeAlreadyEnded) {
			return nil, s.taskError(ctx, err)
		}
	}
	return &ack{}, nil
}

// taskOf returns a task of the caller. Another caller's task is not found, after
// the same lookup.
func (s *server) taskOf(ctx context.Context, who gateway.Caller, id string) (gateway.ToolTask, error) {
	if !signalbox.ValidID(id) {
		return gateway.ToolTask{}, errUnknownTask(id)
	}
	task, err := s.tasks.Task(ctx, id)
	switch {
	case isCode(err, signalbox.CodeNotFound) || err == nil && task.Task.Owner != who.Principal:
		return gateway.ToolTask{}, errUnknownTask(id)
	case err != nil:
		return gateway.ToolTask{}, s.taskError(ctx, err)
	}
	return task, nil
}

func errUnknownTask(id string) error {
	const most = 64
	if len(id) > most {
		id = id[:most] + "…"
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("there is no task %q of yours: it never was, or it ended so long ago that it was pruned", id)}
}

// taskError converts a failure of Signalbox to a protocol error.
func (s *server) taskError(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	s.log.Error("a task cannot be served", "error", err)
	message := "something went wrong inside the gateway; its log has the cause"
	var known *signalbox.Error
	if errors.As(err, &known) && known.Code != signalbox.CodeInternal {
		message = string(known.Code) + ": " + known.Message
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message}
}

func isCode(err error, code signalbox.Code) bool {
	var known *signalbox.Error
	return errors.As(err, &known) && known.Code == code
}

// eventReader reads the data of server-sent events.
type eventReader struct{ from *bufio.Reader }

var errTooLong = errors.New("an event of it is too long")

// event returns the data of the next event that has any.
func (l *eventReader) event() ([]byte, error) {
	var data []byte
	for {
		line, err := l.line(maxRelayed - len(data))
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if len(data) > 0 {
				return data, nil
			}
			continue
		}
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
		}
	}
}

// line returns the next line without its end.
func (l *eventReader) line(most int) ([]byte, error) {
	var line []byte
	for {
		part, err := l.from.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, errTooLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}

const (
	methodHeader = "Mcp-Method"
	nameHeader   = "Mcp-Name"
)

// readBody reads a request body and restores it for the next reader. tree is the object if it
// is valid by strictjson's rules. readBody refuses bodies that are too large or have duplicate
// members, which a proxy may have read differently. The SDK reports other errors.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, tree *strictjson.Object, ok bool) {
	if r.Method != http.MethodPost || r.Body == nil {
		return nil, nil, true
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "the request is too large")
		return nil, nil, false
	case err != nil:
		refuse(w, http.StatusBadRequest, "the request could not be read")
		return nil, nil, false
	}
	var wrong *strictjson.Error
	parsed, err := strictjson.Parse(body)
	if errors.As(err, &wrong) && wrong.What == strictjson.Duplicate && !strings.Contains(wrong.Path, "params.arguments.") {
		refuse(w, http.StatusBadRequest, wrong.Error())
		return nil, nil, false
	}
	tree, _ = parsed.(*strictjson.Object)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, tree, true
}

// checkTaskRequest makes the checks of task requests that the SDK does not make. It answers
// requests that it refuses.
func checkTaskRequest(from *request, r *http.Request, body []byte) bool {
	switch r.Header.Get(methodHeader) { // the SDK makes sure that the body has the same method
	case methodListen:
		from.listen = listenOf(body)
	case methodGetTask, methodUpdateTask, methodCancelTask:
		return checkNameHeader(from.answer, r.Header.Get(nameHeader), body)
	}
	return true
}

// checkNameHeader refuses task requests whose header Mcp-Name does not name the task: a proxy
// may have routed by the header. The SDK compares it only for its own methods.
func checkNameHeader(w http.ResponseWriter, name string, body []byte) bool {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Params struct {
			TaskID *string `json:"taskId"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &m) != nil || m.Params.TaskID == nil {
		return true // the SDK reports what is wrong with it
	}
	var wrong string
	switch name {
	case *m.Params.TaskID:
		return true
	case "":
		wrong = "missing required Mcp-Name header: requests about a task carry its id there"
	default:
		wrong = "header mismatch: Mcp-Name is not the taskId of the body"
	}
	refuseWith(w, http.StatusBadRequest, m.ID, mcp.CodeHeaderMismatch, wrong)
	return false
}
