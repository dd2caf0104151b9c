package agentd_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

func TestDemo(t *testing.T) {
	a := start(t, config(t, "demo"))
	for _, c := range []struct {
		prompt, state, typ, text string
		exit                     int
	}{
		{"sleep 10ms", "completed", "", "", 0},
		{"sleep 1ms then fail", "failed", "exit_nonzero", "fail", 1},
		{"sleep 1ms exit 3", "failed", "exit_nonzero", "3", 3},
	} {
		s := a.end(a.submit(api.AgentTask{Prompt: c.prompt}).TaskID)
		if s.State != c.state || s.ExitCode == nil || *s.ExitCode != c.exit {
			t.Errorf("%s: %+v", c.prompt, s)
		}
		if c.typ != "" {
			wantError(t, s, c.state, c.typ, c.text)
		}
	}
	acc := a.submit(api.AgentTask{Prompt: "sleep 1h", TimeoutSeconds: 1})
	wantError(t, a.end(acc.TaskID), "failed", "timeout", "1s")
	acc = a.submit(api.AgentTask{Prompt: "sleep 1h"})
	var c api.AgentCancelled
	if code := a.do("POST", "/task/"+acc.TaskID+"/cancel", nil, &c); code != 200 || c.State != "cancelled" || c.TaskID != acc.TaskID {
		t.Errorf("cancel: %d %+v", code, c)
	}
	var ref api.AgentRefusal
	if code := a.do("POST", "/task/"+acc.TaskID+"/cancel", nil, &ref); code != 409 || ref.Error != "already_completed" || ref.FinalState != "cancelled" {
		t.Errorf("second cancel: %d %+v", code, ref)
	}
	if code := a.do("POST", "/task/task-unknown/cancel", nil, &ref); code != 404 || ref.Error != "not_found" {
		t.Errorf("cancel of an unknown task: %d %+v", code, ref)
	}
}

// The arguments reach the program unchanged: no shell, no splitting, no
// second expansion.
func TestCommandArguments(t *testing.T) {
	a := start(t, command(t, "echo", "--", "{prompt}", "--model={model}", "{session_id}"))
	prompt := "-rf $(touch pwned) `id` ; \"two  words\" {model} \n line"
	s := a.end(a.submit(api.AgentTask{Prompt: prompt, Model: "m-1", SessionID: "s.1"}).TaskID)
	if want := "--|" + prompt + "|--model=m-1|s.1\n"; s.Output != want || s.State != "completed" {
		t.Errorf("got %q, want %q (%+v)", s.Output, want, s.Error)
	}
	if _, err := os.Stat(filepath.Join(a.cfg.WorkDir, "pwned")); err == nil {
		t.Error("a shell ran")
	}
}

func TestPromptIsNeverAnOption(t *testing.T) {
	a := start(t, command(t, "echo", "{prompt}"))
	s := a.end(a.submit(api.AgentTask{Prompt: "--delete-everything"}).TaskID)
	wantError(t, s, "failed", "start_error", "option")
}

func TestCommandOutcomes(t *testing.T) {
	a := start(t, command(t, "fail"))
	s := a.end(a.submit(api.AgentTask{Prompt: "x"}).TaskID)
	wantError(t, s, "failed", "exit_nonzero", "the disk is on fire")
	if s.ExitCode == nil || *s.ExitCode != 3 {
		t.Errorf("exit code %v", s.ExitCode)
	}
	cfg := config(t, "command")
	cfg.Runner.Command = []string{"/nonexistent/program"}
	b := start(t, cfg)
	wantError(t, b.end(b.submit(api.AgentTask{Prompt: "x"}).TaskID), "failed", "start_error", "nonexistent")
	b.idle()
}

func TestMissingCLIFailsStart(t *testing.T) {
	for _, kind := range clis {
		cfg := config(t, kind)
		cfg.Runner.Binary = "/nonexistent/" + kind
		a := start(t, cfg)
		wantError(t, a.end(a.submit(api.AgentTask{Prompt: "x"}).TaskID), "failed", "start_error", "not installed")
	}
}

// A long prompt arrives complete on standard input.
func TestLongPrompt(t *testing.T) {
	a := start(t, command(t, "cat"))
	prompt := strings.Repeat("0123456789abcdef", 60_000)
	s := a.end(a.submit(api.AgentTask{Prompt: prompt}).TaskID)
	if s.State != "completed" || s.Output != prompt {
		t.Errorf("%s, %d bytes of %d", s.State, len(s.Output), len(prompt))
	}
	b := start(t, command(t, "echo", "x{prompt}"))
	wantError(t, b.end(b.submit(api.AgentTask{Prompt: prompt}).TaskID), "failed", "start_error", "standard input")
}

func TestCancelOfProcesses(t *testing.T) {
	for _, role := range []string{"hang", "stubborn", "polite", "escape"} {
		t.Run(role, func(t *testing.T) {
			a := start(t, command(t, role))
			acc := a.submit(api.AgentTask{Prompt: "x"})
			a.says(acc.TaskID, "hanging")
			var raw any
			code := a.do("POST", "/task/"+acc.TaskID+"/cancel", nil, &raw)
			if code != 200 {
				t.Errorf("cancel: %d %v", code, raw)
			}
			gone(t, acc.TaskID)
			a.idle()
		})
	}
}

// A grandchild that holds standard output open blocks neither the reader nor
// the slot.
func TestIncidentGrandchildHoldsStdout(t *testing.T) {
	a := start(t, command(t, "holder"))
	acc := a.submit(api.AgentTask{Prompt: "x"})
	if s := a.end(acc.TaskID); s.State != "completed" || !strings.Contains(s.Output, "parent done") {
		t.Errorf("%+v", s)
	}
	gone(t, acc.TaskID)
	a.idle()
}

// A process that has left its session, its parents, its environment and its
// outputs still ends with its run, before the slot is free.
func TestSlotIsHeldForProcessWithoutMarks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("finding it needs Linux")
	}
	file := filepath.Join(t.TempDir(), "pid")
	cfg := command(t, "")
	cfg.Runner.Command = []string{"/bin/sh"}
	a := start(t, cfg)
	acc := a.submit(api.AgentTask{Prompt: "(setsid env -i sh -c 'echo $$ > " + file + "; exec sleep 300' < /dev/null > /dev/null 2>&1 &)\nuntil test -s " + file + "; do sleep 0.01; done"})
	if s := a.end(acc.TaskID); s.State != "completed" {
		t.Errorf("%+v", s)
	}
	a.idle()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if lives(pid) {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
		t.Errorf("the agent is idle and process %d is still alive", pid)
	}
}

func TestSlowCancelAnswers202(t *testing.T) {
	cfg := command(t, "stubborn")
	cfg.KillGrace, cfg.CancelWait = 500*time.Millisecond, time.Millisecond
	a := start(t, cfg)
	acc := a.submit(api.AgentTask{Prompt: "x"})
	a.says(acc.TaskID, "hanging")
	var c api.AgentCancelled
	if code := a.do("POST", "/task/"+acc.TaskID+"/cancel", nil, &c); code != 202 || c.State != "cancelling" {
		t.Errorf("%d %+v", code, c)
	}
	wantError(t, a.end(acc.TaskID), "cancelled", "cancelled", "cancelled")
}

func TestWorkingFolders(t *testing.T) {
	cfg := command(t, "pwd")
	cfg.Slots = 2
	if err := os.Mkdir(filepath.Join(cfg.WorkDir, "proj"), 0o700); err != nil {
		t.Fatal(err)
	}
	a := start(t, cfg)
	work, _ := filepath.EvalSymlinks(cfg.WorkDir)
	for _, c := range []struct {
		name      string
		task      api.AgentTask
		dir, home string
	}{
		{"own", api.AgentTask{}, work, cfg.Home},
		{"project", api.AgentTask{Project: &api.Project{Path: "proj"}}, filepath.Join(work, "proj"), cfg.Home},
		{"second slot", api.AgentTask{Slot: 1}, filepath.Join(cfg.DataDir, "slots", "1", "work"), filepath.Join(cfg.DataDir, "slots", "1", "home")},
		{"isolated", api.AgentTask{Isolated: true}, filepath.Join(cfg.DataDir, "runs", "TASK", "work"), filepath.Join(cfg.DataDir, "runs", "TASK", "home")},
	} {
		c.task.Prompt = "x"
		acc := a.submit(c.task)
		want := strings.ReplaceAll(c.dir+" "+c.home+"\n", "TASK", acc.TaskID)
		if s := a.end(acc.TaskID); s.Output != want {
			t.Errorf("%s: %q, want %q (%+v)", c.name, s.Output, want, s.Error)
		}
	}
}

// A program given relative to the working directory is found by every run,
// even if the run has another directory; a project may have its own.
func TestRelativeProgramIsFoundFromAnyDirectory(t *testing.T) {
	cfg := config(t, "command")
	cfg.Slots, cfg.IsolatedSlots = 2, 1
	cfg.Runner.Command = []string{"./job.sh", "{prompt}"}
	script := func(dir, says string) {
		t.Helper()
		path := filepath.Join(cfg.WorkDir, dir)
		if err := errors.Join(os.MkdirAll(path, 0o700), os.WriteFile(filepath.Join(path, "job.sh"), []byte("#!/bin/sh\necho "+says+" $1\n"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	script(".", "ours")
	script("proj", "theirs")
	if err := os.Mkdir(filepath.Join(cfg.WorkDir, "bare"), 0o700); err != nil {
		t.Fatal(err)
	}
	a := start(t, cfg)
	for name, c := range map[string]struct {
		task api.AgentTask
		want string
	}{
		"own":            {api.AgentTask{}, "ours x\n"},
		"second slot":    {api.AgentTask{Slot: 1}, "ours x\n"},
		"isolated":       {api.AgentTask{Isolated: true}, "ours x\n"},
		"project":        {api.AgentTask{Project: &api.Project{Path: "proj"}}, "theirs x\n"},
		"project, plain": {api.AgentTask{Project: &api.Project{Path: "bare"}}, "ours x\n"},
	} {
		c.task.Prompt = "x"
		if s := a.end(a.submit(c.task).TaskID); s.Output != c.want {
			t.Errorf("%s: %q, want %q (%+v)", name, s.Output, c.want, s.Error)
		}
	}
}

// Two daemons over one working folder take turns.
func TestWorkingFolderIsLocked(t *testing.T) {
	one := command(t, "polite")
	two := command(t, "pwd")
	two.WorkDir = one.WorkDir
	a, b := start(t, one), start(t, two)
	first := a.submit(api.AgentTask{Prompt: "x"})
	a.says(first.TaskID, "hanging")
	second := b.submit(api.AgentTask{Prompt: "x"})
	b.says(second.TaskID, "another run is using")
	if s := b.get(second.TaskID); s.State != "working" {
		t.Errorf("the second is %s", s.State)
	}
	a.do("POST", "/task/"+first.TaskID+"/cancel", nil, nil)
	if s := b.end(second.TaskID); s.State != "completed" {
		t.Errorf("the second ended as %+v", s)
	}
	// A wait for the folder can be cancelled, and ends by itself.
	third := a.submit(api.AgentTask{Prompt: "x"})
	a.says(third.TaskID, "hanging")
	fourth := b.submit(api.AgentTask{Prompt: "x"})
	b.says(fourth.TaskID, "another run is using")
	if code := b.do("POST", "/task/"+fourth.TaskID+"/cancel", nil, nil); code != 200 {
		t.Errorf("cancel of a waiting run: %d", code)
	}
	two.LockWait = 10 * time.Millisecond
	b.stop()
	b = start(t, two)
	wantError(t, b.end(b.submit(api.AgentTask{Prompt: "x"}).TaskID), "failed", "start_error", "in use")
}

func TestStatus(t *testing.T) {
	cfg := config(t, "demo")
	cfg.Name, cfg.Model, cfg.Version = "berta", "m", "1.2.3"
	a := start(t, cfg)
	var s api.AgentStatus
	if code := a.do("GET", "/status", nil, &s); code != http.StatusOK {
		t.Fatal(code)
	}
	if s.Type != "agent" || s.State != "idle" || s.AgentKind != "demo" || s.Name != "berta" || s.Version != "1.2.3" || s.Config.Model != "m" ||
		s.Config.Port == 0 || !s.Fencing || !s.LongPoll || s.Slots != 1 || len(s.Interfaces) != 3 || s.WorkDir == "" || s.CurrentTask != nil {
		t.Errorf("%+v", s)
	}
	changed := a.daemon.Changed()
	acc := a.submit(api.AgentTask{Prompt: "sleep 1m"})
	select {
	case <-changed:
	case <-time.After(long):
		t.Error("no signal of the change")
	}
	if s := a.daemon.Status(); s.State != "working" || s.CurrentTask == nil || s.CurrentTask.ID != acc.TaskID {
		t.Errorf("%+v", s)
	}
}

func TestConfigErrorsNameField(t *testing.T) {
	good := config(t, "demo")
	for field, change := range map[string]func(*agentd.Config){
		"kind":         func(c *agentd.Config) { c.Kind = "" },
		"unknown kind": func(c *agentd.Config) { c.Kind = "gpt" },
		"data dir":     func(c *agentd.Config) { c.DataDir = "" },
		"slots":        func(c *agentd.Config) { c.Slots = 65 },
		"durations":    func(c *agentd.Config) { c.KillGrace = -1 },
		"work dir":     func(c *agentd.Config) { c.WorkDir = "/nonexistent" },
		"project root": func(c *agentd.Config) { c.ProjectRoots = []string{"/nonexistent"} },
		"model":        func(c *agentd.Config) { c.Model = "--flag" },
		"permission":   func(c *agentd.Config) { c.Kind, c.Runner.Permission = "claude", "everything" },
		"sandbox":      func(c *agentd.Config) { c.Kind, c.Runner.Permission = "codex", "everything" },
		"command":      func(c *agentd.Config) { c.Kind = "command" },
	} {
		cfg := good
		change(&cfg)
		if _, err := agentd.New(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
