package agentd_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/llmtest"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// With allowed_tools the run has no other tools, whatever the model calls.
func TestLLMAllowedTools(t *testing.T) {
	s := newToolServer(t)
	for _, name := range []string{"fs__read", "fs__write", "web__get"} {
		s.tool(name, echo)
	}
	m := llmtest.New(t, llmtest.OpenAI, llmtest.Script(
		llmtest.Reply{Calls: []llm.ToolCall{{ID: "a", Name: "web__get", Arguments: "{}"}, {ID: "b", Name: "fs__write", Arguments: "{}"}}},
		llmtest.Reply{Text: "ok"}))
	a := start(t, withTools(llmConfig(t, m), s))
	end := a.end(a.submit(api.AgentTask{Prompt: "x", Isolated: true, AllowedTools: []string{"fs__*"}}).TaskID)
	if end.State != "completed" {
		t.Fatalf("%+v", end.Error)
	}
	last := m.Last()
	if len(last.Tools) != 2 || !strings.Contains(last.Messages[2].Text, "There is no tool") || last.Messages[3].Text != "got {}" {
		t.Errorf("tools %+v, messages %+v", last.Tools, last.Messages)
	}
	a.refused(api.AgentTask{Prompt: "x", Isolated: true, AllowedTools: []string{"Bash(git *)"}}, 400, "validation_error")
}

// A task cannot add tools that the agent does not allow.
func TestLLMAllowedToolsOfTheAgent(t *testing.T) {
	s := newToolServer(t)
	for _, name := range []string{"fs__read", "fs__write", "web__get"} {
		s.tool(name, echo)
	}
	m := llmtest.New(t, llmtest.OpenAI, llmtest.Script(llmtest.Reply{Text: "ok"}, llmtest.Reply{Text: "ok"}))
	c := withTools(llmConfig(t, m), s)
	c.Runner.LLM.Allowed = []string{"fs__*"}
	a := start(t, c)
	for allowed, want := range map[string]int{"": 2, "*": 2} {
		task := api.AgentTask{Prompt: "x"}
		if allowed != "" {
			task.Isolated, task.AllowedTools = true, []string{allowed}
		}
		if end := a.end(a.submit(task).TaskID); end.State != "completed" {
			t.Fatalf("%+v", end.Error)
		}
		if got := m.Last().Tools; len(got) != want {
			t.Errorf("with %q allowed by the task it had %+v", allowed, got)
		}
	}
}

// Errors say what to do and never contain a key.
func TestLLMErrorsAreReadable(t *testing.T) {
	const down = "http://127.0.0.1:1" // another process may take a port that was just free
	without := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(404)
		io.WriteString(w, `{"error":"not_found","message":"this director has no tools"}`)
	}))
	t.Cleanup(without.Close)
	m := llmtest.New(t, llmtest.OpenAI, func(llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Status: 400, Text: "the model has no such thing"}
	})
	for name, c := range map[string]struct {
		change    func(*agentd.Config)
		typ, want string
	}{
		"no key":            {func(c *agentd.Config) { c.Runner.LLM.APIKey, c.Runner.LLM.BaseURL = "", "" }, "start_error", "OPENAI_API_KEY"},
		"no director":       {func(c *agentd.Config) { c.Runner.LLM.Tools = "director" }, "start_error", "--director"},
		"a director down":   {func(c *agentd.Config) { c.Runner.LLM.Tools, c.Director = "director", down }, "tools_error", "no tool server"},
		"one without":       {func(c *agentd.Config) { c.Runner.LLM.Tools, c.Director = "director", without.URL }, "tools_error", "this director has no tools"},
		"a model's error":   {func(*agentd.Config) {}, "model_error", "the model has no such thing"},
		"a model not there": {func(c *agentd.Config) { c.Runner.LLM.BaseURL = down }, "model_error", "check the base URL"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := llmConfig(t, m)
			c.change(&cfg)
			a := start(t, cfg)
			end := a.end(a.submit(api.AgentTask{Prompt: "x", SessionID: "talk-1"}).TaskID)
			wantError(t, end, "failed", c.typ, c.want)
			if strings.Contains(end.Error.Message, llmtest.Key) {
				t.Error("the key is in it")
			}
			if ids := sessionIDs(a); len(ids) != 0 {
				t.Errorf("an empty conversation: %q", ids)
			}
		})
	}
	cfg := llmConfig(t, m)
	cfg.Model = ""
	if ref := start(t, cfg).refused(api.AgentTask{Prompt: "x"}, 400, "validation_error"); !strings.Contains(ref.Message, "agent.model") {
		t.Error(ref.Message)
	}
}

// Unless tools are required, a run continues without them and says so once.
// An error while listing existing tools still fails the run.
func TestLLMWithoutTools(t *testing.T) {
	without := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(404)
		io.WriteString(w, `{"error":"not_found","message":"this director has no tools"}`)
	}))
	t.Cleanup(without.Close)
	for director, why := range map[string]string{"": "this agent knows no director", without.URL: "the director has none"} {
		m := llmtest.New(t, llmtest.OpenAI, llmtest.Script(llmtest.Reply{Calls: calls(1)}, llmtest.Reply{Text: "I have none."}))
		cfg := llmConfig(t, m)
		cfg.Runner.LLM.Tools, cfg.Director = "auto", director
		a := start(t, cfg)
		end := a.end(a.submit(api.AgentTask{Prompt: "x"}).TaskID)
		if end.State != "completed" || end.Output != "I have none." {
			t.Errorf("%+v %+v", end, end.Error)
		}
		if log, _ := a.collect(end.TaskID); strings.Count(log, "[signalbox] this run has no tools: "+why+"\n") != 1 {
			t.Errorf("the log:\n%s", log)
		}
		if len(m.Last().Tools) != 0 || !strings.Contains(m.Last().Messages[2].Text, "there are no tools") {
			t.Errorf("asked %+v", m.Last())
		}
	}
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(401)
		io.WriteString(w, `{"error":"unauthorized","message":"no token"}`)
	}))
	t.Cleanup(locked.Close)
	cfg := llmConfig(t, llmtest.New(t, llmtest.OpenAI, llmtest.Script(llmtest.Reply{Text: "no"})))
	cfg.Runner.LLM.Tools, cfg.Director = "auto", locked.URL
	a := start(t, cfg)
	wantError(t, a.end(a.submit(api.AgentTask{Prompt: "x"}).TaskID), "failed", "tools_error", "tokens create")
}

// A model that keeps calling tools is stopped at the maximum number of turns.
func TestLLMMaxTurns(t *testing.T) {
	s := newToolServer(t)
	s.tool("fs__read", echo)
	n := 0
	m := llmtest.New(t, llmtest.Anthropic, func(llmtest.Request) llmtest.Reply {
		n++
		return llmtest.Reply{Calls: []llm.ToolCall{{ID: fmt.Sprint("c", n), Name: "fs__read", Arguments: "{}"}}}
	})
	cfg := withTools(llmConfig(t, m), s)
	cfg.Runner.LLM.MaxTurns = 3
	a := start(t, cfg)
	end := a.end(a.submit(api.AgentTask{Prompt: "x"}).TaskID)
	wantError(t, end, "failed", "max_turns", "3 turns")
	if len(m.Requests()) != 3 || m.Last().ToolChoice != "none" || end.ToolCount != 2 {
		t.Errorf("%d requests, the last with tool choice %q, %d tools", len(m.Requests()), m.Last().ToolChoice, end.ToolCount)
	}
}

// A task may set a key of its own, which has precedence over the agent's;
// neither is stored on disk. (The model accepts only the test's key.)
func TestLLMKeyOfTheTask(t *testing.T) {
	m := llmtest.New(t, llmtest.Anthropic, llmtest.Script(llmtest.Reply{Text: "ok"}))
	cfg := llmConfig(t, m)
	cfg.Runner.LLM.APIKey = "sk-of-the-agent"
	a := start(t, cfg)
	if end := a.end(a.submit(api.AgentTask{Prompt: "x", Env: map[string]string{"ANTHROPIC_API_KEY": llmtest.Key}}).TaskID); end.Output != "ok" {
		t.Errorf("%+v", end)
	}
	a.refused(api.AgentTask{Prompt: "x", Env: map[string]string{"ANTHROPIC_BASE_URL": m.URL}}, 400, "validation_error")
	err := filepath.WalkDir(cfg.DataDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), llmtest.Key) || strings.Contains(string(b), "sk-of-the-agent") {
			t.Errorf("%s holds a key", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The run's token is only for its director; another MCP endpoint does not get
// it.
func TestLLMTokenGoesToTheDirectorAlone(t *testing.T) {
	s := newToolServer(t)
	s.tool("fs__read", echo)
	m := llmtest.New(t, llmtest.OpenAI, llmtest.Script(llmtest.Reply{Calls: calls(1)}, llmtest.Reply{Text: "ok"}))
	cfg := llmConfig(t, m)
	cfg.Director, cfg.Runner.LLM.Tools = "http://127.0.0.1:1", s.url+"/mcp"
	a := start(t, cfg)
	if end := a.end(a.submit(api.AgentTask{Prompt: "x", QueueID: "queue-a", Fence: 1, RunToken: runToken}).TaskID); end.Output != "ok" || end.ToolCount != 1 {
		t.Fatalf("%+v %+v", end, end.Error)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.seen {
		if h.Get("Authorization") != "" || h.Get("X-Signalbox-Execution") != "" {
			t.Errorf("headers %v", h)
		}
	}
}

// A gateway may be up before its servers: the first turn waits for their tools.
func TestLLMWaitsForStartingTools(t *testing.T) {
	s := newToolServer(t)
	m := llmtest.New(t, llmtest.OpenAI, llmtest.Script(llmtest.Reply{Text: "ok"}))
	a := start(t, withTools(llmConfig(t, m), s))
	acc := a.submit(api.AgentTask{Prompt: "x"})
	testkit.Wait(t, "it has begun a session and listed the tools", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.seen) >= 3
	})
	s.tool("fs__read", echo)
	if end := a.end(acc.TaskID); end.Output != "ok" || len(m.Last().Tools) != 1 {
		t.Errorf("%+v with the tools %+v", end, m.Last().Tools)
	}
}

// A model's endpoint reports usage and the end of a limit in its headers. The run
// continues its conversation; if the model has not answered yet, the run sends its
// prompt again.
func TestLLMMeetsLimitAndGoesOn(t *testing.T) {
	resets := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	refusal := llmtest.Reply{Status: 429, Text: "Number of requests has exceeded your rate limit", Header: http.Header{
		"Retry-After": {"3600"}, "Anthropic-Ratelimit-Requests-Limit": {"50"}, "Anthropic-Ratelimit-Requests-Remaining": {"0"},
		"Anthropic-Ratelimit-Requests-Reset": {resets.Format(time.RFC3339)},
	}}
	s := newToolServer(t)
	s.tool("fs__read", echo)
	m := llmtest.New(t, llmtest.Anthropic, llmtest.Script(
		refusal, llmtest.Reply{Calls: []llm.ToolCall{{ID: "a", Name: "fs__read", Arguments: "{}"}}}, refusal, llmtest.Reply{Text: "done"}))
	c := withTools(llmConfig(t, m), s)
	c.Runner.LLM.Retries = 2 // none is made, since each would have to wait an hour
	a := start(t, c)
	task := fenced("queue-a", 1, "mind the gap")
	task.SessionID, task.RunToken = "talk-1", runToken
	for fence, began := range []bool{false, true} {
		task.Fence = int64(fence + 1)
		end := a.end(a.submit(task).TaskID)
		wantError(t, end, "failed", "usage_limit", "exceeded your rate limit")
		l := end.Limit
		if l == nil || l.Window != "requests" || l.Source != "header" || l.Began != began || l.ResetsAt == nil || l.ResetsAt.Sub(resets).Abs() > time.Minute {
			t.Fatalf("limit %+v, want one until %s", l, resets)
		}
		account := a.daemon.Status().Account
		if account == nil || account.Login != "API key" || len(account.Windows) != 1 || account.Windows[0].UsedPercent != 100 || end.Account == nil || end.Account.Name != account.Name {
			t.Errorf("account %+v, of the run %+v", account, end.Account)
		}
		task.Resume = &api.AgentResume{Began: began}
	}
	task.Fence = 3
	if end := a.end(a.submit(task).TaskID); end.State != "completed" || end.Account == nil || end.Account.AnsweredAt == nil {
		t.Fatalf("%s %+v %+v", end.State, end.Error, end.Account)
	}
	var said []string
	for _, msg := range m.Last().Messages {
		said = append(said, string(msg.Role)+" "+msg.Text)
	}
	if got := strings.Join(said, "|"); len(m.Requests()) != 4 || got != "user mind the gap|assistant |tool got {}|user Go on where you left off: a usage limit of the provider interrupted this conversation." {
		t.Errorf("%d requests, the last of %q", len(m.Requests()), got)
	}
}

func TestLLMOverloadAndRefusedKey(t *testing.T) {
	for typ, reply := range map[string]llmtest.Reply{
		"overloaded":    {Status: 529, Text: "Overloaded"},
		"login_refused": {Status: 401, Text: "invalid x-api-key"},
		"usage_limit":   {Status: 429, Text: "Rate limit reached. Please try again in 7m12s."},
		"model_error":   {Status: 404, Text: "no such model"},
	} {
		m := llmtest.New(t, llmtest.OpenAI, llmtest.Script(reply))
		a := start(t, llmConfig(t, m))
		end := a.end(a.submit(api.AgentTask{Prompt: "x"}).TaskID)
		wantError(t, end, "failed", typ, reply.Text[:10])
		if l := end.Limit; (l == nil) != (typ == "model_error") || (l != nil && (l.Text != reply.Text || (l.ResetsAt != nil) != (l.Source == "text"))) {
			t.Errorf("%s: limit %+v", typ, l)
		}
	}
}
