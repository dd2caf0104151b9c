package agentd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// loggedIn starts a fake ChatGPT backend and stores a login for it in a home.
func loggedIn(t *testing.T, home string) *model.ChatGPT {
	t.Helper()
	p := model.StartChatGPT()
	t.Cleanup(p.Close)
	if err := p.LogIn(home); err != nil {
		t.Fatal(err)
	}
	return p
}

// windows are the windows of the account in the agent's status, as text.
func (a *agent) windows() string {
	var list []string
	for _, w := range a.daemon.Status().Account.Windows {
		list = append(list, fmt.Sprintf("%s %v%% until %d", w.Name, w.UsedPercent, w.ResetsAt.Unix()))
	}
	return strings.Join(list, ", ")
}

// TestCodexIsAskedForItsLimits: codex reports usage before any run, and the second at which a
// limit ends, which the run's own message does not have.
func TestCodexIsAskedForItsLimits(t *testing.T) {
	t.Parallel()
	cfg := config(t, "codex")
	cfg.Runner.Binary = binary(t, "codex")
	cfg.KillGrace = 2 * time.Second
	p := loggedIn(t, cfg.Home)
	p.Used.Store(42)
	a := start(t, cfg)
	want := func(used int) string {
		return fmt.Sprintf("five_hour %d%% until %d, seven_day 17%% until %d", used, p.Reset.Unix(), p.Reset.Add(24*time.Hour).Unix())
	}
	testkit.Wait(t, "the windows are known before any run", func() bool { return a.windows() == want(42) })
	if a.daemon.Status().Account.AnsweredAt != nil {
		t.Error("a model's answer is reported")
	}
	if n := p.Asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}

	p.Used.Store(100)
	s := a.end(a.submit(fenced("queue-a", 1, "hello")).TaskID)
	wantError(t, s, "failed", "usage_limit", "usage limit")
	if l := s.Limit; l == nil || l.Source != "event" || l.Window != "five_hour" || l.ResetsAt == nil || !l.ResetsAt.Equal(p.Reset) {
		t.Errorf("the limit is %+v, want it over at %s", s.Limit, p.Reset)
	}
	if got := a.windows(); got != want(100) {
		t.Errorf("the windows are %s", got)
	}

	p.Used.Store(60) // the backend reports unused windows, so the run's message counts
	s = a.end(a.submit(fenced("queue-b", 2, "hello")).TaskID)
	if l := s.Limit; l == nil || l.Source != "text" || l.Window != "" || l.ResetsAt == nil {
		t.Errorf("the limit is %+v", s.Limit)
	}
}

// fakeCodex configures a codex whose app-server is a script.
func fakeCodex(t *testing.T, appServer string) agentd.Config {
	t.Helper()
	cfg := config(t, "codex")
	cfg.Runner.Binary = filepath.Join(t.TempDir(), "codex")
	script := "#!/bin/sh\ncase \"$1\" in app-server)\n" + appServer + "\nexit;; esac\n" +
		`echo '{"type":"thread.started","thread_id":"x"}'; echo '{"type":"turn.started"}'; echo '{"type":"turn.failed","error":{"message":"You have hit your usage limit. Try again at 7:38 PM."}}'` + "\n"
	if err := os.WriteFile(cfg.Runner.Binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	loggedIn(t, cfg.Home)
	return cfg
}

// TestCLIThatReportsNoLimits: a CLI that cannot be asked changes nothing about
// the end of runs.
func TestCLIThatReportsNoLimits(t *testing.T) {
	for name, script := range map[string]string{
		"ends at once":  "exit 3",
		"refuses":       `read line; echo '{"id":1,"error":{"code":-32600,"message":"no such method"}}'; cat > /dev/null`,
		"prints no end": "exec tr '\\0' x < /dev/zero",
		"is no JSON":    "while :; do echo hello; done | head -100000",
		"leaves a child that keeps the output open": "(trap '' TERM; exec setsid sleep 600) & exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(name, "prints") {
				soak.Only(t, "a CLI that is asked and prints for ever: it is ended after ten seconds, as one that is silent")
			}
			a := start(t, fakeCodex(t, script))
			s := a.end(a.submit(fenced("queue-a", 1, "hello")).TaskID)
			wantError(t, s, "failed", "usage_limit", "usage limit")
			if l := s.Limit; l == nil || l.Source != "text" || l.ResetsAt == nil {
				t.Errorf("the limit is %+v", s.Limit)
			}
			if got := a.windows(); got != "" {
				t.Errorf("windows %s", got)
			}
		})
	}
}

// TestCLIThatDoesNotAnswerEndsWithTheAgent: it ends with all its child processes
// when the agent stops.
func TestCLIThatDoesNotAnswerEndsWithTheAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	a := start(t, fakeCodex(t, fmt.Sprintf(`trap '' TERM; setsid sleep 600 & echo $! $$ > %s.new; mv %s.new %s; while :; do sleep 600; done`, pids, pids, pids)))
	if got := a.windows(); got != "" {
		t.Errorf("windows %s", got)
	}
	var text []byte
	testkit.Wait(t, "it was started", func() bool {
		text, _ = os.ReadFile(pids)
		return len(text) > 0
	})
	a.stop()
	for pid := range strings.FieldsSeq(string(text)) {
		if n, err := strconv.Atoi(pid); err != nil || lives(n) {
			t.Errorf("process %s lives on (%v)", pid, err)
		}
	}
}
