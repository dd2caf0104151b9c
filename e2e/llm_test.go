package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/e2e/model"
)

// desk is an MCP server whose tool look answers once it is allowed to, and
// which counts its calls in flight.
type desk struct {
	url     string
	let     chan struct{} // closed: calls are answered
	mu      sync.Mutex
	now     int
	most    int
	looked  []string // arguments, in the order of arrival
	changed chan struct{}
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{let: make(chan struct{}), changed: make(chan struct{})}
	s := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "look", Description: "Looks at a page", InputSchema: json.RawMessage(`{"type":"object","properties":{"page":{"type":"integer"}}}`)},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			d.count(1, string(r.Params.Arguments))
			defer d.count(-1, "")
			select {
			case <-d.let:
			case <-ctx.Done():
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "saw " + string(r.Params.Arguments)}}}, nil
		})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		d.open()
		srv.CloseClientConnections()
		srv.Close()
	})
	d.url = srv.URL
	return d
}

func (d *desk) count(n int, args string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now += n
	d.most = max(d.most, d.now)
	if n > 0 {
		d.looked = append(d.looked, args)
	}
	close(d.changed)
	d.changed = make(chan struct{})
}

// busy waits until n calls are in flight.
func (d *desk) busy(b *box, n int) {
	b.t.Helper()
	for {
		d.mu.Lock()
		now, changed := d.now, d.changed
		d.mu.Unlock()
		if now == n {
			return
		}
		select {
		case <-changed:
		case <-b.ctx().Done():
			b.t.Fatalf("%d calls are under way, not %d", now, n)
		}
	}
}

func (d *desk) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.let:
	default:
		close(d.let)
	}
}

// withLLM writes a configuration with the tools of a desk, in the given
// queue, and an agent of kind llm for a scripted model.
func (b *box) withLLM(d *desk, provider, queue string) *model.Server {
	b.t.Helper()
	m, err := model.Start(model.Replies(model.Reply{}))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(m.Close)
	base := m.URL
	if provider == "openai" {
		base += "/v1"
	}
	b.file(filepath.Join(b.work, "signalbox.yaml"), fmt.Sprintf(`
agent:
  model: scripted
  llm: {provider: %s, base_url: %q, api_key: test-key, system: Be brief.}
queues:
  default: {concurrent: 64}
  desk: %s
mcpServers:
  desk: {url: %q, queue: desk}
`, provider, base, queue, d.url), 0o600)
	b.want(0, "trust")
	return m
}

// looks are calls of the tool for these pages.
func looks(pages ...int) []model.Tool {
	var all []model.Tool
	for _, p := range pages {
		all = append(all, model.Tool{Name: "desk__look", Input: map[string]any{"page": p}})
	}
	return all
}

func (b *box) deskQueue(c *client.Client) api.ToolQueue {
	b.t.Helper()
	var got api.ToolQueues
	code, said := b.ask(http.MethodGet, c.URL()+"/api/tools/queues", "")
	if code != http.StatusOK {
		b.t.Fatalf("%d %s", code, said)
	}
	got = parse[api.ToolQueues](b.t, said)
	at := slices.IndexFunc(got.Queues, func(q api.ToolQueue) bool { return q.Name == "desk" })
	if at < 0 {
		b.t.Fatalf("no queue desk in %s", said)
	}
	return got.Queues[at]
}

// The model requests five calls in one step: three are made, of which the tool
// queue runs two at a time. The other two are answered with the seed's text,
// and made when the model requests them again.
func TestLLMStepLimitAndToolQueue(t *testing.T) {
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			b := newBox(t)
			d := newDesk(t)
			m := b.withLLM(d, provider, "{concurrent: 2}")
			b.vars["NEUROAGENT_AGENT__MAX_PARALLEL_TOOL_CALLS"] = "3"
			m.Use(model.Replies(
				model.Reply{Text: "I look at all five.", Tools: looks(1, 2, 3, 4, 5)},
				model.Reply{Tools: looks(4, 5)},
				model.Reply{Text: "Seen all.", Chunks: 3},
			))
			up := b.up("--agents", "llm")
			if !strings.Contains(up.out.text(), "tools of this director, if it has any · spends the account of agent.llm.api_key") {
				t.Errorf("up does not describe it:\n%s", up.out.text())
			}
			c := b.client(up.url)
			id := b.submit(c, api.SubmitRequest{Prompt: "look at pages 1 to 5", SessionID: "talk-1"})
			d.busy(b, 2)
			b.until("the third call waits in the queue", func() bool { return b.deskQueue(c).Depth == 1 })
			if q := b.deskQueue(c); q.InUse != 2 || len(q.Waiters) != 1 || q.Waiters[0].Agent != "llm" || q.Waiters[0].Tool != "desk__look" {
				t.Errorf("the queue: %+v", q)
			}
			d.open()
			task := b.completed(c, id)
			if task.Result.Output != "Seen all." || task.Result.ToolCount != 5 || task.Result.TokenUsage.Input != 3*model.InputTokens {
				t.Errorf("%+v, tokens %+v", task.Result, task.Result.TokenUsage)
			}
			if d.most != 2 || len(d.looked) != 5 {
				t.Errorf("%d at a time, %q", d.most, d.looked)
			}
			asked := m.Requests()
			if len(asked) != 3 {
				t.Fatalf("%d turns", len(asked))
			}
			for _, page := range []string{"4", "5"} {
				if text := fmt.Sprintf(`The tool desk__look with arguments {"page":%s} could not be executed due to rate limit. Call it again.`, page); !strings.Contains(asked[1].Text, text) || strings.Contains(asked[1].Text, `saw {"page":`+page) {
					t.Errorf("page %s in the second turn:\n%s", page, asked[1].Text)
				}
				if !strings.Contains(asked[2].Text, `saw {"page":`+page) {
					t.Errorf("page %s in the third turn:\n%s", page, asked[2].Text)
				}
			}
			logs := b.want(0, "logs", id).out
			for _, want := range []string{"I look at all five.\n[streamChat] Step 1, Tool 1/3: desk__look (ID: ", "exceeds parallel limit (3). Returning rate limit error.", "queued, position 1", "Seen all."} {
				if !strings.Contains(logs, want) {
					t.Errorf("no %q in the log:\n%s", want, logs)
				}
			}
			b.until("the metrics count it", func() bool {
				_, figures := b.ask(http.MethodGet, up.url+"/metrics", "")
				for _, want := range []string{`step_limit{agent="llm"} 3`, `step_calls_total{agent="llm",outcome="executed"} 5`, `step_calls_total{agent="llm",outcome="refused"} 2`, `step_queued_total{agent="llm"} 0`} {
					if !strings.Contains(figures, "signalbox_agent_"+want+"\n") {
						return false
					}
				}
				return true
			})
			// The conversation continues in its agent.
			m.Use(model.Replies(model.Reply{Text: "Five."}))
			if got := b.want(0, "submit", "--wait", "--session", "talk-1", "how many were there?"); strings.TrimSpace(got.out) != "Five." {
				t.Errorf("printed %q", got.out)
			}
			if text := m.Requests()[0].Text; !strings.Contains(text, "look at pages 1 to 5") || !strings.Contains(text, "Seen all.") {
				t.Errorf("the second task does not contain the first:\n%s", text)
			}
		})
	}
}

// A session lease of a run is released when the run ends, not when the lease
// would.
func TestLLMLeaseEndsWithItsRun(t *testing.T) {
	b := newBox(t)
	d := newDesk(t)
	d.open()
	m := b.withLLM(d, "openai", "{concurrent: 1, session: {idle: 10m}}")
	second := make(chan struct{})
	m.Use(func(r model.Request) model.Reply {
		switch {
		case r.Turn%2 == 0:
			return model.Reply{Tools: looks(r.Turn)}
		case r.Turn == 1:
			<-second
		}
		return model.Reply{Text: "done"}
	})
	up := b.up("--agents", "llm")
	c := b.client(up.url)
	id := b.submit(c, api.SubmitRequest{Prompt: "one"})
	if err := m.Await(b.ctx(), 2); err != nil {
		t.Fatal(err)
	}
	if q := b.deskQueue(c); len(q.Holders) != 1 || !q.Holders[0].Leased || !q.Holders[0].Idle || q.Holders[0].Agent != "llm" {
		t.Errorf("between two calls of a run: %+v", q)
	}
	close(second)
	b.completed(c, id)
	b.until("the lease is handed on", func() bool { return len(b.deskQueue(c).Holders) == 0 })
	b.completed(c, b.submit(c, api.SubmitRequest{Prompt: "two"}))
}

// A cancel removes the calls of a run from the queue, and releases what they
// hold.
func TestLLMCancelLeavesTheLine(t *testing.T) {
	b := newBox(t)
	d := newDesk(t)
	m := b.withLLM(d, "openai", "{concurrent: 1}")
	m.Use(model.Replies(model.Reply{Tools: looks(1, 2)}))
	up := b.up("--agents", "llm")
	c := b.client(up.url)
	id := b.submit(c, api.SubmitRequest{Prompt: "look", SessionID: "talk-1"})
	d.busy(b, 1)
	b.until("a call waits in the queue", func() bool { return b.deskQueue(c).Depth == 1 })
	b.want(0, "cancel", id)
	if task := b.end(c, id); task.State != "cancelled" {
		t.Errorf("%s: %s", task.State, task.Message)
	}
	b.until("the queue is empty", func() bool { q := b.deskQueue(c); return q.Depth == 0 && q.InUse == 0 })
	m.Use(model.Replies(model.Reply{Text: "Never mind."}))
	b.completed(c, b.submit(c, api.SubmitRequest{Prompt: "and now?", SessionID: "talk-1"}))
	if text := m.Requests()[0].Text; strings.Count(text, "Tool execution aborted by the user.") != 2 {
		t.Errorf("it went on with:\n%s", text)
	}
}

// The director is killed in the middle of a run: the run continues in its
// agent, and gets its tools from the next director.
func TestLLMOutlivesTheDirector(t *testing.T) {
	b := newBox(t)
	d := newDesk(t)
	d.open()
	m := b.withLLM(d, "anthropic", "{concurrent: 1}")
	second := make(chan struct{})
	m.Use(func(r model.Request) model.Reply {
		switch r.Turn {
		case 0:
			return model.Reply{Tools: looks(1)}
		case 1:
			<-second
			return model.Reply{Tools: looks(2)}
		}
		return model.Reply{Text: "Saw both."}
	})
	addr := freePort(t)
	up := b.up("--agents", "llm", "--addr", addr)
	c := b.client(up.url)
	id := b.submit(c, api.SubmitRequest{Prompt: "look twice"})
	if err := m.Await(b.ctx(), 2); err != nil {
		t.Fatal(err)
	}
	up.kill()
	next := b.up("--agents", "llm", "--addr", addr)
	b.toolsReady(next.url, "desk") // an earlier call is refused, and the model is told so
	close(second)
	task := b.completed(c, id)
	if task.Result.Output != "Saw both." || task.Result.ToolCount != 2 || !slices.Equal(d.looked, []string{`{"page":1}`, `{"page":2}`}) {
		t.Errorf("%+v, looked at %q", task.Result, d.looked)
	}
	b.executedOnce(id)
}

// An open director requires no token, and does not accept an agent's claimed
// identity.
func TestLLMAtAnOpenDirector(t *testing.T) {
	b := newBox(t)
	d := newDesk(t)
	d.open()
	m := b.withLLM(d, "openai", "{concurrent: 1}")
	m.Use(model.Replies(model.Reply{Tools: looks(1)}, model.Reply{Text: "done"}))
	director := b.director()
	c := b.client(director.url)
	b.agent("plain", director.url, "--kind", "llm")
	if task := b.completed(c, b.submit(c, api.SubmitRequest{Prompt: "look", Agent: "plain"})); task.Result.ToolCount != 1 || len(d.looked) != 1 {
		t.Errorf("%+v, looked at %q", task.Result, d.looked)
	}
}

// At a director that requires tokens, a run calls tools with the token that
// was made for it, whether its agent has its own token or uses the director's.
func TestLLMCallsToolsByTheTokenOfItsRun(t *testing.T) {
	b := newBox(t)
	d := newDesk(t)
	d.open()
	m := b.withLLM(d, "openai", "{concurrent: 1}")
	m.Use(func(r model.Request) model.Reply {
		if r.Turn%2 == 0 { // each run is a new conversation
			return model.Reply{Tools: looks(1)}
		}
		return model.Reply{Text: "done"}
	})
	b.vars["SIGNALBOX_TOKEN"] = "a-token-of-some-length-0123456789"
	director := b.director()
	c := b.client(director.url)
	b.agentAs(c, "own", director.url, "--kind", "llm")
	b.agent("more", director.url, "--kind", "llm")
	for i, agent := range []string{"own", "more"} {
		task := b.completed(c, b.submit(c, api.SubmitRequest{Prompt: "look", Agent: agent}))
		if task.Result.ToolCount != 1 || len(d.looked) != i+1 {
			t.Errorf("%s: %+v, looked at %q", agent, task.Result, d.looked)
		}
	}
}

// The step limit is changed in the file while a run is active: its next step
// uses the new limit.
func TestLLMStepLimitFollowsTheFile(t *testing.T) {
	b := newBox(t)
	d := newDesk(t)
	m := b.withLLM(d, "openai", "{concurrent: 9}")
	path := filepath.Join(b.work, "signalbox.yaml")
	base := b.read(path)
	limit := func(most string) {
		b.file(path, strings.Replace(base, "system: Be brief.", "max_parallel_tool_calls: "+most, 1), 0o600)
		b.want(0, "trust")
	}
	limit("1")
	m.Use(model.Replies(
		model.Reply{Tools: looks(1, 2, 3)},
		model.Reply{Tools: looks(4, 5, 6)},
		model.Reply{Text: "done"},
	))
	up := b.up("--agents", "llm")
	c := b.client(up.url)
	id := b.submit(c, api.SubmitRequest{Prompt: "look"})
	d.busy(b, 1)
	limit("2")
	log := filepath.Join(b.data, "agents", "llm", "agent.log")
	b.until("the agent has read it", func() bool { return strings.Contains(b.read(log), "max_parallel_tool_calls=2") })
	var file struct{ PID int }
	if err := json.Unmarshal([]byte(b.read(filepath.Join(b.data, "agents", "llm", "agent.json"))), &file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(file.PID, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	b.until("a signal makes it read the file at once", func() bool { return strings.Contains(b.read(log), `because="asked for"`) })
	limit("0")
	b.until("an invalid limit is refused", func() bool { return strings.Contains(b.read(log), "want a whole number from 1 to 1000") })
	d.open()
	b.completed(c, id)
	if len(d.looked) != 3 { // one of the first step, two of the second
		t.Errorf("%q", d.looked)
	}
	if text := m.Requests()[2].Text; strings.Count(text, "could not be executed due to rate limit") != 3 {
		t.Errorf("%s", text)
	}
	if logs := b.want(0, "logs", id).out; !strings.Contains(logs, "Step 1, Tool 1/1") || !strings.Contains(logs, "Step 2, Tool 2/2") {
		t.Errorf("%s", logs)
	}
}
