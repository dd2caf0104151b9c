package agentd_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

func TestStatusListsCapabilities(t *testing.T) {
	cfg := config(t, "demo")
	cfg.IsolatedSlots = 7
	s := start(t, cfg).daemon.Status()
	if s.IsolatedSlots != 7 || !s.Sessions || s.Terminal || s.Terminals != nil {
		t.Errorf("%+v", s)
	}
}

// A run can call other agents as itself, with a token that the director made
// for it. The token is masked in its output.
func TestRunEnvironmentIdentifiesRun(t *testing.T) {
	cfg := command(t, "env")
	cfg.Name, cfg.Director = "coder", "http://127.0.0.1:8080"
	cfg.Environ = append(cfg.Environ, "SIGNALBOX_TOKEN=sbxa_of_the_daemon")
	a := start(t, cfg)
	task := fenced("queue-a", 1, "x")
	task.RunToken = "sbxr_queue-a.1_m-a-c"
	id := a.submit(task).TaskID
	out := a.end(id).Output
	env := strings.Split(out, "\n")
	for _, want := range []string{"SIGNALBOX_AGENT=coder", "SIGNALBOX_DIRECTOR=http://127.0.0.1:8080", "SIGNALBOX_QUEUE_ID=queue-a", "SIGNALBOX_TOKEN=***"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is not in the environment %q", want, env)
		}
	}
	var log api.AgentOutput
	a.do("GET", "/task/"+id+"/output", nil, &log)
	if strings.Contains(out+log.Text, task.RunToken) || !strings.Contains(log.Text, "SIGNALBOX_TOKEN=***") {
		t.Errorf("the log shows the token: %s", log.Text)
	}
	if out := a.end(a.submit(fenced("queue-b", 2, "x")).TaskID).Output; strings.Contains(out, "SIGNALBOX_TOKEN") {
		t.Errorf("a run without its own token got one: %s", out)
	}
	a = start(t, command(t, "env"))
	if out := a.end(a.submit(api.AgentTask{Prompt: "x"}).TaskID).Output; strings.Contains(out, "SIGNALBOX_DIRECTOR") || strings.Contains(out, "SIGNALBOX_QUEUE_ID") {
		t.Errorf("unknown values were invented: %q", out)
	}
}

func TestExtrasNeedIsolatedRunAndSupport(t *testing.T) {
	demo := start(t, config(t, "demo"))
	for _, c := range []struct {
		task api.AgentTask
		want string
	}{
		{api.AgentTask{Prompt: "x", AllowedTools: []string{"Read"}}, "isolated"},
		{api.AgentTask{Prompt: "x", SystemPrompt: "be kind"}, "isolated"},
		{api.AgentTask{Prompt: "x", Isolated: true, AllowedTools: []string{"Read"}}, "demo"},
		{api.AgentTask{Prompt: "x", Isolated: true, SystemPrompt: "be kind"}, "demo"},
	} {
		if ref := demo.refused(c.task, 400, "validation_error"); !strings.Contains(ref.Message, c.want) {
			t.Errorf("%q does not name %s", ref.Message, c.want)
		}
	}
	claude := start(t, config(t, "claude"))
	ref := claude.refused(api.AgentTask{Prompt: "x", Isolated: true, AllowedTools: []string{"--dangerously-skip-permissions"}}, 400, "validation_error")
	if !strings.Contains(ref.Message, "allowed_tools") {
		t.Error(ref.Message)
	}
}

// The real CLIs accept the extras.
func TestCLIExtras(t *testing.T) {
	const system = "--help: always answer in verse, says \"the operator\"\n\\o/"
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			a, m := cli(t, kind, nil)
			m.Use(model.Replies(model.Reply{Text: "Alone."}))
			task := api.AgentTask{Prompt: "hello", Isolated: true, SystemPrompt: system}
			if kind == "claude" {
				task.AllowedTools = []string{"Read", "Grep", "mcp__box__list"}
			}
			s := a.end(a.submit(task).TaskID)
			if s.State != "completed" || s.Output != "Alone." {
				t.Fatalf("%s %q %+v", s.State, s.Output, s.Error)
			}
			heard := false
			for _, r := range m.Requests() {
				if strings.Contains(string(r.Body), "always answer in verse, says \\\"the operator\\\"\\n\\\\o/") {
					heard = true
				}
				if kind == "claude" && !r.Side && (slices.Contains(r.Tools, "Bash") || slices.Contains(r.Tools, "Write") || !slices.Contains(r.Tools, "Read")) {
					t.Errorf("the model is offered %q", r.Tools)
				}
			}
			if !heard {
				t.Error("the model was not told the system prompt")
			}
		})
	}
	t.Run("claude without built-in tools", func(t *testing.T) {
		a, m := cli(t, "claude", nil)
		m.Use(model.Replies(model.Reply{Text: "Alone."}))
		s := a.end(a.submit(api.AgentTask{Prompt: "hello", Isolated: true, AllowedTools: []string{"mcp__box__list"}}).TaskID)
		if s.State != "completed" {
			t.Fatalf("%s %q %+v", s.State, s.Output, s.Error)
		}
		for _, r := range m.Requests() {
			if slices.Contains(r.Tools, "Read") || slices.Contains(r.Tools, "Bash") {
				t.Errorf("the model is offered %q", r.Tools)
			}
		}
	})
}

// The task's timeout counts, even above the agent's default, and the message
// says which of the two applied.
func TestIncidentSilentMinOfTimeouts(t *testing.T) {
	cfg := config(t, "demo")
	cfg.DefaultTimeout = 50 * time.Millisecond
	a := start(t, cfg)
	if s := a.end(a.submit(api.AgentTask{Prompt: "sleep 200ms", TimeoutSeconds: 60}).TaskID); s.State != "completed" {
		t.Errorf("cut short by the agent's default: %+v", s.Error)
	}
	s := a.end(a.submit(api.AgentTask{Prompt: "sleep 1h"}).TaskID)
	wantError(t, s, "failed", "timeout", "run timeout of 50ms (this agent's default, agent.timeout)")

	long := config(t, "demo")
	long.DefaultTimeout = time.Hour
	b := start(t, long)
	s = b.end(b.submit(api.AgentTask{Prompt: "sleep 1h", TimeoutSeconds: 1}).TaskID)
	wantError(t, s, "failed", "timeout", "run timeout of 1s (timeout_seconds of the task)")
}

func sessionIDs(a *agent) []string {
	a.t.Helper()
	var list api.AgentSessions
	if code := a.do("GET", "/sessions", nil, &list); code != 200 || list.Sessions == nil {
		a.t.Fatalf("GET /sessions: %d %+v", code, list)
	}
	ids := []string{}
	for i, s := range list.Sessions {
		if s.LastUsed.IsZero() || (i > 0 && s.LastUsed.After(list.Sessions[i-1].LastUsed)) {
			a.t.Errorf("not the newest first: %+v", list.Sessions)
		}
		ids = append(ids, s.SessionID)
	}
	slices.Sort(ids)
	return ids
}

// A command, which keeps no conversations of its own, gets their names.
func TestSessionsOfACommand(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*agentd.Config)
		tells  bool
	}{
		"command": {func(*agentd.Config) {}, false},
		"told":    {func(c *agentd.Config) { c.Runner.Command = append(c.Runner.Command, "--", "{session_id}") }, true},
		"demo":    {func(c *agentd.Config) { c.Kind = "demo" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := command(t, "echo")
			c.change(&cfg)
			a := start(t, cfg)
			if ids := sessionIDs(a); len(ids) != 0 {
				t.Errorf("at first %q", ids)
			}
			a.end(a.submit(api.AgentTask{Prompt: "sleep 1ms", SessionID: "talk-1"}).TaskID)
			a.end(a.submit(api.AgentTask{Prompt: "sleep 1ms", Isolated: true}).TaskID)
			nameless := a.end(a.submit(api.AgentTask{Prompt: "sleep 1ms"}).TaskID)
			want := []string{"talk-1"}
			if c.tells {
				want = append(want, nameless.SessionID)
			}
			slices.Sort(want)
			if ids := sessionIDs(a); !slices.Equal(ids, want) {
				t.Errorf("got %q, want %q", ids, want)
			}
		})
	}
}
