package endpoint

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

const (
	methodListen      = "subscriptions/listen"
	notificationAck   = "notifications/subscriptions/acknowledged"
	notificationTasks = "notifications/tasks"

	// maxWatched bounds the tasks that one stream can ask for; those beyond are
	// not agreed to, and can be polled.
	maxWatched = 100
	// leastPoll and mostPoll bound how often a watched task is looked at while it
	// has not ended. Its end is told at once.
	leastPoll = time.Second
	mostPoll  = 30 * time.Second
)

// listen is what of a request to listen the SDK does not know: the tasks.
type listen struct {
	id      json.RawMessage // of the request, by which a client knows the stream
	wanted  []string
	agreed  []gateway.ToolTask
	watches sync.WaitGroup
}

// listenOf reads the request to listen.
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
		return nil // the SDK says what is wrong with it, if something is
	}
	return &listen{id: m.ID, wanted: m.Params.Notifications.TaskIDs}
}

type listenKey struct{}

// listen answers a request to listen that names tasks. The SDK keeps the stream
// and what else it is for; what is told of tasks is written beside it.
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
			break // also of those that are not there: each costs a look into the store
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
	l.watches.Wait() // until all have ended, or the client has gone
	return res, err
}

// ackParams are those of the word that listening has begun, with the tasks.
type ackParams struct {
	mcp.ParamsBase
	Notifications struct {
		mcp.NotificationSubscriptions
		TaskIDs []string `json:"taskIds,omitempty"`
	} `json:"notifications"`
}

// acknowledge adds the tasks to that word, which is the first on the stream, and
// then begins to tell of them.
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

// watchTask tells how a task is: now, and whenever that is another way, until it
// has ended.
func (s *server) watchTask(ctx context.Context, from *request, t *gateway.ToolTask) {
	told := ""
	for ctx.Err() == nil {
		now := wireTask(t, true)
		if state := now.Status + " " + now.Message; state != told {
			told = state
			note, err := marshal(map[string]any{"jsonrpc": "2.0", "method": notificationTasks, "params": taskNote{now, map[string]any{mcp.MetaKeySubscriptionID: from.listen.id}}})
			if err != nil || from.answer.notify(note) != nil {
				return // the client has gone
			}
		}
		if t.Task.State.Terminal() {
			return
		}
		next, err := s.tasks.Wait(ctx, t.Task.ID, min(max(t.Poll, leastPoll), mostPoll))
		if err != nil {
			return // it can still be polled, which says what is wrong
		}
		t = &next
	}
}

type taskNote struct {
	task
	Meta map[string]any `json:"_meta"`
}
