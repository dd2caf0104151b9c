package agentd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/llmtest"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// runToken is the token of a run at its director.
const runToken = "sbxr_of-this-run"

// toolServer is an MCP server like the director's at /mcp.
type toolServer struct {
	url  string // URL of the director
	mcp  *mcp.Server
	over chan struct{} // closed at the end of the test: a handler does not notice when its caller disconnects
	mu   sync.Mutex
	seen []http.Header
}

func newToolServer(t *testing.T) *toolServer {
	t.Helper()
	s := &toolServer{mcp: mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil), over: make(chan struct{})}
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, nil)
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Header.Clone())
		s.mu.Unlock()
		h.ServeHTTP(w, r)
	})
	srv := httptest.NewServer(handshake.Serve(runToken, mux))
	t.Cleanup(func() {
		close(s.over)
		for ss := range s.mcp.Sessions() {
			ss.Close()
		}
		srv.Close()
	})
	s.url = srv.URL
	return s
}

func (s *toolServer) tool(name string, f func(ctx context.Context, args string) string) {
	s.mcp.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: f(ctx, string(r.Params.Arguments))}}}, nil
	})
}

func echo(_ context.Context, args string) string { return "got " + args }

// llmConfig is a config of kind llm for a scripted model, without tools.
func llmConfig(t *testing.T, m *llmtest.Server) agentd.Config {
	t.Helper()
	cfg := config(t, "llm")
	cfg.Model = "scripted"
	cfg.Runner.LLM.Provider, cfg.Runner.LLM.BaseURL, cfg.Runner.LLM.APIKey = string(m.Vendor), m.URL, llmtest.Key
	cfg.Runner.LLM.Tools, cfg.Runner.LLM.Retries = "none", -1
	cfg.Runner.LLM.Patience = time.Millisecond
	return cfg
}

func withTools(cfg agentd.Config, s *toolServer) agentd.Config {
	cfg.Director = s.url
	cfg.Runner.LLM.Tools = "director"
	return cfg
}

func calls(n int) []llm.ToolCall {
	all := make([]llm.ToolCall, n)
	for i := range all {
		all[i] = llm.ToolCall{ID: fmt.Sprintf("call_%d", i+1), Name: "fs__read", Arguments: fmt.Sprintf(`{"n": %d}`, i+1)}
	}
	return all
}

// A prompt is answered, with tools, at both vendors. The log has the text and
// the seed's lines; the result has the usage and the number of tools.
func TestLLMAnswersWithTools(t *testing.T) {
	for _, vendor := range llmtest.Vendors {
		t.Run(string(vendor), func(t *testing.T) {
			s := newToolServer(t)
			s.tool("fs__read", echo)
			m := llmtest.New(t, vendor, llmtest.Script(
				llmtest.Reply{Text: "Let me look.", Calls: calls(5)},
				llmtest.Reply{Calls: []llm.ToolCall{{ID: "again_4", Name: "fs__read", Arguments: `{"n": 4}`}, {ID: "again_5", Name: "fs__read", Arguments: `{"n": 5}`}}},
				llmtest.Reply{Text: "All read.", Chunk: 3},
			))
			cfg := withTools(llmConfig(t, m), s)
			cfg.Runner.LLM.Steps = runner.NewSteps(3, 0)
			cfg.Runner.LLM.System = "You are careful."
			a := start(t, cfg)
			acc := a.submit(api.AgentTask{Prompt: "read all", QueueID: "queue-a", Fence: 1, RunToken: runToken})
			end := a.end(acc.TaskID)
			if end.State != "completed" || end.Output != "All read." || end.ToolCount != 5 {
				t.Fatalf("%s %q, %d tools, %+v", end.State, end.Output, end.ToolCount, end.Error)
			}
			if u := end.TokenUsage; u == nil || u.Input != 3*llmtest.InputTokens || u.Output != 3*llmtest.OutputTokens {
				t.Errorf("usage %+v", u)
			}
			said := a.says(acc.TaskID, "All read.")
			for _, want := range []string{
				"Let me look.\n[streamChat] Step 1, Tool 1/3: fs__read (ID: call_1)\n", "[streamChat] Executing tool: fs__read (ID: call_2)\n",
				"[streamChat] Tool execution completed: fs__read (ID: call_3)\n", "[streamChat] Step 1, Tool 4/3: fs__read (ID: call_4)\n",
				"[streamChat] Tool call fs__read (ID: call_5) exceeds parallel limit (3). Returning rate limit error.\n",
			} {
				if !strings.Contains(said, want) {
					t.Errorf("no %q in\n%s", want, said)
				}
			}
			asked := m.Requests()[1]
			var told []string
			for _, msg := range asked.Messages {
				if msg.Role == llm.RoleTool {
					told = append(told, msg.Text)
				}
			}
			if len(told) != 5 || told[2] != `got {"n": 3}` && told[2] != `got {"n":3}` ||
				told[3] != `The tool fs__read with arguments {"n": 4} could not be executed due to rate limit. Call it again.` && vendor == llmtest.OpenAI {
				t.Errorf("the model was told %q", told)
			}
			if asked.System != "You are careful." || asked.Model != "scripted" {
				t.Errorf("system %q, model %q", asked.System, asked.Model)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, h := range s.seen {
				if h.Get("Authorization") != "Bearer "+runToken || h.Get("X-Signalbox-Execution") != "queue-a" {
					t.Errorf("headers %v", h)
				}
			}
		})
	}
}

// A conversation continues under the name that the task gave or that it was
// assigned, also after a restart, and is listed. An isolated run has no
// conversation.
func TestLLMConversation(t *testing.T) {
	m := llmtest.New(t, llmtest.OpenAI, llmtest.Script(llmtest.Reply{Text: "Noted."}))
	cfg := llmConfig(t, m)
	a := start(t, cfg)
	a.end(a.submit(api.AgentTask{Prompt: "remember four", SessionID: "talk-1"}).TaskID)
	other := a.end(a.submit(api.AgentTask{Prompt: "begin another"}).TaskID)
	a.end(a.submit(api.AgentTask{Prompt: "aside", Isolated: true, SystemPrompt: "Be brief."}).TaskID)
	if last := m.Last(); len(last.Messages) != 1 || last.System != "Be brief." {
		t.Errorf("the isolated run: %+v", last)
	}
	a.stop()
	b := start(t, cfg)
	if ids, want := sessionIDs(b), []string{"talk-1", other.SessionID}; !slices.Equal(ids, slices.Sorted(slices.Values(want))) {
		t.Errorf("conversations %q, want %q", ids, want)
	}
	for _, id := range []string{"talk-1", other.SessionID} {
		b.end(b.submit(api.AgentTask{Prompt: "go on", SessionID: id}).TaskID)
		if last := m.Last(); len(last.Messages) != 3 || last.Messages[1].Text != "Noted." || last.Messages[2].Text != "go on" {
			t.Errorf("%s went on with %+v", id, last.Messages)
		}
	}
	if err := os.RemoveAll(filepath.Join(cfg.DataDir, "conversations")); err != nil {
		t.Fatal(err)
	}
	if ids := sessionIDs(b); len(ids) != 0 {
		t.Errorf("conversations that are gone: %q", ids)
	}
}

// Two slots never continue one conversation at the same time.
func TestLLMTurnsOfAConversationWait(t *testing.T) {
	first, second := make(chan struct{}), make(chan struct{})
	m := llmtest.New(t, llmtest.OpenAI, func(r llmtest.Request) llmtest.Reply {
		if r.Turn == 1 {
			close(first)
			<-second
		}
		return llmtest.Reply{Text: fmt.Sprint("answer ", r.Turn)}
	})
	cfg := llmConfig(t, m)
	cfg.Slots = 2
	a := start(t, cfg)
	one := a.submit(api.AgentTask{Prompt: "one", SessionID: "talk-1"})
	<-first
	two := a.submit(api.AgentTask{Prompt: "two", SessionID: "talk-1"})
	a.says(two.TaskID, "[signalbox] waiting for another turn of talk-1")
	close(second)
	a.end(one.TaskID)
	if end := a.end(two.TaskID); end.Output != "answer 2" || len(m.Last().Messages) != 3 {
		t.Errorf("%q after %+v", end.Output, m.Last().Messages)
	}
}

// Cancelling a run in the middle of a tool call ends the tool, and leaves a
// conversation that the vendor accepts.
func TestLLMCancelledInATool(t *testing.T) {
	for _, vendor := range llmtest.Vendors {
		t.Run(string(vendor), func(t *testing.T) {
			s := newToolServer(t)
			began, ended := make(chan struct{}), make(chan struct{})
			s.tool("fs__read", func(ctx context.Context, _ string) string {
				close(began)
				<-ctx.Done()
				close(ended)
				return ""
			})
			m := llmtest.New(t, vendor, llmtest.Script(llmtest.Reply{Text: "Looking.", Calls: calls(1)}, llmtest.Reply{Text: "I see."}))
			a := start(t, withTools(llmConfig(t, m), s))
			acc := a.submit(api.AgentTask{Prompt: "read", SessionID: "talk-1"})
			<-began
			if code := a.do("POST", "/task/"+acc.TaskID+"/cancel", struct{}{}, nil); code != 200 {
				t.Errorf("cancel: %d", code)
			}
			wantError(t, a.end(acc.TaskID), "cancelled", "cancelled", "")
			select {
			case <-ended:
			case <-time.After(long):
				t.Error("the tool was not told")
			}
			a.end(a.submit(api.AgentTask{Prompt: "and?", SessionID: "talk-1"}).TaskID)
			got := m.Last().Messages
			if len(got) < 4 || got[1].Text != "Looking." || got[2].Text != "Tool execution aborted by the user." {
				t.Errorf("it went on with %+v", got)
			}
		})
	}
}

// A run that is cancelled while the model answers keeps the partial answer.
func TestLLMCancelledInAnAnswer(t *testing.T) {
	m := llmtest.New(t, llmtest.Anthropic, llmtest.Script(llmtest.Reply{Text: "It is a long st", Hang: make(chan struct{})}, llmtest.Reply{Text: "Right."}))
	a := start(t, llmConfig(t, m))
	acc := a.submit(api.AgentTask{Prompt: "tell", SessionID: "talk-1"})
	a.says(acc.TaskID, "It is a long st")
	a.do("POST", "/task/"+acc.TaskID+"/cancel", struct{}{}, nil)
	if end := a.end(acc.TaskID); end.State != "cancelled" || end.Output != "It is a long st" {
		t.Errorf("%s %q", end.State, end.Output)
	}
	if end := a.end(a.submit(api.AgentTask{Prompt: "go on", SessionID: "talk-1"}).TaskID); end.State != "completed" {
		t.Errorf("%+v", end.Error)
	}
	if got := m.Last().Messages; len(got) != 3 || got[1].Text != "It is a long st" {
		t.Errorf("it went on with %+v", got)
	}
}

// After kill -9 of the agent the conversation continues where it was, and a
// tool call that had ended is not reported as aborted.
func TestLLMResumesAfterAKill(t *testing.T) {
	s := newToolServer(t)
	began := make(chan struct{}, 1)
	s.tool("fs__read", func(ctx context.Context, args string) string {
		if strings.Contains(args, "1") {
			return "one is read"
		}
		began <- struct{}{}
		select {
		case <-ctx.Done():
		case <-s.over:
		}
		return ""
	})
	m := llmtest.New(t, llmtest.OpenAI, llmtest.Script(llmtest.Reply{Text: "Noted."}, llmtest.Reply{Text: "Looking.", Calls: calls(2)}, llmtest.Reply{Text: "I see."}))
	a, cmd := process(t, withTools(llmConfig(t, m), s))
	a.end(a.submit(api.AgentTask{Prompt: "remember four", SessionID: "talk-1"}).TaskID)
	acc := a.submit(api.AgentTask{Prompt: "read", SessionID: "talk-1"})
	<-began
	testkit.Wait(t, "the first answer is kept", func() bool {
		kept, err := os.ReadFile(filepath.Join(a.cfg.DataDir, "conversations", "talk-1.jsonl"))
		return err == nil && strings.Contains(string(kept), "one is read")
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	b := start(t, a.cfg)
	wantError(t, b.get(acc.TaskID), "failed", "interrupted", "restarted")
	if end := b.end(b.submit(api.AgentTask{Prompt: "go on", SessionID: "talk-1"}).TaskID); end.Output != "I see." {
		t.Fatalf("%+v", end)
	}
	var said []string
	for _, msg := range m.Last().Messages {
		said = append(said, msg.Text)
	}
	if want := []string{"remember four", "Noted.", "read", "Looking.", "one is read", "Tool execution aborted by the user.", "go on"}; !slices.Equal(said, want) {
		t.Errorf("it went on with %q", said)
	}
}
