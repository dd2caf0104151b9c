package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/client"
)

// Real directors in separate processes with their APIs, and agents that answer over HTTP
// and finish at once.
const (
	fleetAgents  = 256
	fleetClients = 256
	fleetTasks   = 8000
)

// fleet measures a number of directors over one database, with clients that submit to
// them in turn. The rate counts tasks, from the first submit to the last end.
func (s *servers) fleet(name string, directors int) *measure.Side {
	return &measure.Side{Name: name, Open: func(context.Context, *measure.Bench) (measure.Trial, error) {
		return func(ctx context.Context) (measure.Values, error) {
			all, stop, err := s.startFleet(ctx, directors)
			defer stop()
			if err != nil {
				return nil, err
			}
			n := s.bench.Scale(fleetTasks)
			if _, err := through(ctx, all, min(n, fleetAgents)); err != nil { // connections and caches become warm
				return nil, err
			}
			return through(ctx, all, n)
		}, nil
	}}
}

// startFleet starts directors and agents, and returns when every director sees every
// agent as up.
func (s *servers) startFleet(ctx context.Context, directors int) (all []*client.Client, stop func(), err error) {
	var ends []func()
	stop = func() {
		for i := range ends {
			ends[len(ends)-1-i]()
		}
	}
	binary, err := director.Build(ctx, s.bench.Bin)
	if err != nil {
		return nil, stop, err
	}
	url := s.database()
	for n := range directors {
		data := filepath.Join(s.bench.Dir, fmt.Sprintf("fleet-%d", fleets.Add(1)))
		cmd := exec.CommandContext(ctx, binary, "director", "--open", "--addr", "127.0.0.1:0", "--data", data, "--store", url, "--instance", fmt.Sprintf("fleet-%d", n),
			"--grace", "0s", "--log-level", "error")
		cmd.Env = append(os.Environ(), "SIGNALBOX_HOME="+data, "SIGNALBOX_QUEUE_MAX_SIZE=1000000", "SIGNALBOX_SECRET_KEY="+strings.Repeat("5b", 32))
		d, err := director.Start(cmd)
		if err != nil {
			return nil, stop, err
		}
		ends = append(ends, d.Stop)
		c, err := client.New(d.URL, client.Options{})
		if err != nil {
			return nil, stop, err
		}
		all = append(all, c)
	}
	for n := range fleetAgents {
		a := httptest.NewServer(&instant{name: fmt.Sprintf("agent-%02d", n), tasks: map[string]api.AgentTaskStatus{}})
		ends = append(ends, a.Close)
		if _, err := all[0].RegisterAgent(ctx, api.RegisterAgent{Name: fmt.Sprintf("agent-%02d", n), Kind: "demo", URL: a.URL, Slots: 1, Fencing: true}); err != nil {
			return nil, stop, err
		}
	}
	return all, stop, awaitUp(ctx, all)
}

var fleets atomic.Int64

func awaitUp(ctx context.Context, all []*client.Client) error {
	for _, c := range all {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			s, err := c.Status(ctx)
			switch {
			case err != nil:
				return err
			case s.Agents.Up == fleetAgents:
			case time.Now().After(deadline):
				return fmt.Errorf("%d of %d agents are up after a minute", s.Agents.Up, fleetAgents)
			default:
				continue
			}
			break
		}
	}
	return nil
}

// through submits n tasks and waits until all have ended.
func through(ctx context.Context, all []*client.Client, n int) (measure.Values, error) {
	began := time.Now()
	var clients sync.WaitGroup
	errs := make([]error, fleetClients)
	for i := range fleetClients {
		clients.Go(func() {
			for at := i; at < n && errs[i] == nil; at += fleetClients {
				_, errs[i] = all[at%len(all)].Submit(ctx, api.SubmitRequest{Prompt: load.Prompt}, client.SubmitOptions{})
			}
		})
	}
	clients.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s, err := all[0].Status(ctx)
		if err != nil {
			return nil, err
		}
		if s.Queue.Depth+s.Queue.DispatchedCount == 0 {
			return measure.Values{load.Rate: float64(n) / time.Since(began).Seconds()}, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d tasks wait and %d run after a minute", s.Queue.Depth, s.Queue.DispatchedCount)
		}
	}
}

// instant is an agent that finishes every task at once.
type instant struct {
	name  string
	mu    sync.Mutex
	tasks map[string]api.AgentTaskStatus
	fence int64
}

func (a *instant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	status, body := a.answer(r)
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (a *instant) answer(r *http.Request) (status int, body any) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/task":
		return a.take(r)
	case r.URL.Path == "/status":
		return http.StatusOK, api.AgentStatus{Type: "agent", Interfaces: []string{"statusable", "observable", "taskable"}, AgentKind: "demo",
			State: "idle", Name: a.name, Slots: 1, Fencing: true, LongPoll: true, HighestFence: a.fence}
	case parts[0] != "task" || len(parts) < 2:
		return http.StatusNotFound, api.AgentRefusal{Error: "not_found"}
	}
	t, known := a.tasks[parts[1]]
	switch {
	case !known:
		return http.StatusNotFound, api.AgentRefusal{Error: "not_found"}
	case len(parts) == 3 && parts[2] == "output":
		return http.StatusOK, api.AgentOutput{Text: t.Output, Next: int64(len(t.Output)), Done: true, Final: &t}
	}
	return http.StatusOK, t
}

func (a *instant) take(r *http.Request) (status int, body any) {
	text, err := io.ReadAll(r.Body)
	var t api.AgentTask
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return http.StatusBadRequest, api.AgentRefusal{Error: "validation_error", Message: err.Error()}
	}
	a.fence = max(a.fence, t.Fence)
	now := time.Now()
	id := fmt.Sprintf("task-%08x", len(a.tasks)+1)
	done := api.AgentTaskStatus{TaskID: id, State: "completed", Output: "done", OutputSeq: 4, QueueID: t.QueueID, Fence: t.Fence, StartedAt: &now, CompletedAt: &now}
	a.tasks[id], a.tasks[t.QueueID] = done, done
	return http.StatusCreated, api.AgentTaskAccepted{TaskID: id, SessionID: "session-" + id, Status: "working", QueueID: t.QueueID, Fence: t.Fence}
}
