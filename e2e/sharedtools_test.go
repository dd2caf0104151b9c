package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

func TestAToolQueueSharedByDirectorsPostgres(t *testing.T) {
	sharedToolQueue(t, testserver.Postgres(t))
}

func TestAToolQueueSharedByDirectorsRedis(t *testing.T) {
	sharedToolQueue(t, testserver.Redis(t))
}

// slow is the server behind a tool: it counts concurrent calls.
type slow struct {
	*httptest.Server
	running, most, calls atomic.Int32
	began                chan string // path of a call that is being held
}

func newSlow(t *testing.T) *slow {
	s := &slow{began: make(chan string, 100)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := s.running.Add(1)
		defer s.running.Add(-1)
		for m := s.most.Load(); now > m && !s.most.CompareAndSwap(m, now); m = s.most.Load() {
		}
		s.calls.Add(1)
		if r.URL.Path == "/hold" {
			s.began <- r.URL.Path
			<-r.Context().Done()
			return
		}
		time.Sleep(5 * time.Millisecond)
		_, _ = w.Write([]byte("done"))
	}))
	t.Cleanup(s.Close)
	return s
}

// Two directors share a tool with one slot: there are never two calls at once.
// If one director is killed in a call, the other's next call gets the slot after
// the 15 s for which a dead director's slots last.
func sharedToolQueue(t *testing.T, store string) {
	b := newBox(t)
	s := newSlow(t)
	b.vars["SIGNALBOX_STORE"], b.vars["SIGNALBOX_SECRET_KEY"] = store, testKey
	tools := b.file("shared.yaml", "queues:\n  default: {concurrent: 64}\n  browser: {concurrent: 1, shared: true}\n"+
		"restTools:\n  quick: {url: '"+s.URL+"/quick', queue: browser}\n  hold: {url: '"+s.URL+"/hold', queue: browser}\n", 0o600)
	var directors []*process
	var clients []*client.Client
	for _, name := range []string{"d1", "d2"} {
		addr := freePort(t)
		p := b.start("director", "--addr", addr, "--instance", name, "--data", filepath.Join(b.root, name), "--tools", tools)
		p.prints("http://")
		directors, clients = append(directors, p), append(clients, b.client("http://"+addr))
	}
	call := func(c *client.Client, tool string) (api.ToolResult, error) {
		return c.CallTool(b.ctx(), "rest__"+tool, api.ToolCall{}, client.ToolOptions{})
	}

	const workers, each = 4, 5
	var all sync.WaitGroup
	for i := range 2 * workers {
		all.Go(func() {
			for range each {
				if _, err := call(clients[i%2], "quick"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n, most := s.calls.Load(), s.most.Load(); n != 2*workers*each || most != 1 {
		t.Fatalf("%d calls, %d at once", n, most)
	}

	go func() { _, _ = call(clients[0], "hold") }()
	<-s.began
	b.until("d2 sees who has the slot", func() bool {
		queues, err := clients[1].ToolQueues(b.ctx())
		return err == nil && len(queues[0].Holders) == 1 && queues[0].Shared && queues[0].Holders[0].Director == "d1"
	})
	directors[0].kill()
	killed := time.Now()
	if _, err := call(clients[1], "quick"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(killed); took < 5*time.Second || took > 60*time.Second {
		t.Errorf("the slot of a dead director was free after %s", took)
	}
	directors[1].stop()
}
