package e2e_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// stage is a director with agents and tools to look at.
type stage struct {
	*box
	d      *process
	c      *client.Client
	args   []string
	agents map[string]*process
}

// newStage starts a director with demo agents of these names. The tools browse
// (two at once) and search_code (one at a time) wait for the requested time.
func newStage(t *testing.T, agents ...string) *stage {
	t.Helper()
	chromium(t) // before anything is started in vain
	b := newBox(t)
	tool := func(queue string) object {
		return object{
			"description": "It waits, and answers.", "queue": queue, "command": binary, "args": []string{"demo", "tool"}, "cwd": b.work, "timeout": "30m",
			"env":         object{"HOME": b.home, "GORACE": "atexit_sleep_ms=0"},
			"inputSchema": object{"type": "object", "properties": object{"about": object{"type": "string"}, "seconds": object{"type": "number"}}},
		}
	}
	file := b.toolFile("tools.json", object{
		"queues":       object{"default": object{"concurrent": 8}, "browser": object{"concurrent": 2}, "github": object{"concurrent": 1}},
		"commandTools": object{"browse": tool("browser"), "search_code": tool("github")},
	})
	config := b.file("signalbox.yaml", "commands:\n  limits: rlimit\n", 0o600)
	s := &stage{box: b, agents: map[string]*process{}}
	s.args = []string{"--addr", freePort(t), "--tools", file, "--config", config, "--grace", "100ms"}
	s.start()
	s.c = b.client(s.d.url)
	for _, name := range agents {
		s.hire(name)
	}
	return s
}

// hire starts a demo agent with a token of its own, which identifies it as
// the caller of tools.
func (s *stage) hire(name string, args ...string) {
	s.t.Helper()
	made, err := s.c.CreateToken(s.ctx(), api.NewToken{Name: "of-" + name, Agent: name, Scopes: []string{"submit", "read", "agent", "tool"}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.vars["SIGNALBOX_TOKEN"] = made.Secret
	s.agents[name] = s.agent(name, s.d.url, args...)
	delete(s.vars, "SIGNALBOX_TOKEN")
}

// start starts the director, possibly again.
func (s *stage) start() { s.t.Helper(); s.d = s.director(s.args...) }

// open opens a page of the director in a separate window.
func (s *stage) open(path string) *tab {
	s.t.Helper()
	return s.ownWindow(s.d.url).tab(path)
}

// task submits a prompt for an agent; "" is any agent.
func (s *stage) task(agent, prompt string) string {
	s.t.Helper()
	return s.submit(s.c, api.SubmitRequest{Prompt: prompt, Agent: agent})
}

// running submits a prompt and waits until it runs.
func (s *stage) running(agent, prompt string) string {
	s.t.Helper()
	id := s.task(agent, prompt)
	s.becomes(id, "working")
	return id
}

// becomes waits until a task is in a state.
func (s *stage) becomes(id, state string) (task api.Task) {
	s.t.Helper()
	s.until(id+" is "+state, func() bool {
		var err error
		task, err = s.c.Task(s.ctx(), id)
		return err == nil && task.State == state
	})
	return task
}

// state is the current state of a task.
func (s *stage) state(id string) string {
	s.t.Helper()
	task, err := s.c.Task(s.ctx(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return task.State
}

// wedge stops the process of an agent, as if it hung; undo lets it continue.
func (s *stage) wedge(agent string) (undo func()) {
	s.t.Helper()
	pid := s.agents[agent].pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
}

// speaker starts an agent that runs a script of the test for each task.
func (s *stage) speaker(name, script string) {
	s.t.Helper()
	file := s.file(name+".sh", "#!/bin/sh\n"+strings.TrimSpace(script)+"\n", 0o700)
	s.withSystemPath()
	s.agents[name] = s.agent(name, s.d.url, "--", "/bin/sh", filepath.Clean(file), "{prompt}")
}

func pauseOf(queue, reason string) api.PauseRequest {
	return api.PauseRequest{Queue: queue, Reason: reason}
}
