package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// refusing is an HTTP server with a REST tool and, at /mcp, an MCP server. It refuses calls for a
// time. A call that arrives during that time is early.
type refusing struct {
	*httptest.Server
	mu    sync.Mutex
	says  time.Duration // the next call begins a refusal of this length; 0: none
	until time.Time
	early int
	calls int // number of answered calls
}

func newRefusing(t *testing.T) *refusing {
	s := mcp.NewServer(&mcp.Implementation{Name: "limited", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})
	tools := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	r := &refusing{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		if call := req.URL.Path != "/mcp" || bytes.Contains(body, []byte(`"tools/call"`)); call && r.refuses(w) {
			return
		}
		if req.URL.Path == "/mcp" {
			tools.ServeHTTP(w, req)
			return
		}
		_, _ = w.Write([]byte("done"))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *refusing) refuses(w http.ResponseWriter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch {
	case r.says > 0:
		r.until, r.says = now.Add(r.says), 0
	case now.Before(r.until):
		r.early++
	default:
		r.calls++
		return false
	}
	w.Header().Set("Retry-After", strconv.Itoa(int((r.until.Sub(now)+time.Second-1)/time.Second)))
	w.WriteHeader(http.StatusTooManyRequests)
	return true
}

// refuse makes the next call begin a refusal.
func (r *refusing) refuse(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.says, r.early, r.calls = d, 0, 0
}

func (r *refusing) counts(t *testing.T, calls int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.early > 0 || r.calls != calls || time.Now().Before(r.until) {
		t.Errorf("%d calls came too early, %d were answered, until %s", r.early, r.calls, r.until)
	}
}

const closedWord = "which is closed until "

// A server answers 429: it gets no request before the time that it gave, all callers are told
// how long they wait, and all calls are answered.
func TestServerThatAnswers429ClosesItsQueue(t *testing.T) {
	b := newBox(t)
	r := newRefusing(t)
	d := b.director("--tools", b.toolFile("tools.json", object{
		"queues":     queuesOf(map[string]int{"far": 1, "served": 1}),
		"restTools":  object{"ask": object{"url": r.URL + "/ask", "queue": "far"}},
		"mcpServers": object{"limited": object{"type": "http", "url": r.URL + "/mcp", "queue": "served"}},
	}))
	b.toolsReady(d.url, "limited")
	var callers []*caller
	for range 10 {
		callers = append(callers, b.over(d.url, legacyEra))
	}
	for tool, queue := range map[string]string{"rest__ask": "far", "limited__ask": "served"} {
		r.refuse(2 * time.Second)
		var all []*pending
		for i, c := range callers {
			all = append(all, c.begin(tool, object{}, fmt.Sprint(tool, i)))
		}
		for i, c := range callers {
			c.hears(fmt.Sprint(tool, i) + " 0 0 queued, position")
			c.hears(closedWord)
		}
		for _, p := range all {
			p.answers("done")
		}
		r.counts(t, len(callers))
		if q := b.toolQueue(d.url, queue); q.Closed != nil || q.InUse+q.Depth > 0 {
			t.Errorf("%+v", q)
		}
	}

	// A user opens the queue.
	r.refuse(2 * time.Minute)
	p := callers[0].begin("rest__ask", object{}, "long")
	b.until("the queue is closed", func() bool { q := b.toolQueue(d.url, "far"); return q.Closed != nil && q.Held == 1 })
	r.mu.Lock()
	r.until = time.Time{}
	r.mu.Unlock()
	if got, err := b.client(d.url).OpenToolQueue(b.ctx(), "far"); err != nil || got.Opened != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	p.answers("done")
}

// The queue is closed for both directors that share it, even after the director that got the 429
// has died.
func TestServerThatAnswers429ClosesSharedQueue(t *testing.T) {
	b := newBox(t)
	r := newRefusing(t)
	b.vars["SIGNALBOX_STORE"], b.vars["SIGNALBOX_SECRET_KEY"] = testserver.Postgres(t), testKey
	tools := b.toolFile("tools.json", object{
		"queues":    object{"default": object{"concurrent": 64}, "far": object{"concurrent": 10, "shared": true}},
		"restTools": object{"ask": object{"url": r.URL + "/ask", "queue": "far"}},
	})
	var directors []*process
	var urls []string
	for _, name := range []string{"d1", "d2"} {
		addr := freePort(t)
		p := b.start("director", "--addr", addr, "--instance", name, "--data", filepath.Join(b.root, name), "--tools", tools)
		p.prints("http://")
		directors, urls = append(directors, p), append(urls, "http://"+addr)
	}
	var here, there []*caller
	for range 3 {
		here, there = append(here, b.over(urls[0], legacyEra)), append(there, b.over(urls[1], legacyEra))
	}
	r.refuse(4 * time.Second)
	here[0].begin("rest__ask", object{}, "first")
	b.until("d2 sees that the queue is closed", func() bool { q := b.toolQueue(urls[1], "far"); return q.Closed != nil })
	var kept []*pending
	for i := range there {
		here[i].begin("rest__ask", object{}, fmt.Sprint("here", i))
		kept = append(kept, there[i].begin("rest__ask", object{}, fmt.Sprint("there", i)))
	}
	for _, c := range there {
		c.hears(closedWord)
	}
	directors[0].kill()
	for _, p := range kept {
		p.answers("done")
	}
	r.counts(t, len(there))
	directors[1].stop()
}
