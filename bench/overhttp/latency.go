package overhttp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

// agent is a real agent daemon in this process, so that its times and those of the
// submitter come from one clock.
type agent struct {
	daemon   *agentd.Daemon
	server   *httptest.Server
	execLog  string
	url      string // of the director
	client   *client.Client
	mu       sync.Mutex
	accepted map[string]time.Time // by queue_id: when its 201 was written
	news     chan string          // queue_ids as they are accepted
}

// newAgent starts an agent with a number of slots, and a director at which it is
// registered; both are used in all rounds.
func newAgent(ctx context.Context, b *measure.Bench, slots int) (*agent, error) {
	d, err := kept(ctx, b)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.Dir, fmt.Sprintf("agent-%d", folders.Add(1)))
	a := &agent{accepted: map[string]time.Time{}, news: make(chan string, 100000), execLog: filepath.Join(dir, "exec.log"), url: d.URL}
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	a.daemon, err = agentd.New(agentd.Config{Name: "bench", Kind: "demo", DataDir: filepath.Join(dir, "agent"), WorkDir: work, ExecLog: a.execLog, Slots: slots})
	if err != nil {
		return nil, err
	}
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	b.Cleanup(a.close)
	if a.client, err = client.New(d.URL, client.Options{}); err == nil {
		_, err = a.client.RegisterAgent(ctx, api.RegisterAgent{Name: "bench", Kind: "demo", URL: a.server.URL, Slots: slots, Fencing: true})
	}
	return a, err
}

// serve records when an offer was answered with 201.
func (a *agent) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/task" {
		a.daemon.Handler().ServeHTTP(w, r)
		return
	}
	rec := httptest.NewRecorder()
	a.daemon.Handler().ServeHTTP(rec, r)
	var answer api.AgentTaskAccepted
	if rec.Code == http.StatusCreated && json.Unmarshal(rec.Body.Bytes(), &answer) == nil {
		a.mu.Lock()
		a.accepted[answer.QueueID] = time.Now()
		a.mu.Unlock()
		a.news <- answer.QueueID
	}
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

func (a *agent) close() {
	a.server.Close()
	_ = a.daemon.Close()
}

// ends returns from the agent's own log when each execution ended.
func (a *agent) ends() (map[string]time.Time, error) {
	f, err := os.Open(a.execLog)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ends := map[string]time.Time{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			QueueID string    `json:"queue_id"`
			Event   string    `json:"event"`
			At      time.Time `json:"at"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Event == "end" {
			ends[line.QueueID] = line.At
		}
	}
	return ends, nil
}

// when returns when a task was accepted.
func (a *agent) when(id string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.accepted[id]
}

// pickup measures submits to an idle agent, one task at a time.
func pickup(name string) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		a, err := newAgent(ctx, b, 1)
		if err != nil {
			return nil, err
		}
		h := newClient()
		one := func(ctx context.Context) (time.Duration, error) {
			begin := time.Now()
			if err := submit(ctx, h, a.url, body); err != nil {
				return 0, err
			}
			id := <-a.news
			_, err := a.client.Wait(ctx, id)
			return a.when(id).Sub(begin), err
		}
		for range 20 { // connections and caches become warm
			if _, err := one(ctx); err != nil {
				return nil, err
			}
		}
		return func(ctx context.Context) (measure.Values, error) {
			var took []time.Duration
			for range b.Scale(1000) / 10 {
				d, err := one(ctx)
				if err != nil {
					return nil, err
				}
				took = append(took, d)
			}
			return load.Spread(took), nil
		}, nil
	}}
}

// gap submits waiting tasks and measures the time between the end of one and the
// acceptance of the next.
func gap(name string) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		a, err := newAgent(ctx, b, 1)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) {
			n, h := max(5, b.Scale(1000)/20), newClient()
			for range n {
				if err := submit(ctx, h, a.url, []byte(`{"prompt":"sleep 10ms","source":"api"}`)); err != nil {
					return nil, err
				}
			}
			var order []string
			for range n {
				order = append(order, <-a.news)
			}
			if _, err := a.client.Wait(ctx, order[n-1]); err != nil {
				return nil, err
			}
			ends, err := a.ends()
			if err != nil {
				return nil, err
			}
			var took []time.Duration
			for i := 1; i < n; i++ {
				if end, ok := ends[order[i-1]]; ok {
					took = append(took, a.when(order[i]).Sub(end))
				}
			}
			if len(took) == 0 {
				return nil, errors.New("the agent's log has no ends")
			}
			return load.Spread(took), nil
		}, nil
	}}
}

// half measures from the time at which a task was due to be submitted to its
// acceptance, by an agent with five of ten slots busy.
func half(name string) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		a, err := newAgent(ctx, b, 10)
		if err != nil {
			return nil, err
		}
		clients := make(chan *http.Client, 100)
		for range cap(clients) {
			clients <- newClient()
		}
		return func(ctx context.Context) (measure.Values, error) {
			const every = 10 * time.Millisecond
			n := max(10, int(2*b.Span/every))
			start := time.Now().Add(20 * time.Millisecond)
			dues, errs := map[string]time.Time{}, make(chan error, n)
			var mu sync.Mutex
			for i := range n {
				due := start.Add(time.Duration(i) * every)
				time.Sleep(time.Until(due))
				go func() {
					c := <-clients
					id, err := submitted(ctx, c, a.url)
					clients <- c
					mu.Lock()
					dues[id] = due
					mu.Unlock()
					errs <- err
				}()
			}
			var ids []string
			for range n {
				if err := <-errs; err != nil {
					return nil, err
				}
				ids = append(ids, <-a.news)
			}
			var took []time.Duration
			for _, id := range ids {
				took = append(took, a.when(id).Sub(dues[id]))
			}
			_, err := a.client.Wait(ctx, ids[n-1])
			return load.Spread(took), err
		}, nil
	}}
}

// submitted submits a task of 50 ms and returns its id.
func submitted(ctx context.Context, c *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/queue/task", strings.NewReader(`{"prompt":"sleep 50ms","source":"api"}`))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer api.SubmitResponse
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("submit: %s (%v)", resp.Status, err)
	}
	return answer.QueueID, nil
}
