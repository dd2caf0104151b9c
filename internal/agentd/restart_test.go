package agentd_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// process starts a daemon as a process of its own, so that it can be killed.
func process(t *testing.T, cfg agentd.Config) (*agent, *exec.Cmd) {
	t.Helper()
	a, cmd, err := tryProcess(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a, cmd
}

// tryProcess is process for a daemon that may die during its start.
func tryProcess(t *testing.T, cfg agentd.Config) (*agent, *exec.Cmd, error) {
	t.Helper()
	plain := cfg
	plain.Logger = nil
	b, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, helperFlag+"daemon", string(b))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, cmd, err
	}
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &agent{t: t, cfg: cfg, url: "http://" + strings.TrimSpace(line), client: &http.Client{Transport: tr}}, cmd, nil
}

func TestRestartAfterKillEndsLeftoverRuns(t *testing.T) {
	for _, role := range []string{"stubborn", "escape"} {
		t.Run(role, func(t *testing.T) {
			a, cmd := process(t, command(t, role))
			acc := a.submit(fenced("queue-a", 3, "x"))
			a.says(acc.TaskID, "hanging")
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if len(proc.Alive(proc.Ident{Mark: acc.TaskID})) == 0 {
				t.Fatal("the run did not outlive the daemon; the test proves nothing")
			}
			b := start(t, a.cfg)
			gone(t, acc.TaskID)
			s := b.get("queue-a")
			wantError(t, s, "failed", "interrupted", "restarted")
			if s.TaskID != acc.TaskID || s.Fence != 3 || s.CompletedAt == nil {
				t.Errorf("record is %+v", s)
			}
			if out := b.says(acc.TaskID, "hanging"); out == "" {
				t.Error("the output is lost")
			}
			if got := b.submit(fenced("queue-a", 3, "x")); got.TaskID != acc.TaskID {
				t.Error("the same fence ran again")
			}
			b.refused(fenced("queue-b", 2, "x"), 409, "stale_fence")
		})
	}
}

func TestShutdownInterruptsRuns(t *testing.T) {
	a := start(t, command(t, "stubborn"))
	acc := a.submit(api.AgentTask{Prompt: "x"})
	a.says(acc.TaskID, "hanging")
	a.stop()
	gone(t, acc.TaskID)
	b := start(t, a.cfg)
	wantError(t, b.get(acc.TaskID), "failed", "interrupted", "shut down")
}

func TestShutdownByRequest(t *testing.T) {
	a := start(t, command(t, "polite"))
	acc := a.submit(api.AgentTask{Prompt: "x"})
	a.says(acc.TaskID, "hanging")
	var ref api.AgentRefusal
	if code := a.do("POST", "/shutdown", nil, &ref); code != 409 || ref.Error != "task_in_progress" || ref.CurrentTask == nil {
		t.Errorf("%d %+v", code, ref)
	}
	if code := a.do("POST", "/shutdown", api.AgentShutdown{Force: true}, nil); code != 202 {
		t.Errorf("forced: %d", code)
	}
	a.stop()
	gone(t, acc.TaskID)
}

func TestOneDaemonPerDataFolder(t *testing.T) {
	a := start(t, config(t, "demo"))
	if d, err := agentd.New(a.cfg); err == nil || !strings.Contains(err.Error(), "in use") {
		if d != nil {
			d.Close()
		}
		t.Errorf("a second daemon over the data folder: %v", err)
	}
}

// An unreadable record is set aside; a partial write does not count as a
// record.
func TestCorruptRecord(t *testing.T) {
	a := start(t, config(t, "demo"))
	acc := a.submit(api.AgentTask{Prompt: "sleep 1ms"})
	a.end(acc.TaskID)
	a.stop()
	dir := filepath.Join(a.cfg.DataDir, "records")
	for name, text := range map[string]string{"task-bad.json": "{\"task_id\": \"task-b", ".new-task-half.json": "{"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := start(t, a.cfg)
	if s := b.get(acc.TaskID); s.State != "completed" {
		t.Errorf("the good record is %+v", s)
	}
	if _, err := os.Stat(filepath.Join(dir, "task-bad.json.corrupt")); err != nil {
		t.Error(err)
	}
	if code := b.do("GET", "/task/task-bad", nil, nil); code != 404 {
		t.Errorf("the bad record: %d", code)
	}
}

// A task that cannot be stored is not accepted.
func TestStorageErrorRefusesTask(t *testing.T) {
	a := start(t, config(t, "demo"))
	dir := filepath.Join(a.cfg.DataDir, "records")
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	a.refused(fenced("queue-a", 1, "sleep 1ms"), 500, "storage_error")
	if code := a.do("GET", "/task/queue-a", nil, nil); code != 404 {
		t.Errorf("it is known nevertheless: %d", code)
	}
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	a.submit(fenced("queue-a", 1, "sleep 1ms")) // the same claim may be retried
	a.end("queue-a")
}

func TestFilesArePrivateWithoutSecrets(t *testing.T) {
	a := start(t, command(t, "echo", "nothing of it")) // output is stored, whatever it is, so this prints nothing of them
	acc := a.submit(api.AgentTask{Prompt: strings.Repeat("word ", 100) + "prompt-secret", Env: map[string]string{"KEY": "env-secret"}})
	a.end(acc.TaskID)
	err := filepath.Walk(a.cfg.DataDir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil || strings.Contains(string(b), "secret") {
				t.Errorf("%s holds a secret: %s %v", path, b, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Records are not synced, and the first one is written when the program
// starts or ends. A kill at any time loses none.
func TestRestartAfterKillKeepsHistory(t *testing.T) {
	a, cmd := process(t, config(t, "demo"))
	var ids []string
	for i := int64(1); i <= 5; i++ {
		ids = append(ids, a.submit(fenced("queue-"+itoa(i), i, "sleep 1ms")).TaskID)
		a.end("queue-" + itoa(i))
	}
	ids = append(ids, a.submit(fenced("queue-6", 6, "sleep 1h")).TaskID)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	b := start(t, a.cfg)
	for i, id := range ids {
		n := int64(i + 1)
		s := b.get("queue-" + itoa(n))
		if n == 6 {
			wantError(t, s, "failed", "interrupted", "restarted")
			if got := b.submit(fenced("queue-6", 6, "x")); got.TaskID != id || s.TaskID != id {
				t.Error("the same fence ran again")
			}
		} else if s.TaskID != id || s.State != "completed" || s.Output == "" || b.says(id, "step 1") == "" {
			t.Errorf("%+v", s)
		}
	}
	b.refused(fenced("queue-7", 5, "x"), 409, "stale_fence")
}
