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
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

const (
	methodListen      = "subscriptions/listen"
	notificationAck   = "notifications/subscriptions/acknowledged"
	notificationTasks = "notifications/tasks"

	// maxWatched is the maximum number of tasks per stream. Further tasks are not acknowledged
	// but can be polled.
	maxWatched = 100
	// minPoll and maxPoll bound how often an open task is read. Its end is reported at once.
	minPoll = time.Second
	maxPoll = 30 * time.Second
)

// listen is the part of a listen request about tasks, which the SDK does not
// know.
type listen struct {
	id      json.RawMessage // of the request, which identifies the stream
	wanted  []string
	agreed  []gateway.ToolTask
	watches sync.WaitGroup
}

// listenOf parses the listen request.
func listenOf(body []byte) *listen {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Params struct {
			Notifications struct {
				TaskIDs []string `json:"taskIds"`
			} `json:"notifications"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &m) != nil || len(m.Params.Notifications.TaskIDs) == 0 {
		return nil // the SDK reports what is wrong with it, if anything
	}
	return &listen{id: m.ID, wanted: m.Params.Notifications.TaskIDs}
}

type listenKey struct{}

// listen answers a listen request that names tasks. The SDK keeps the stream and its other
// subscriptions; task notifications are written to the same stream.
func (s *server) listen(ctx context.Context, next mcp.MethodHandler, r *mcp.SubscriptionsListenRequest) (mcp.Result, error) {
	from := s.from(r.Extra)
	if from == nil || from.listen == nil || s.tasks == nil {
		return next(ctx, methodListen, r)
	}
	if r.Params == nil || !declared(r.ProtocolVersion(), r.Params.Meta) {
		return nil, errUndeclared()
	}
	l := from.listen
	seen := map[string]bool{}
	for _, id := range l.wanted {
		if len(seen) == maxWatched {
			break // counts unknown tasks as well: each costs a read of the store
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		if task, err := s.taskOf(ctx, from.caller, id); err == nil {
			l.agreed = append(l.agreed, task)
		}
	}
	res, err := next(context.WithValue(ctx, listenKey{}, from), methodListen, r)
	l.watches.Wait() // until all have ended or the client has gone
	return res, err
}

// ackParams are the parameters of the acknowledgement that listening has
// begun, with the tasks.
type ackParams struct {
	mcp.ParamsBase
	Notifications struct {
		mcp.NotificationSubscriptions
		TaskIDs []string `json:"taskIds,omitempty"`
	} `json:"notifications"`
}

// acknowledge adds the tasks to the acknowledgement, the first message of the stream, and then
// starts to watch them.
func (s *server) acknowledge(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		from, _ := ctx.Value(listenKey{}).(*request)
		said, ok := req.GetParams().(*mcp.SubscriptionsAcknowledgedParams)
		ss, is := req.GetSession().(*mcp.ServerSession)
		if method != notificationAck || from == nil || !ok || !is {
			return next(ctx, method, req)
		}
		p := &ackParams{}
		p.SetMeta(said.GetMeta())
		p.Notifications.NotificationSubscriptions = said.Notifications
		for i := range from.listen.agreed {
			p.Notifications.TaskIDs = append(p.Notifications.TaskIDs, from.listen.agreed[i].Task.ID)
		}
		res, err := next(ctx, method, &mcp.ServerRequest[*ackParams]{Session: ss, Params: p})
		if err == nil {
			for i := range from.listen.agreed {
				from.listen.watches.Go(func() { s.watchTask(ctx, from, &from.listen.agreed[i]) })
			}
		}
		return res, err
	}
}

// watchTask reports a task now and at every change, until it has ended.
func (s *server) watchTask(ctx context.Context, from *request, t *gateway.ToolTask) {
	told := ""
	for ctx.Err() == nil {
		now := wireTask(t, true)
		if state := now.Status + " " + now.Message; state != told {
			told = state
			note, err := marshal(map[string]any{"jsonrpc": "2.0", "method": notificationTasks, "params": taskNotification{now, map[string]any{mcp.MetaKeySubscriptionID: from.listen.id}}})
			if err != nil || from.answer.notify(note) != nil {
				return // the client has gone
			}
		}
		if t.Task.State.Terminal() {
			return
		}
		next, err := s.tasks.Wait(ctx, t.Task.ID, min(max(t.Poll, minPoll), maxPoll))
		if err != nil {
			return // the client can still poll the task and gets the error
		}
		t = &next
	}
}

type taskNotification struct {
	task
	Meta map[string]any `json:"_meta"`
}

// Relay forwards requests unchanged to another endpoint of Signalbox. Clients of the SDK cannot
// receive tasks, so Relay does not use one.
type Relay struct {
	URL     string            // of the endpoint, with its path
	Headers map[string]string // added to every request: a token, a session
	Client  *http.Client      // nil: the default one
}

// rawResult is an answer of another endpoint, unchanged.
type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

// MarshalJSON writes it as it is.
func (r *rawResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

// callTool forwards a call, and its progress back.
func (l *Relay) callTool(ctx context.Context, r *mcp.CallToolRequest) (mcp.Result, error) {
	params := struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Meta      mcp.Meta        `json:"_meta"`
	}{r.Params.Name, r.Params.Arguments, r.Params.Meta}
	return l.send(ctx, methodCallTool, params.Name, params, func(p *mcp.ProgressNotificationParams) {
		_ = r.Session.NotifyProgress(ctx, p) // an error means that the client has gone
	})
}

// forwardTask forwards a task request.
func (l *Relay) forwardTask(ctx context.Context, method string, p *taskParams) (mcp.Result, error) {
	return l.send(ctx, method, p.TaskID, p, nil)
}

// message is a message from the other endpoint.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func (l *Relay) send(ctx context.Context, method, name string, params any, progress func(*mcp.ProgressNotificationParams)) (mcp.Result, error) {
	resp, err := l.post(ctx, method, name, params)
	if err != nil {
		return nil, l.lost(ctx, err)
	}
	defer resp.Body.Close()
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if strings.TrimSpace(kind) == "text/event-stream" {
		return l.follow(ctx, resp.Body, progress)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRelayed))
	var m message
	if err == nil {
		if json.Unmarshal(body, &m) == nil && (m.Result != nil || m.Error != nil) {
			return m.answer()
		}
		err = fmt.Errorf("it answered %s: %.200s", resp.Status, body)
	}
	return nil, l.lost(ctx, err)
}

func (l *Relay) post(ctx context.Context, method, name string, params any) (*http.Response, error) {
	body, err := marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range l.Headers {
		q.Header.Set(k, v)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	q.Header.Set(versionHeader, modern)
	q.Header.Set(methodHeader, method)
	q.Header.Set(nameHeader, name)
	client := l.Client
	if client == nil {
		client = http.DefaultClient
	}
	return client.Do(q)
}

// maxRelayed bounds an answer and a line of a stream, in bytes: the other gateway answers with
// at most 16 MiB, plus framing.
const maxRelayed = 20 << 20

// follow reads events up to the answer.
func (l *Relay) follow(ctx context.Context, body io.Reader, progress func(*mcp.ProgressNotificationParams)) (mcp.Result, error) {
	lines := &eventReader{bufio.NewReader(body)}
	for {
		data, err := lines.event()
		if err != nil {
			return nil, l.lost(ctx, err)
		}
		var m message
		if json.Unmarshal(data, &m) != nil {
			continue
		}
		if m.Result != nil || m.Error != nil {
			return m.answer()
		}
		var p mcp.ProgressNotificationParams
		if m.Method == "notifications/progress" && progress != nil && json.Unmarshal(m.Params, &p) == nil {
			progress(&p)
		}
	}
}

func (m *message) answer() (mcp.Result, error) {
	if m.Error != nil {
		return nil, &jsonrpc.Error{Code: m.Error.Code, Message: m.Error.Message, Data: m.Error.Data}
	}
	return &rawResult{raw: m.Result}, nil
}

// lost is the error of a request without an answer.
func (l *Relay) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ended the answer before its end")
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("the director at %s did not answer: %v; is it running?", l.URL, err)}
}
