package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

// agent is a real agent daemon in this process, so that its moments can be
// compared with those of the submitter without a second clock.
type agent struct {
	daemon   *agentd.Daemon
	server   *httptest.Server
	execLog  string
	mu       sync.Mutex
	accepted map[string]time.Time // by queue_id: when its 201 was written
	news     chan string          // queue_ids as they are accepted
}

func (b *bench) newAgent() (*agent, error) {
	a := &agent{accepted: map[string]time.Time{}, news: make(chan string, 100000), execLog: filepath.Join(b.dir, "exec.log")}
	work := filepath.Join(b.dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	d, err := agentd.New(agentd.Config{Name: "bench", Kind: "demo", DataDir: filepath.Join(b.dir, "agent"), WorkDir: work, ExecLog: a.execLog})
	if err != nil {
		return nil, err
	}
	a.daemon = d
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	return a, nil
}

// serve notes when an offer was answered with 201.
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

// latencies measures how soon an idle agent gets a task, and how soon a busy
// one gets the next.
func (b *bench) latencies(ctx context.Context) error {
	d, err := b.start(ctx)
	if err != nil {
		return err
	}
	defer d.Stop()
	a, err := b.newAgent()
	if err != nil {
		return err
	}
	defer a.close()
	c, err := client.New(d.URL, client.Options{})
	if err != nil {
		return err
	}
	if _, err := c.RegisterAgent(ctx, api.RegisterAgent{Name: "bench", Kind: "demo", URL: a.server.URL, Slots: 1, Fencing: true}); err != nil {
		return err
	}
	trip, err := loopback()
	if err != nil {
		return err
	}
	b.add("round trip on loopback, p50", trip, "ms", "", nil, "the limit: HTTP there and back")
	if err := b.pickup(ctx, d, a, c); err != nil {
		return err
	}
	return b.gap(ctx, d, a, c)
}

// pickup submits to an idle agent, one task at a time.
func (b *bench) pickup(ctx context.Context, d *director.Process, a *agent, c *client.Client) error {
	var ms []float64
	h := newClient()
	for i := range 60 * b.rounds {
		begin := time.Now()
		if err := submit(ctx, h, d.URL, body); err != nil {
			return err
		}
		id := <-a.news
		a.mu.Lock()
		took := a.accepted[id].Sub(begin)
		a.mu.Unlock()
		if _, err := c.Wait(ctx, id); err != nil {
			return err
		}
		if i >= 20 { // connections and caches are warm
			ms = append(ms, float64(took.Microseconds())/1000)
		}
	}
	p50, p99 := quantile(ms, 0.5), quantile(ms, 0.99)
	b.add("submit → accepted by an idle agent, p50", p50, "ms", "< 2 ms", is(p50 < 2), fmt.Sprintf("%d tasks", len(ms)))
	b.add("submit → accepted by an idle agent, p99", p99, "ms", "< 10 ms", is(p99 < 10), "")
	return nil
}

// gap lets tasks wait and measures the time between the end of one and the
// acceptance of the next.
func (b *bench) gap(ctx context.Context, d *director.Process, a *agent, c *client.Client) error {
	n := 60 * b.rounds
	h := newClient()
	for range n {
		if err := submit(ctx, h, d.URL, []byte(`{"prompt":"sleep 10ms","source":"api"}`)); err != nil {
			return err
		}
	}
	var order []string
	for range n {
		order = append(order, <-a.news)
	}
	if _, err := c.Wait(ctx, order[n-1]); err != nil {
		return err
	}
	ends, err := a.ends()
	if err != nil {
		return err
	}
	var ms []float64
	for i := 1; i < n; i++ {
		if end, ok := ends[order[i-1]]; ok {
			ms = append(ms, float64(a.accepted[order[i]].Sub(end).Microseconds())/1000)
		}
	}
	p50 := quantile(ms, 0.5)
	b.add("end of a task → acceptance of the next, p50", p50, "ms", "< 3 ms", is(p50 < 3), fmt.Sprintf("%d tasks", len(ms)))
	b.add("end of a task → acceptance of the next, p99", quantile(ms, 0.99), "ms", "", nil, "")
	return nil
}

// ends reads from the agent's own log when each execution ended.
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

// loopback measures the limit: an HTTP request to a server that does nothing.
func loopback() (float64, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	c := newClient()
	var ms []float64
	for range 500 {
		begin := time.Now()
		if err := submit(context.Background(), c, "http://"+l.Addr().String(), body); err != nil {
			return 0, err
		}
		ms = append(ms, float64(time.Since(begin).Microseconds())/1000)
	}
	return median(ms), nil
}
