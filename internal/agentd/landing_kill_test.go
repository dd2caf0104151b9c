package agentd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// dyingGit is a git that kills the daemon that runs it, randomly before or after its work, as
// often as there are files in the returned folder.
func dyingGit(t *testing.T) (tokens string) {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git here")
	}
	dir := t.TempDir()
	tokens = filepath.Join(dir, "tokens")
	script := fmt.Sprintf(`#!/bin/sh
die() {
	case "$(ps -o args= -p $PPID)" in *%[3]sdaemon*) ;; *) return;; esac
	for token in %[2]q/*; do
		rm "$token" 2>/dev/null && kill -9 $PPID
		return
	done
}
case $(($$ %% 23)) in
0) die;;
1) %[1]q "$@"; code=$?; die; exit $code;;
esac
exec %[1]q "$@"
`, real, tokens, helperFlag)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700), os.Mkdir(tokens, 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REAL_GIT", real)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return tokens
}

// mortal is an agent whose daemon may be killed at any moment. mu guards the start and end of
// each process.
type mortal struct {
	t     *testing.T
	cfg   agentd.Config
	fence *atomic.Int64
	mu    sync.Mutex
	agent *agent
	died  chan struct{} // closed when the current process has died
	lives int
}

// live returns the running daemon; it starts a new one if the last has died.
func (m *mortal) live() (*agent, chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agent != nil {
		select {
		case <-m.died:
		default:
			return m.agent, m.died
		}
	}
	a, cmd, err := tryProcess(m.t, m.cfg)
	for m.lives++; err != nil && m.lives < 1000; m.lives++ { // killed during its start
		_ = cmd.Wait()
		a, cmd, err = tryProcess(m.t, m.cfg)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	died := make(chan struct{})
	go func() { _ = cmd.Wait(); close(died) }()
	m.agent, m.died = a, died
	return a, died
}

// try sends a request to the daemon; it returns false if the daemon dies
// meanwhile.
func (a *agent) try(method, path string, body, into any) (int, bool) {
	b, err := json.Marshal(body)
	if err != nil {
		a.t.Error(err)
		return 0, false
	}
	req, err := http.NewRequest(method, a.url+path, bytes.NewReader(b))
	if err != nil {
		a.t.Error(err)
		return 0, false
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := a.client.Do(req)
	if err != nil {
		return 0, false
	}
	defer res.Body.Close()
	return res.StatusCode, json.NewDecoder(res.Body).Decode(into) == nil
}

// land lands a task's work, however often the daemon dies.
func (m *mortal) land(task api.AgentTask) *api.AgentLanded {
	for range 200 {
		a, died := m.live()
		task.Fence = m.fence.Add(1)
		var acc api.AgentTaskAccepted
		code, ok := a.try("POST", "/task", task, &acc)
		var s api.AgentTaskStatus
		for ok && code == http.StatusCreated && (s.State == "" || s.State == "working") {
			_, ok = a.try("GET", "/task/"+acc.TaskID+"?wait=60s", nil, &s)
		}
		switch {
		case !ok:
			<-died
		case s.State == "completed" && s.Landed != nil:
			return s.Landed
		case s.Error != nil && s.Error.Type == "interrupted":
		default:
			m.t.Errorf("%s: %d %+v %+v", task.QueueID, code, s, s.Error)
			return nil
		}
	}
	m.t.Errorf("%s does not land", task.QueueID)
	return nil
}

// Two agents land on one branch while their daemons are killed at random moments. Each landing
// is on the branch exactly once, the branch has only trees that passed the checks, the user's
// checkout is unchanged, and nothing is left behind.
func TestLandingsOverKills(t *testing.T) {
	tasks, kills := soak.Pick(4, 32), soak.Pick(3, 200)
	cfg := landsFrom(t)
	var lines []string
	for i := range tasks {
		lines = append(lines, fmt.Sprintf("task %d\n\n\n\n", i))
	}
	git(t, cfg, "stash", "-q")
	git(t, cfg, "checkout", "-q", "main")
	put(t, cfg, "shared.txt", strings.Join(lines, ""))
	git(t, cfg, "add", "-A")
	git(t, cfg, "commit", "-q", "-m", "shared")
	base := git(t, cfg, "rev-parse", "main")
	git(t, cfg, "checkout", "-q", "user")
	git(t, cfg, "stash", "pop", "-q", "--index")
	before := checkout(t, cfg)
	tokens := dyingGit(t)
	var fence atomic.Int64
	agents := make([]*mortal, 2)
	for i := range agents {
		c := cfg
		c.DataDir = t.TempDir()
		c.IsolatedSlots = tasks / 2
		c.Environ = append(cfg.Environ[:len(cfg.Environ):len(cfg.Environ)], "PATH="+os.Getenv("PATH"))
		agents[i] = &mortal{t: t, cfg: c, fence: &fence}
	}
	ids := make([]string, tasks)
	for i := range tasks {
		a, _ := agents[i%2].live()
		ids[i] = fmt.Sprintf("queue-%08d", i)
		a.run(api.AgentTask{
			Prompt:  fmt.Sprintf("sed -i.bak 's/^task %d$/task %d is done/' shared.txt && rm shared.txt.bak && echo x > own-%d.txt", i, i, i),
			QueueID: ids[i], Fence: fence.Add(1),
		}, "completed")
	}
	for i := range kills {
		if err := os.WriteFile(filepath.Join(tokens, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	checked := filepath.Join(t.TempDir(), "checked")
	landed := make([]*api.AgentLanded, tasks)
	var wg sync.WaitGroup
	for i, id := range ids {
		task := landTask(id, 0)
		task.Slot = i / 2
		task.Land.Method = []string{"rebase", "squash"}[i/2%2]
		task.Checks = check(fmt.Sprintf("grep 'task %d is done' shared.txt && %s rev-parse 'HEAD^{tree}' >> %s", i, os.Getenv("REAL_GIT"), checked))
		wg.Go(func() { landed[i] = agents[i%2].land(task) })
	}
	wg.Wait()
	left, err := os.ReadDir(tokens)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kills, %d lives", kills-len(left), agents[0].lives+agents[1].lives)
	if err := os.RemoveAll(tokens); err != nil {
		t.Fatal(err)
	}
	if kills == len(left) {
		t.Error("no daemon was killed")
	}
	passed, err := os.ReadFile(checked)
	if err != nil {
		t.Fatal(err)
	}
	commits := strings.Split(git(t, cfg, "log", "--reverse", "--format=%H %T %(trailers:key=Signalbox-Task,valueonly,separator=)", base+"..main"), "\n")
	if len(commits) != tasks {
		t.Errorf("%d commits of %d tasks: %v", len(commits), tasks, commits)
	}
	for _, c := range commits {
		f := strings.Fields(c)
		if !strings.Contains(string(passed), f[1]) {
			t.Errorf("%s was not checked", c)
		}
		if n := strings.Count(strings.Join(commits, "\n"), f[2]); n != 1 {
			t.Errorf("%s landed %d times", f[2], n)
		}
		for i, id := range ids {
			if id == f[2] && landed[i] != nil && landed[i].Commit != f[0] {
				t.Errorf("%s is reported as %s, and is %s", id, landed[i].Commit, f[0])
			}
		}
	}
	if after := checkout(t, cfg); after != before {
		t.Errorf("the user's checkout is\n%s\nand was\n%s", after, before)
	}
	for _, m := range agents {
		a, died := m.live()
		a.do("POST", "/shutdown", api.AgentShutdown{Force: true}, nil)
		<-died
		nothingLeft(t, m.cfg)
	}
}

// checkout returns the state of a user's checkout: all files, the index, HEAD and the
// stash.
func checkout(t *testing.T, cfg agentd.Config) string {
	t.Helper()
	var all strings.Builder
	add := func(path string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %x %s\n", path, sha256.Sum256(b), st.ModTime())
	}
	err := filepath.WalkDir(cfg.WorkDir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == ".git" {
			return fs.SkipDir
		}
		if err == nil && !e.IsDir() {
			add(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	add(filepath.Join(cfg.WorkDir, ".git/index"))
	add(filepath.Join(cfg.WorkDir, ".git/HEAD"))
	return all.String() + git(t, cfg, "stash", "list")
}
