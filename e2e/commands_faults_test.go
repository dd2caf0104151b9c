package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// fault is a tool whose run fails, and how its task ends.
type fault struct {
	name      string
	tool      object
	arguments string // default: {}
	timeoutMS int64
	cancel    bool // after it has printed "ready"
	status    string
	text      string // a pattern for the whole error, or for the answer if it completed
	alsoFails string // an alternative pattern with rlimits
	groups    bool   // requires control groups
}

func faults(b *box) []fault {
	text := b.file("programs/text", "no program\n", 0o600)
	garbage := b.file("programs/garbage", "\x7fELF no program\n", 0o700)
	gone := filepath.Join(b.root, "gone")
	large := `{"text": "` + strings.Repeat("x", 700<<10) + `"}`
	flood := soak.Pick(300_000_000, 1_000_000_000) // far more than growth
	if raced {
		flood /= 10
	}
	memory := `ended: it used more than its memory limit of 64 MiB \(limits\.memory\)(?s:.*)`
	return []fault{
		{name: "missing command", tool: object{"command": filepath.Join(b.root, "nothing")}, status: "failed", text: `.*nothing.*(?s:.*)`},
		{name: "command that PATH has not", tool: object{"command": "no-such-program-anywhere", "args": []string{}}, status: "failed", text: `.*no-such-program-anywhere.*`},
		{name: "not executable", tool: object{"command": text}, status: "failed", text: `.*programs/text.*`},
		{name: "no program", tool: object{"command": garbage}, status: "failed", text: `.*programs/garbage.*`},
		{name: "working folder gone", tool: object{"sh": "echo never", "cwd": gone}, status: "failed", text: `.*/gone.*`},
		{name: "input closed early", tool: object{"sh": "exec <&-; echo fine"}, arguments: large, status: "completed", text: "fine\n"},
		{name: "input never read", tool: object{"sh": "sleep 0.1; echo fine"}, arguments: large, status: "completed", text: "fine\n"},
		{name: "exit code", tool: object{"sh": "exit 7"}, status: "failed", text: "command exited with code 7"},
		{name: "words on stderr", tool: object{"sh": "echo; echo ' it broke ' >&2; exit 1"}, status: "failed", text: "it broke"},
		{name: "a signal", tool: object{"sh": "kill -SEGV $$"}, status: "failed", text: `command ended by signal SIGSEGV.*`},
		{name: "out of the tool's time", tool: object{"sh": "trap '' TERM; setsid sleep 1000 & sleep 1000", "timeoutMs": 400}, status: "failed", text: "Task timed out after 400ms"},
		{name: "out of the task's time", tool: object{"sh": "sleep 1000", "timeoutMs": 600000}, timeoutMS: 300, status: "failed", text: "Task timed out after 300ms"},
		{name: "ignores TERM", tool: object{"sh": "trap '' TERM; echo ready; while :; do sleep 1; done"}, cancel: true, status: "cancelled"},
		{name: "ends itself at TERM", tool: object{"sh": "trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done"}, cancel: true, status: "cancelled"},
		{name: "leaves a double fork", tool: object{"sh": "(sleep 1000 & sleep 1000 &); echo done"}, status: "completed", text: "done\n"},
		{name: "leaves a session", tool: object{"sh": "setsid sleep 1000 </dev/null >/dev/null 2>&1 & (setsid sleep 1000 >/dev/null 2>&1 &); echo done"}, status: "completed", text: "done\n"},
		{name: "holds its output open", tool: object{"sh": "trap '' TERM; sleep 1000 & setsid sleep 1000 & echo done"}, status: "completed", text: "done\n"},
		{name: "floods", tool: object{"sh": "exec yes"}, status: "failed", text: `ended: it printed more than its output limit of 64 MiB \(limits\.output\)(?s:.*)`},
		{name: "floods both", tool: object{"sh": "yes >&2 & exec yes", "limits": object{"output": "1MiB"}}, status: "failed", text: `ended: it printed more than its output limit of 1 MiB \(limits\.output\)(?s:.*)`},
		{name: "floods and may", tool: object{"sh": fmt.Sprintf("yes | head -c %d", flood), "limits": object{"output": "2GiB"}}, status: "completed", text: `(?:y\n)+` + regexp.QuoteMeta(signalbox.AnswerCut)},
		{name: "forks 10,000", tool: object{"sh": "i=0; while [ $i -lt 10000 ]; do sleep 1000 & i=$((i+1)); done; echo all", "limits": object{"processes": 64}}, status: "failed", text: `ended: it wanted more than its limit of 64 processes \(limits\.processes\)(?s:.*)`, groups: true},
		{name: "eats memory", tool: object{"sh": "x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done", "limits": object{"memory": "64MiB"}}, status: "failed", text: memory, alsoFails: `(?s:.*)`},
		{name: "eats memory by children and goes on", tool: object{"sh": "for i in 1 2; do head -c 1G /dev/zero | tail >/dev/null; done; exit 3", "limits": object{"memory": "64MiB"}}, status: "failed", text: memory, alsoFails: `(?s:.*)`},
		{name: "eats time", tool: object{"sh": "while :; do :; done", "limits": object{"cpuTime": "1s"}}, status: "failed", text: `ended: it used more than its CPU time limit of 1s \(limits\.cpuTime\)(?s:.*)`},
		{name: "writes a large file", tool: object{"sh": "exec head -c 10000000 /dev/zero >$DIR/large", "limits": object{"fileSize": "1MiB"}}, status: "failed", text: `ended: it wrote a file larger than its limit of 1 MiB \(limits\.fileSize\)(?s:.*)`},
	}
}

// growth is the allowed growth of the director's memory, at its peak, over all
// faults; a quarter of it is used. Of each run the director keeps 1 MiB per
// output and the tail, whatever it prints. The race detector doubles that.
func growth() int {
	if raced {
		return 300 << 20
	}
	return 150 << 20
}

// Whatever a run does, its task ends with the reason, its slot is released
// only when no process of it is alive, and the director stays small and
// responsive.
func TestFaultsOfCommands(t *testing.T) {
	t.Run("control groups", func(t *testing.T) { faultsTest(t, autoLimits) })
	t.Run("rlimits", func(t *testing.T) { faultsTest(t, rlimits) })
}

func faultsTest(t *testing.T, limits string) {
	outer := newBox(t)
	outer.vars["GOGC"] = "25" // so that the peak shows what is kept, not garbage
	tools, all := object{"quick": object{"sh": "echo quick"}}, faults(outer)
	for i, f := range all {
		tools["fault"+strconv.Itoa(i)] = f.tool
	}
	if err := os.Mkdir(filepath.Join(outer.root, "gone"), 0o700); err != nil {
		t.Fatal(err)
	}
	b := commandBoxIn(outer, limits, tools, "max_concurrent: 2")
	b.start()
	if err := os.Remove(filepath.Join(outer.root, "gone")); err != nil {
		t.Fatal(err)
	}
	b.did(b.call("quick", `{}`), "quick\n")
	before := b.peak()
	stop := b.ping()
	for i, f := range all {
		t.Run(f.name, func(t *testing.T) {
			b := b.within(t)
			if f.groups && !b.keeps("processes") {
				t.Skip("without control groups there is no limit on the processes of a run of root")
			}
			b.fails("fault"+strconv.Itoa(i), f)
			b.noSlotTaken()
			b.did(b.call("quick", `{}`), "quick\n")
		})
	}
	slowest := stop()
	grown := b.peak() - before
	t.Logf("the director's memory grew by %d MiB from %d MiB, its slowest answer took %s", grown>>20, before>>20, slowest)
	if grown > growth() {
		t.Errorf("it grew by %d MiB, want at most %d", grown>>20, growth()>>20)
	}
}

func (b *commandBox) fails(tool string, f fault) {
	b.t.Helper()
	arguments := f.arguments
	if arguments == "" {
		arguments = `{}`
	}
	task, err := b.c.CreateToolTask(b.ctx(), tool, api.NewToolTask{Arguments: json.RawMessage(arguments), TimeoutMS: f.timeoutMS}, client.ToolTaskOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	if f.cancel {
		b.until("it is ready", func() bool {
			out, err := b.c.Output(b.ctx(), task.ID, 0)
			return err == nil && strings.Contains(out.Text, "ready")
		})
		if _, err := b.c.CancelToolTask(b.ctx(), task.ID); err != nil {
			b.t.Fatal(err)
		}
	}
	task = b.ended(task.ID)
	if left := marked(task.ID); len(left) > 0 {
		b.t.Errorf("it has ended as %s, and processes %v of it live", task.Status, left)
	}
	text := failure(task)
	if task.Status == "completed" {
		text = said(task)
	}
	if f.status == "cancelled" {
		text = ""
	}
	matches := func(pattern string) bool { return regexp.MustCompile(`\A(?:` + pattern + `)\z`).MatchString(text) }
	if task.Status != f.status || !matches(f.text) && (f.alsoFails == "" || b.keeps("memory") || !matches(f.alsoFails)) {
		b.t.Errorf("%s (%s): %q; want %s: %s", task.Status, task.Reason, text[:min(len(text), 300)], f.status, f.text)
	}
}

// marked finds the living processes of a task's runs.
func marked(id string) []int {
	var pids []int
	found, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range found {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, []byte("SIGNALBOX_RUN="+id)) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		pids = append(pids, pid)
	}
	return pids
}

// peak is the director's peak memory.
func (b *commandBox) peak() int {
	b.t.Helper()
	for line := range strings.Lines(b.read(fmt.Sprintf("/proc/%d/status", b.d.pid()))) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kB, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err != nil {
				b.t.Fatal(err)
			}
			return kB << 10
		}
	}
	b.t.Fatal("no VmHWM")
	return 0
}

// ping pings the director continuously; stop returns the slowest answer's
// time.
func (b *commandBox) ping() (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	took := make(chan []time.Duration, 1)
	go func() {
		var all []time.Duration
		for ctx.Err() == nil {
			begin := time.Now()
			if _, err := b.c.Status(ctx); err != nil && ctx.Err() == nil {
				b.t.Errorf("it does not answer: %v", err)
				break
			}
			all = append(all, time.Since(begin))
			time.Sleep(20 * time.Millisecond)
		}
		took <- all
	}()
	return func() time.Duration {
		cancel()
		return slices.Max(append(<-took, 0))
	}
}

// Input that violates the tool's schema is refused with the reason, and
// nothing of it is stored.
func TestInputThatDoesNotFitIsNotStored(t *testing.T) {
	const sign = "unfit-6f1c0a"
	schema := object{"type": "object", "properties": object{"n": object{"type": "integer", "maximum": 9}}, "required": []string{"n"}, "additionalProperties": false}
	b := newCommandBox(t, autoLimits, object{"strict": object{"command": "note", "inputSchema": schema}})
	b.start()
	for _, arguments := range []string{`{}`, `{"n": 10}`, `{"n": "` + sign + `"}`, `{"n": 1, "` + sign + `": 1}`, `["` + sign + `"]`, `"` + sign + `"`, `null`} {
		_, err := b.c.CreateToolTask(b.ctx(), "strict", api.NewToolTask{Arguments: json.RawMessage(arguments)}, client.ToolTaskOptions{})
		if client.Code(err) != "validation_error" {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	c := b.over(b.d.url, legacyEra)
	if res, err := c.call(b.ctx(), "strict", object{"n": sign}, ""); err == nil && !res.IsError {
		t.Errorf("over /mcp: %s", textOf(res))
	}
	page, err := b.c.ToolTasks(b.ctx(), client.ToolTasksOptions{})
	if err != nil || len(page.Tasks) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
	if n := len(b.runs()); n != 0 {
		t.Errorf("%d runs", n)
	}
	b.d.stop()
	if found := holding(t, b.data, sign); len(found) > 0 {
		t.Errorf("the refused input is in %v", found)
	}
}

// holding returns the files below a folder that contain a text.
func holding(t *testing.T, folder, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
