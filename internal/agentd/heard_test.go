package agentd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// Each CLI reports a refused key within five seconds of the first answer. Left
// alone, Claude Code retries ten times over minutes without output.
func TestRefusedKeyEndsRunAtOnce(t *testing.T) {
	for _, kind := range clis {
		t.Run(kind, func(t *testing.T) {
			if kind == "opencode" { // it takes seconds to start
				soak.Only(t, "an opencode that says another thing of a refused key than package runner knows")
			}
			a, m := cli(t, kind, func(c *agentd.Config) { c.Environ = append(c.Environ, "CLAUDE_CODE_MAX_RETRIES=10") })
			var answered atomic.Int64
			m.Use(func(model.Request) model.Reply {
				answered.CompareAndSwap(0, time.Now().UnixNano())
				return model.Reply{Status: 401, Message: "invalid x-api-key"}
			})
			s := a.end(a.submit(api.AgentTask{Prompt: "hello"}).TaskID)
			took := time.Since(time.Unix(0, answered.Load()))
			if s.State != "failed" || s.Error == nil || s.Error.Type != "login_refused" || !strings.Contains(s.Error.Message, "key or login") {
				t.Errorf("%s %+v", s.State, s.Error)
			}
			if n := len(m.Requests()); took > 5*time.Second || n > 4 {
				t.Errorf("it asked %d times, and ended %s after the first answer", n, took)
			}
			t.Logf("ended %s after the first answer: %s", took, s.Error.Message)
		})
	}
}

// codex prints a message only when it is complete; before that, tokens from
// its model count as activity.
func TestCodexIsActiveWhileModelWrites(t *testing.T) {
	a, m := cli(t, "codex", nil)
	var asked atomic.Int64
	m.Use(func(model.Request) model.Reply {
		asked.CompareAndSwap(0, time.Now().UnixNano())
		return model.Reply{Text: "One two three.", Chunks: 3, Pause: 400 * time.Millisecond, Hang: true}
	})
	id := a.submit(api.AgentTask{Prompt: "count"}).TaskID
	if err := m.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	first := time.Unix(0, asked.Load()).Add(300 * time.Millisecond) // by then it has printed its first events
	testkit.Wait(t, "progress is seen", func() bool {
		s := a.get(id)
		if s.State != "working" {
			t.Fatalf("it ended before progress was seen: %+v", s)
		}
		return s.LastProgressAt != nil && s.LastProgressAt.After(first)
	})
	a.do("POST", "/task/"+id+"/cancel", nil, nil)
	a.end(id)
	if b, err := os.ReadFile(filepath.Join(a.cfg.DataDir, "runs", id, "stderr.log")); err != nil || strings.Contains(string(b), "SSE event") {
		t.Errorf("stderr.log: %v %s", err, b)
	}
}

// The timeout message of a run includes the error that its CLI kept retrying.
func TestTimeoutMessageHasLastTrouble(t *testing.T) {
	a, m := cli(t, "claude", func(c *agentd.Config) { c.Environ = append(c.Environ, "CLAUDE_CODE_MAX_RETRIES=10") })
	m.Use(model.Replies(model.Reply{Status: 500, Message: "out of order"}))
	for seconds := 4; ; seconds *= 2 { // the CLI may start slowly
		s := a.end(a.submit(api.AgentTask{Prompt: "hello", TimeoutSeconds: seconds}).TaskID)
		if s.Error == nil || s.Error.Type != "timeout" {
			t.Fatalf("%s %+v", s.State, s.Error)
		}
		if strings.Contains(s.Error.Message, "the last that was heard: the model's API answers 500") {
			wantError(t, s, "failed", "timeout", fmt.Sprintf("%ds", seconds))
			gone(t, s.TaskID)
			return
		}
		if seconds > 30 {
			t.Fatalf("%+v", s.Error)
		}
	}
}

// opencode prints nothing while it retries its model, but its log shows the
// errors. An error that it does not retry ends the task.
func TestOpencodeLogErrorsAreReported(t *testing.T) {
	a, m := cli(t, "opencode", nil)
	m.Use(model.Replies(model.Reply{Status: 529, Message: "overloaded just now"}))
	id := a.submit(api.AgentTask{Prompt: "hello"}).TaskID
	a.says(id, "[error] the model's API fails: ")
	if note := a.get(id).Note; !strings.Contains(note, "overloaded just now") {
		t.Errorf("the running task's note is %q", note)
	}
	m.Use(model.Replies(model.Reply{Status: 400, Message: "the model has no such thing"}))
	wantError(t, a.end(id), "failed", "claude_error", "no such thing")
}

// The model's text appears while it is written; and only once, as
// TestCLIAnswersAndResumes has it.
func TestClaudeStreamsPartialText(t *testing.T) {
	a, m := cli(t, "claude", nil)
	m.Use(model.Replies(model.Reply{Text: "One two three.", Chunks: 3, Hang: true}))
	id := a.submit(api.AgentTask{Prompt: "count"}).TaskID
	a.says(id, "One")
	if s := a.get(id); s.State != "working" || s.LastProgressAt == nil {
		t.Errorf("%+v", s)
	}
	if code := a.do("POST", "/task/"+id+"/cancel", nil, nil); code != 200 {
		t.Errorf("cancel: %d", code)
	}
}

// The status of a task reports a refused tool, even if the model continued.
func TestRefusedToolIsReported(t *testing.T) {
	a, m := cli(t, "claude", func(c *agentd.Config) { c.Runner.Permission = "default" })
	m.Use(model.Replies(model.Reply{Tool: &model.Tool{Name: "Write", Input: map[string]any{"file_path": "/tmp/no-such-folder/x", "content": "x"}}}, model.Reply{Text: "I could not."}))
	id := a.submit(api.AgentTask{Prompt: "write"}).TaskID
	s := a.end(id)
	if s.State != "completed" || s.Note != "1 use of a tool was refused by the permission mode: Write" {
		t.Errorf("%s %q %+v", s.State, s.Note, s.Error)
	}
	if out := a.says(id, "[signalbox] 1 use of a tool was refused"); !strings.Contains(out, "[tool failed] ") {
		t.Errorf("%q", out)
	}
}

// The token of a run is masked wherever others can read, however it is
// printed.
func TestRunTokenIsRedacted(t *testing.T) {
	const token = "sbxr_0123456789abcdef"
	cfg := config(t, "command")
	cfg.Runner.Command = []string{"/bin/sh", "-c", `printf 'it is sbxr_01234'; sleep 0.2; printf '56789abcdef, sbxr_0 and '; echo "$SIGNALBOX_TOKEN"; sleep 0.2; echo "$SIGNALBOX_TOKEN" >&2; sleep 0.2; printf 'the end s' >&2; exit 3`}
	a := start(t, cfg)
	task := fenced("queue-a", 1, "x")
	task.RunToken = token
	id := a.submit(task).TaskID
	s := a.end(id)
	out := a.says(id, "the end s")
	if strings.Contains(out, token) || !strings.HasSuffix(out, "the end s") || !strings.Contains(out, "it is ***, sbxr_0 and ***") || strings.Contains(s.Output, token) || s.Error == nil || strings.Contains(s.Error.Message, token) {
		t.Errorf("%q %q %+v", out, s.Output, s.Error)
	}
}
