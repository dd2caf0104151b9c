package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// interrupted is the seed async-task-queue's text for a task that a restart
// ended.
const interrupted = "Task interrupted before completion (agent restart)"

// The methods of enforcing limits under test: the best one of this machine,
// whose control groups know every living process of a run, and the one that
// every machine has.
const (
	autoLimits = "auto"
	rlimits    = "rlimit"
)

// commandBox is a box with a director that has command tools.
type commandBox struct {
	*box
	dir      string // DIR of the programs: their notes and their gate
	programs string // folder of the programs
	limits   string
	args     []string
	d        *process
	c        *client.Client
}

// newCommandBox prepares a director with these tools; start starts it.
// settings are additional lines of the section commands of signalbox.yaml.
func newCommandBox(t *testing.T, limits string, tools object, settings ...string) *commandBox {
	t.Helper()
	return commandBoxIn(newBox(t), limits, tools, settings...)
}

// commandBoxIn is newCommandBox in an existing box.
func commandBoxIn(m *box, limits string, tools object, settings ...string) *commandBox {
	t := m.t
	t.Helper()
	b := &commandBox{box: m, limits: limits}
	b.dir = filepath.Join(b.root, "notes")
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.programs, err = filepath.Abs("testdata/commands"); err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		b.complete(tool.(object))
	}
	yaml := "commands:\n  limits: " + limits + "\n"
	for _, line := range settings {
		yaml += "  " + line + "\n"
	}
	config := b.file("signalbox.yaml", yaml, 0o600)
	file := b.toolFile("tools.json", object{"commandTools": tools})
	addr := freePort(t)
	b.args = []string{"--addr", addr, "--config", config, "--tools", file, "--grace", "100ms"}
	b.c = b.client("http://" + addr)
	t.Cleanup(b.endAll)
	return b
}

// complete adds to a tool what all of them have: a test program by its name,
// or a line of shell, and the environment of the programs.
func (b *commandBox) complete(tool object) {
	switch command, _ := tool["command"].(string); {
	case tool["sh"] != nil:
		tool["command"], tool["args"] = "/bin/sh", []string{"-c", tool["sh"].(string)}
		delete(tool, "sh")
	case command != "" && !strings.Contains(command, "/") && tool["args"] == nil:
		tool["command"] = filepath.Join(b.programs, command)
	}
	env := object{"DIR": b.dir, "PATH": "/usr/local/bin:/usr/bin:/bin"}
	if more, ok := tool["env"].(object); ok {
		maps.Copy(env, more)
	}
	tool["env"] = env
	if tool["async"] == nil {
		tool["async"] = true
	}
}

// within is the same box for a subtest.
func (b *commandBox) within(t *testing.T) *commandBox {
	inner, machine := *b, *b.box
	machine.t, inner.box = t, &machine
	return &inner
}

// start starts the director, possibly again.
func (b *commandBox) start() {
	b.t.Helper()
	b.d = b.director(b.args...)
}

// call submits a call as a task and returns its ID.
func (b *commandBox) call(tool, arguments string) string {
	b.t.Helper()
	task, err := b.c.CreateToolTask(b.ctx(), tool, api.NewToolTask{Arguments: json.RawMessage(arguments)}, client.ToolTaskOptions{})
	if err != nil {
		b.t.Fatalf("%s: %v", tool, err)
	}
	return task.ID
}

// ended waits until a task has ended.
func (b *commandBox) ended(id string) api.ToolTask {
	b.t.Helper()
	task, err := b.c.WaitToolTask(b.ctx(), id)
	if err != nil {
		b.t.Fatalf("%s: %v", id, err)
	}
	return task
}

// did expects a task to complete with a text.
func (b *commandBox) did(id, text string) {
	b.t.Helper()
	if task := b.ended(id); task.Status != "completed" || said(task) != text {
		b.t.Errorf("%s of %s: %s (%s): %q, want %q", id, task.ToolName, task.Status, task.Message, said(task), text)
	}
}

// said returns the text of a task's result.
func said(task api.ToolTask) string {
	if task.Result == nil {
		return ""
	}
	var parts []struct{ Text string }
	if err := json.Unmarshal(task.Result.Content, &parts); err != nil {
		return err.Error()
	}
	var all []string
	for _, p := range parts {
		all = append(all, p.Text)
	}
	return strings.Join(all, "")
}

// failure returns why a task failed.
func failure(task api.ToolTask) string {
	if task.Error == nil {
		return ""
	}
	return *task.Error
}

// life is a process that a test program has recorded.
type life struct {
	task  string
	pid   int
	start string // distinguishes it from a later process with the same PID
}

func (l life) String() string { return fmt.Sprintf("process %d of %s", l.pid, l.task) }

// lives returns all recorded processes.
func (b *commandBox) lives() []life {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "lives"))
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	var all []life
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || !strings.HasSuffix(line, "\n") {
			continue // it is being written
		}
		pid, err := strconv.Atoi(fields[1])
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, life{fields[0], pid, fields[2]})
	}
	return all
}

// alive reports whether a process is alive; a zombie is not.
func (l life) alive() bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	return len(fields) > 19 && fields[19] == l.start && fields[0] != "Z" && fields[0] != "X"
}

// survivors are the living processes of a task, or of all tasks if id is "".
func (b *commandBox) survivors(id string) []life {
	b.t.Helper()
	var left []life
	for _, l := range b.lives() {
		if (id == "" || l.task == id) && l.alive() {
			left = append(left, l)
		}
	}
	return left
}

// endAll ends the processes that a failed test left behind.
func (b *commandBox) endAll() {
	for _, l := range b.survivors("") {
		b.t.Errorf("%s lives at the end of the test", l)
		_ = syscall.Kill(l.pid, syscall.SIGKILL)
	}
}

// runs counts how often each task has begun.
func (b *commandBox) runs() map[string]int {
	text, _ := os.ReadFile(filepath.Join(b.dir, "runs"))
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		count[strings.TrimSpace(line)]++
	}
	return count
}

// open lets all current and future runs of family end.
func (b *commandBox) open() { b.file(filepath.Join(b.dir, "open"), "", 0o600) }

// grouped reports whether this machine has control groups, which find even
// processes that hide.
func (b *commandBox) grouped() bool {
	b.t.Helper()
	return b.limits == autoLimits && strings.Contains(b.doctorSays("limits"), "cpu_time by cgroup2")
}

// keeps reports whether control groups enforce a limit, for a whole run.
func (b *commandBox) keeps(limit string) bool {
	b.t.Helper()
	return b.limits == autoLimits && strings.Contains(b.doctorSays("limits"), limit+" by cgroup2")
}

// doctorSays returns doctor's result for an area.
func (b *commandBox) doctorSays(area string) string {
	b.t.Helper()
	doctor, err := b.c.Doctor(b.ctx())
	if err != nil {
		b.t.Fatal(err)
	}
	var all []string
	for _, check := range doctor.Checks {
		if check.Area == area {
			all = append(all, check.Text)
		}
	}
	return strings.Join(all, "\n")
}
