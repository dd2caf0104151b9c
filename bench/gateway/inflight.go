package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/client"
)

// inFlight is how many tasks an agent has in flight while it calls tools.
const inFlight = 1000

// crowded returns HTTP calls that an agent makes within one of its executions, while it
// has that many in flight.
func (r *rig) crowded(tasks int) func(context.Context, *measure.Bench) (call, error) {
	return func(ctx context.Context, b *measure.Bench) (call, error) {
		d, err := start(ctx, b, fmt.Sprintf("in-flight-%d", tasks), r.upstream)
		if err != nil {
			return nil, err
		}
		b.Cleanup(d.Stop)
		h := &holder{name: "holder", slots: tasks, long: make(chan struct{})}
		s := httptest.NewServer(h)
		b.Cleanup(func() { close(h.long); s.CloseClientConnections(); s.Close() })
		c, err := client.New(d.URL, client.Options{})
		if err != nil {
			return nil, err
		}
		if _, err := c.RegisterAgent(ctx, api.RegisterAgent{Name: h.name, Kind: "demo", URL: s.URL, Slots: tasks, Fencing: true}); err != nil {
			return nil, err
		}
		token, err := c.CreateToken(ctx, api.NewToken{Name: h.name, Agent: h.name})
		if err != nil {
			return nil, err
		}
		id := ""
		for range tasks {
			t, err := c.Submit(ctx, api.SubmitRequest{Prompt: "hold", Agent: h.name}, client.SubmitOptions{})
			if err != nil {
				return nil, err
			}
			id = t.QueueID
		}
		for limit := time.Now().Add(time.Minute); h.held.Load() < int64(tasks); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(limit) {
				return nil, fmt.Errorf("only %d of %d tasks are in flight", h.held.Load(), tasks)
			}
		}
		one := restCallWith(d.URL+"/api/tools/s__echo/call", http.Header{"Authorization": {"Bearer " + token.Secret}, "X-Signalbox-Execution": {id}})
		for limit := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if err = one(ctx); err == nil || time.Now().After(limit) {
				return one, err
			}
		}
	}
}

// holder is an agent that accepts every offer and never ends a task.
type holder struct {
	name  string
	slots int
	held  atomic.Int64
	long  chan struct{} // closed at its end
}

func (h *holder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var answer any
	switch path := r.URL.Path; {
	case path == "/status":
		answer = api.AgentStatus{
			Type: "agent", Interfaces: []string{"statusable", "observable", "taskable"}, Version: "bench", AgentKind: "demo",
			State: "idle", Name: h.name, Slots: h.slots, Fencing: true, LongPoll: true, Sessions: true,
		}
	case path == "/sessions":
		answer = api.AgentSessions{Sessions: []api.AgentSession{}}
	case path == "/task" && r.Method == http.MethodPost:
		var t api.AgentTask
		if err := json.NewDecoder(r.Body).Decode(&t); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		defer h.held.Add(1)
		w.WriteHeader(http.StatusCreated)
		answer = api.AgentTaskAccepted{TaskID: "run-" + t.QueueID, QueueID: t.QueueID}
	case strings.HasSuffix(path, "/output"):
		select {
		case <-h.long:
		case <-r.Context().Done():
		}
		answer = api.AgentOutput{}
	default:
		answer = api.AgentTaskStatus{State: "working"}
	}
	_ = json.NewEncoder(w).Encode(answer)
}
