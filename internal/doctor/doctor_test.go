package doctor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/doctor"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

func said(checks []api.Check) []string {
	var out []string
	for _, c := range checks {
		out = append(out, c.State+" "+c.Area+": "+c.Text)
	}
	return out
}

func want(t *testing.T, checks []api.Check, want ...string) {
	t.Helper()
	for _, c := range checks {
		if (c.Cure == "") != (c.State == "ok") {
			t.Errorf("%+v: want a cure unless it is ok", c)
		}
	}
	if got := said(checks); !reflect.DeepEqual(got, want) {
		t.Errorf("\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

const (
	leftovers = "what a program leaves behind is not found where it left its session and its parents, cleared its environment and let go of its outputs"
	eachAlone = "memory is bounded for each process alone, not for all of a run"
)

func TestLimits(t *testing.T) {
	tools := []toolconf.CommandTool{
		{Name: "free", Sandbox: toolconf.Sandbox{Mode: "off"}},
		{Name: "bound", Limits: toolconf.CommandLimits{CPUs: 1, Memory: 1 << 20}, Sandbox: toolconf.Sandbox{Mode: "auto"}},
		{Name: "strict", Limits: toolconf.CommandLimits{CPUs: 2}, Sandbox: toolconf.Sandbox{Mode: "required", Kind: "landlock"}},
	}
	good := confine.Report{
		Method: "cgroup2", Detail: "/sys/fs/cgroup/x", NoNewPrivs: true, Tracked: true,
		Limits:  []confine.LimitReport{{Name: "memory", By: "cgroup2"}, {Name: "cpus", By: "cgroup2"}},
		Sandbox: []confine.SandboxReport{{Kind: "bubblewrap", OK: true, Note: "0.8"}, {Kind: "landlock", OK: true}},
	}
	want(t, doctor.Limits(good, tools)(t.Context(), true),
		"ok limits: programs are bounded by cgroup2 (/sys/fs/cgroup/x): memory by cgroup2, cpus by cgroup2; none can gain privileges",
		"ok sandbox: there is bubblewrap (0.8) and landlock")
	want(t, doctor.Limits(good, tools)(t.Context(), false)[:1],
		"ok limits: programs are bounded by cgroup2: memory by cgroup2, cpus by cgroup2; none can gain privileges")
	poor := confine.Report{
		Method: "rlimit", Limits: []confine.LimitReport{{Name: "memory", By: "rlimit", Note: "of each process"}, {Name: "cpus", Note: "needs control groups"}},
		Sandbox: []confine.SandboxReport{{Kind: "bubblewrap", Note: "not on PATH"}, {Kind: "landlock", Note: "no such system call"}},
	}
	want(t, doctor.Limits(poor, tools)(t.Context(), false),
		"warn limits: programs are bounded by rlimit: memory by rlimit (of each process); they can gain privileges, by a setuid program for instance; "+leftovers+"; "+eachAlone,
		"warn limits: cpus cannot be bounded here (needs control groups), and these tools ask for it: bound, strict",
		"fail sandbox: these tools are refused, for they require a sandbox that is not here: strict",
		"warn sandbox: these tools run without the sandbox that they ask for: bound")
	poor.NoNewPrivs, poor.Cure = true, "ask the administrator"
	got := doctor.Limits(poor, tools)(t.Context(), false)
	want(t, got[:1], "warn limits: programs are bounded by rlimit: memory by rlimit (of each process); none can gain privileges; "+leftovers+"; "+eachAlone)
	for _, c := range got[:2] { // no other cure is named beside that of the machine
		if c.Cure != "to have all of it kept, ask the administrator" {
			t.Errorf("%+v", c)
		}
	}
	poor.Tracked = true
	want(t, doctor.Limits(poor, tools)(t.Context(), false)[:1], "warn limits: programs are bounded by rlimit: memory by rlimit (of each process); none can gain privileges; "+eachAlone)
	want(t, doctor.Limits(poor, tools[:1])(t.Context(), false)[1:],
		"ok sandbox: there is none, and no tool asks for one: bubblewrap, landlock")
	poor.Sandbox[0].OK = true // but strict asks for the other kind
	want(t, doctor.Limits(poor, tools[1:])(t.Context(), false)[2:],
		"ok sandbox: there is bubblewrap",
		"fail sandbox: these tools are refused, for they require a sandbox that is not here: strict")
	poor.Sandbox[1] = confine.SandboxReport{Kind: "landlock", OK: true, Leaky: true} // and to be without network
	want(t, doctor.Limits(poor, tools[1:])(t.Context(), false)[2:],
		"ok sandbox: there is bubblewrap and landlock",
		"fail sandbox: these tools are refused, for they require a sandbox that is not here: strict")
}

// rows is a store whose reads say what a test wants, one look after another.
type rows struct {
	store.Reader
	slots [][]signalbox.Slot
	tasks [][]signalbox.Task
	err   error
	look  int
}

func (r *rows) Slots(context.Context) ([]signalbox.Slot, error) {
	return r.slots[min(r.look, len(r.slots)-1)], r.err
}

func (r *rows) InFlight(context.Context) ([]signalbox.Task, error) {
	defer func() { r.look++ }()
	return r.tasks[min(r.look, len(r.tasks)-1)], r.err
}

func TestStore(t *testing.T) {
	task := func(id string, fence int64) signalbox.Task {
		return signalbox.Task{ID: id, State: signalbox.Working, Agent: "coder", Fence: fence}
	}
	slot := func(n int, id string, fence int64) signalbox.Slot {
		return signalbox.Slot{Agent: "coder", Slot: n, TaskID: id, Fence: fence}
	}
	const well = "ok store: its rows agree: slots, and the one place of each task"
	agree := &rows{slots: [][]signalbox.Slot{{slot(0, "a", 1), {Agent: "coder", Slot: 1, TaskID: "gone", Fence: 9, Withheld: true}}}, tasks: [][]signalbox.Task{{task("a", 1)}}}
	want(t, doctor.Store(agree)(t.Context(), false), well)
	moving := &rows{ // it ended between the two reads
		slots: [][]signalbox.Slot{{slot(0, "a", 1)}, {}}, tasks: [][]signalbox.Task{{}},
	}
	want(t, doctor.Store(moving)(t.Context(), false), well)
	wrong := &rows{
		slots: [][]signalbox.Slot{{slot(0, "a", 1), slot(1, "a", 1), slot(1, "b", 3), slot(2, "gone", 4)}},
		tasks: [][]signalbox.Task{{task("a", 1), task("b", 2), {ID: "c", State: signalbox.Completed, Agent: "coder", Fence: 7}, {ID: "d", State: signalbox.Dispatching}, task("b", 2)}},
	}
	got := doctor.Store(wrong)(t.Context(), false)
	text := strings.Join(said(got), "\n")
	for _, part := range []string{
		"task b stands twice among those that run", "task c stands among those that run and is completed", "task d is dispatching without an agent or a fence",
		"task a holds more than one slot", "slot 1 of agent coder has fence 3, its task b has agent coder and fence 2",
		"slot 2 of agent coder is held by task gone, which does not run", "task d is dispatching and holds no slot", "slot 1 of agent coder is held twice",
	} {
		if !strings.Contains(text, "fail store: "+part) {
			t.Errorf("want %q in\n%s", part, text)
		}
	}
	want(t, doctor.Store(&rows{slots: [][]signalbox.Slot{{}}, tasks: [][]signalbox.Task{{}}, err: errors.New("input/output error")})(t.Context(), false), "fail store: its rows cannot be read")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, doctor.Store(wrong)(ctx, false), "fail store: its rows could not be read in time")
}

func TestManyFindingsAreCut(t *testing.T) {
	r := &rows{slots: [][]signalbox.Slot{{}}, tasks: [][]signalbox.Task{nil}}
	for i := range 100 {
		r.tasks[0] = append(r.tasks[0], signalbox.Task{ID: strings.Repeat("x", i+1), State: signalbox.Working, Agent: "coder", Fence: 1})
	}
	got := doctor.Store(r)(t.Context(), false)
	if len(got) != 11 || got[10].Text != "90 more findings in the rows" {
		t.Errorf("%d findings, the last %+v", len(got), got[len(got)-1])
	}
}

func TestData(t *testing.T) {
	const variable = "SIGNALBOX_TEST_DOCTOR_KEY"
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "secret.key")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	look := doctor.Data(dir, "secret.key", variable)
	got := look(t.Context(), false)
	want(t, []api.Check{got[0], got[2]}, "ok data: the data folder can be written, and is closed to others", "ok data: secrets are encrypted with secret.key")
	if text := strings.Join(said(got), "\n"); !strings.Contains(text, "left on the disk of the data folder") || strings.Contains(text, dir) {
		t.Error(text)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("it leaves files behind: %v %v", left, err)
	}
	for _, path := range []string{dir, file} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got = look(t.Context(), true)
	want(t, []api.Check{got[0], got[2]}, "warn data: the data folder "+dir+" can be read by others (mode 0755)", "fail data: the key that encrypts secrets can be read by others (mode 0755)")
	t.Setenv(variable, "x")
	want(t, look(t.Context(), true)[2:], "ok data: secrets are encrypted with the key in "+variable)
	t.Setenv(variable, "")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	got = look(t.Context(), false)
	want(t, []api.Check{got[0], got[2]}, "fail data: the data folder cannot be written: no such file or directory", "fail data: the key that encrypts secrets cannot be read: no such file or directory")
}
