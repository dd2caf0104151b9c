package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// crowd is a number of idle agents, each with its own address and connection to the
// director.
type crowd struct {
	url   string
	every time.Duration // 0: the interval from the director

	asks   atomic.Int64 // the interval that the director asked for
	beats  atomic.Int64
	failed atomic.Int64
	why    atomic.Value
	asked  atomic.Int64 // requests to the agents

	servers []*http.Server
	quit    context.CancelFunc
	all     sync.WaitGroup
}

func (c *crowd) interval() time.Duration {
	if c.every > 0 {
		return c.every
	}
	return time.Duration(c.asks.Load())
}

// start registers the agents and starts their heartbeats.
func (c *crowd) start(ctx context.Context, agents int) error {
	beating, quit := context.WithCancel(ctx)
	c.quit = quit
	c.asks.Store(int64(10 * time.Second))
	clients := make([]*client.Client, agents)
	names := make([]string, agents)
	for n := range agents {
		names[n] = fmt.Sprintf("agent-%04d", n)
		url, err := c.listen(ctx, names[n])
		if err != nil {
			return err
		}
		clients[n], err = client.New(c.url, client.Options{HTTPClient: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}})
		if err != nil {
			return err
		}
		if _, err := clients[n].RegisterAgent(ctx, api.RegisterAgent{Name: names[n], Kind: "demo", URL: url, Slots: 1, Fencing: true}); err != nil {
			return err
		}
		if err := c.beat(ctx, clients[n], names[n]); err != nil {
			return err
		}
	}
	// From here on the heartbeats are spread over the interval.
	for n := range agents {
		c.all.Go(func() {
			wait := c.interval() * time.Duration(n) / time.Duration(agents)
			for sleep(beating, wait) == nil {
				if err := c.beat(beating, clients[n], names[n]); err != nil && beating.Err() == nil {
					c.failed.Add(1)
					c.why.Store(err.Error())
				}
				wait = c.interval()
			}
		})
	}
	return nil
}

func (c *crowd) beat(ctx context.Context, to *client.Client, name string) error {
	answer, err := to.Heartbeat(ctx, name, api.Heartbeat{State: "idle"})
	if err != nil {
		return err
	}
	c.beats.Add(1)
	if answer.IntervalSeconds > 0 {
		c.asks.Store(int64(time.Duration(answer.IntervalSeconds) * time.Second))
	}
	return nil
}

// listen serves the status of an idle agent and returns its address.
func (c *crowd) listen(ctx context.Context, name string) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	status, err := json.Marshal(api.AgentStatus{
		Type: "agent", Interfaces: []string{"statusable", "observable", "taskable"}, Version: "bench", AgentKind: "demo",
		State: "idle", Name: name, Slots: 1, Fencing: true, LongPoll: true, Sessions: true,
	})
	if err != nil {
		return "", err
	}
	answer := func(body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			c.asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		}
	}
	mux.HandleFunc("GET /status", answer(status))
	mux.HandleFunc("GET /sessions", answer([]byte(`{"sessions":[]}`)))
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	c.servers = append(c.servers, s)
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

func (c *crowd) stop() {
	if c.quit != nil {
		c.quit()
	}
	c.all.Wait()
	for _, s := range c.servers {
		_ = s.Close()
	}
}
