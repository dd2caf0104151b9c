package doctor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

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
	leftovers = "where the director is killed, the next one does not find what a program left that shed its session, parents, environment and outputs"
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
		"fail sandbox: these tools are refused, because they require a sandbox that is not available here: strict",
		"warn sandbox: these tools run without the sandbox that they ask for: bound")
	poor.NoNewPrivs, poor.Cure = true, "ask the administrator"
	got := doctor.Limits(poor, tools)(t.Context(), false)
	want(t, got[:1], "warn limits: programs are bounded by rlimit: memory by rlimit (of each process); none can gain privileges; "+leftovers+"; "+eachAlone)
	for _, c := range got[:2] { // only the cure of the machine is named
		if c.Cure != "to have all of it kept, ask the administrator" {
			t.Errorf("%+v", c)
		}
	}
	poor.Tracked = true
	want(t, doctor.Limits(poor, tools)(t.Context(), false)[:1], "warn limits: programs are bounded by rlimit: memory by rlimit (of each process); none can gain privileges; "+eachAlone)
	want(t, doctor.Limits(poor, tools[:1])(t.Context(), false)[1:],
		"ok sandbox: there is none, and no tool asks for one: bubblewrap, landlock")
	poor.Sandbox[0].OK = true // but strict requires the other kind
	want(t, doctor.Limits(poor, tools[1:])(t.Context(), false)[2:],
		"ok sandbox: there is bubblewrap",
		"fail sandbox: these tools are refused, because they require a sandbox that is not available here: strict")
	poor.Sandbox[1] = confine.SandboxReport{Kind: "landlock", OK: true}
	want(t, doctor.Limits(poor, tools[1:])(t.Context(), false)[2:], "ok sandbox: there is bubblewrap and landlock")
	poor.Sandbox[1] = confine.SandboxReport{Kind: "landlock", OK: true, Note: "version 5", Weak: "it leaves signals"}
	want(t, doctor.Limits(poor, tools[1:])(t.Context(), true)[2:], "ok sandbox: there is bubblewrap (not on PATH) and landlock (version 5); it leaves signals",
		"warn sandbox: these tools run in a weaker sandbox: strict. it leaves signals")
	poor.Sandbox[1].TooWeak = true
	want(t, doctor.Limits(poor, tools[1:])(t.Context(), false)[2:], "ok sandbox: there is bubblewrap and landlock",
		"fail sandbox: these tools are refused, because they require a sandbox that is not available here: strict")
}

// rows is a store whose reads a test sets, one look after another.
type rows struct {
	store.Reader
	shots   []store.Snapshot
	agents  []signalbox.Agent
	ended   []signalbox.Task
	journal []signalbox.Entry
	audit   []signalbox.Audit
	current []signalbox.Session
	tokens  []signalbox.Token
	parked  []signalbox.Task
	err     error
	look    int
}

func (r *rows) Snapshot(context.Context, int) (store.Snapshot, error) {
	defer func() { r.look++ }()
	shot := r.shots[min(r.look, len(r.shots)-1)]
	if shot.Counts.InFlight == nil { // the counts of its rows
		shot.Counts.InFlight = map[signalbox.State]int{}
		for _, t := range shot.InFlight {
			shot.Counts.InFlight[t.State]++
		}
		shot.Counts.Queues = map[string]int{}
		for queue, heads := range shot.Heads {
			shot.Counts.Queues[queue] = len(heads)
			shot.Counts.Pending += len(heads)
		}
		shot.Counts.Limits = map[string]int{"work": shot.Counts.Pending}
	}
	return shot, r.err
}

func (r *rows) Parked(context.Context, signalbox.GateKind, string) ([]signalbox.Task, error) {
	return r.parked, r.err
}

func (r *rows) Agents(context.Context) ([]signalbox.Agent, error) { return r.agents, r.err }
func (r *rows) History(context.Context, store.HistoryQuery) (store.HistoryPage, error) {
	return store.HistoryPage{Tasks: r.ended}, r.err
}

func (r *rows) JournalRange(context.Context) (oldest, newest int64, err error) {
	if len(r.journal) == 0 {
		return 0, 0, r.err
	}
	return r.journal[0].Seq, r.journal[len(r.journal)-1].Seq, r.err
}

func (r *rows) Journal(context.Context, int64, int) ([]signalbox.Entry, error) {
	return r.journal, r.err
}

func (r *rows) AuditLog(context.Context, store.AuditQuery) ([]signalbox.Audit, error) {
	return r.audit, r.err
}

func (r *rows) Tokens(context.Context) ([]signalbox.Token, error) { return r.tokens, r.err }
func (r *rows) Users(context.Context) ([]signalbox.User, error)   { return nil, r.err }

func (r *rows) Sessions(context.Context, store.SessionQuery) (store.SessionPage, error) {
	return store.SessionPage{Sessions: r.current}, r.err
}

const well = "ok store: its rows agree: slots, counts, the order and the one place of each task, ends, journal, audit log"

func TestStore(t *testing.T) {
	task := func(id string, fence int64) signalbox.Task {
		return signalbox.Task{ID: id, State: signalbox.Working, Agent: "coder", Fence: fence}
	}
	slot := func(n int, id string, fence int64) signalbox.Slot {
		return signalbox.Slot{Agent: "coder", Slot: n, TaskID: id, Fence: fence}
	}
	agree := &rows{shots: []store.Snapshot{{
		Slots: []signalbox.Slot{slot(0, "a", 1), {Agent: "coder", Slot: 1, TaskID: "gone", Fence: 9, Withheld: true}}, InFlight: []signalbox.Task{task("a", 1)},
	}}}
	want(t, doctor.Store(agree, nil)(t.Context(), false), well)
	moving := &rows{ // it was claimed between two looks, and partly visible in one of them
		shots: []store.Snapshot{{Slots: []signalbox.Slot{slot(0, "a", 1)}}, {}},
	}
	want(t, doctor.Store(moving, nil)(t.Context(), false), well)
	wrong := &rows{shots: []store.Snapshot{{
		Slots:    []signalbox.Slot{slot(0, "a", 1), slot(1, "a", 1), slot(1, "b", 3), slot(2, "gone", 4)},
		InFlight: []signalbox.Task{task("a", 1), task("b", 2), {ID: "c", State: signalbox.Completed, Agent: "coder", Fence: 7}, {ID: "d", State: signalbox.Dispatching}, task("b", 2)},
	}}}
	got := doctor.Store(wrong, nil)(t.Context(), false)
	text := strings.Join(said(got), "\n")
	for _, part := range []string{
		"task b stands twice among those that run", "task c stands among those that run and is completed", "task d is dispatching without an agent or a fence",
		"task a holds more than one slot", "slot 1 of agent coder has fence 3, its task b has agent coder and fence 2", "fence 1 holds two slots",
		"slot 2 of agent coder is held by task gone, which does not run", "task d is dispatching and holds no slot", "slot 1 of agent coder is held twice",
	} {
		if !strings.Contains(text, "fail store: "+part) {
			t.Errorf("want %q in\n%s", part, text)
		}
	}
	want(t, doctor.Store(&rows{shots: []store.Snapshot{{}}, err: errors.New("input/output error")}, nil)(t.Context(), false), "fail store: its rows cannot be read")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, doctor.Store(wrong, nil)(ctx, false), "fail store: its rows could not be read in time")
}

// Each breach of an invariant that a store can show is found, and named.
func TestEachBreachIsFound(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	waits := func(id string, place int64) signalbox.Task {
		return signalbox.Task{ID: id, State: signalbox.Pending, Queue: "work", Limit: "work", Place: place, EnqueuedAt: now, Ready: true}
	}
	runs := signalbox.Task{ID: "r", State: signalbox.Working, Agent: "coder", Fence: 1, Claims: 1}
	holds := signalbox.Slot{Agent: "coder", TaskID: "r", Fence: 1, Expires: now.Add(time.Minute)}
	line := func(tasks ...signalbox.Task) map[string][]signalbox.Task {
		return map[string][]signalbox.Task{"work": tasks}
	}
	change := func(t signalbox.Task, f func(*signalbox.Task)) signalbox.Task { f(&t); return t }
	park := func(t signalbox.Task) signalbox.Task {
		t.State, t.Parking = signalbox.Parked, &signalbox.Parking{Gate: signalbox.Gate{Kind: signalbox.GateAccount, Name: "x"}}
		return t
	}
	for want, r := range map[string]rows{
		"": {parked: []signalbox.Task{park(change(waits("a", 1), func(t *signalbox.Task) { t.Ready = false }))}, shots: []store.Snapshot{{Heads: line(park(change(waits("a", 1), func(t *signalbox.Task) { t.Ready = false })), waits("b", 2)), InFlight: []signalbox.Task{runs}, Slots: []signalbox.Slot{holds}}}, agents: []signalbox.Agent{{Name: "coder", Slots: 1}}},
		"task a stands in queue work before its turn":          {shots: []store.Snapshot{{Heads: line(waits("b", 2), waits("a", 1))}}},
		"task a waits in queue agent:x and in queue work":      {shots: []store.Snapshot{{Heads: map[string][]signalbox.Task{"work": {waits("a", 1)}, "agent:x": {change(waits("a", 1), func(t *signalbox.Task) { t.Queue = "agent:x" })}}}}},
		"task a waits in queue work and is completed":          {shots: []store.Snapshot{{Heads: line(change(waits("a", 1), func(t *signalbox.Task) { t.State = signalbox.Completed }))}}},
		"task a waits in queue work, its row says pool:x":      {shots: []store.Snapshot{{Heads: line(change(waits("a", 1), func(t *signalbox.Task) { t.Queue = "pool:x" }))}}},
		"task a waits for nothing and nobody would":            {shots: []store.Snapshot{{Heads: line(change(waits("a", 1), func(t *signalbox.Task) { t.Ready = false }))}}},
		"task a is parked, and could be claimed":               {shots: []store.Snapshot{{Heads: line(park(waits("a", 1)))}}, parked: []signalbox.Task{park(waits("a", 1))}},
		"task a is parked in queue work, and no gate":          {shots: []store.Snapshot{{Heads: line(change(park(waits("a", 1)), func(t *signalbox.Task) { t.Ready = false }))}}},
		"task p is parked until 2026-01-02T03:02:05Z":          {shots: []store.Snapshot{{}}, parked: []signalbox.Task{{ID: "p", State: signalbox.Parked, Parking: &signalbox.Parking{Gate: signalbox.Gate{Kind: signalbox.GateTime, Until: now.Add(-2 * time.Minute)}}}}},
		"task r waits in queue work and runs":                  {shots: []store.Snapshot{{Heads: line(waits("r", 1)), InFlight: []signalbox.Task{runs}, Slots: []signalbox.Slot{holds}}}},
		"task a was claimed 11 times, 11 of them without":      {shots: []store.Snapshot{{Heads: line(change(waits("a", 1), func(t *signalbox.Task) { t.Claims, t.NoAnswers = 11, 11 }))}}},
		"2 tasks wait; by queue they are 1, by limit 2":        {shots: []store.Snapshot{{Heads: line(waits("a", 1)), Counts: store.Counts{Pending: 2, Queues: map[string]int{"work": 1}, Limits: map[string]int{"work": 2}, InFlight: map[signalbox.State]int{}}}}},
		"3 tasks wait in queue work, and it lists 1":           {shots: []store.Snapshot{{Heads: line(waits("a", 1)), Counts: store.Counts{Pending: 3, Queues: map[string]int{"work": 3}, Limits: map[string]int{"work": 3}, InFlight: map[signalbox.State]int{}}}}},
		"0 tasks are working, and 1 are counted":               {shots: []store.Snapshot{{Counts: store.Counts{InFlight: map[signalbox.State]int{signalbox.Working: 1}}}}},
		"agent coder runs 1 tasks in 0 slots":                  {shots: []store.Snapshot{{InFlight: []signalbox.Task{runs}, Slots: []signalbox.Slot{holds}}}, agents: []signalbox.Agent{{Name: "coder"}}},
		"is over since 2026-01-02T03:02:05Z and nobody":        {shots: []store.Snapshot{{InFlight: []signalbox.Task{runs}, Slots: []signalbox.Slot{{Agent: "coder", TaskID: "r", Fence: 1, Expires: now.Add(-2 * time.Minute)}}}}},
		"tasks r and s of session x run side by side":          {shots: []store.Snapshot{{InFlight: []signalbox.Task{change(runs, func(t *signalbox.Task) { t.SessionID = "x" }), {ID: "s", State: signalbox.Working, Agent: "coder", Fence: 2, SessionID: "x"}}, Slots: []signalbox.Slot{holds, {Agent: "coder", Slot: 1, TaskID: "s", Fence: 2, Expires: now}}}}},
		"task a of session x could be claimed while":           {shots: []store.Snapshot{{Heads: line(change(waits("a", 1), func(t *signalbox.Task) { t.SessionID = "x" })), InFlight: []signalbox.Task{change(runs, func(t *signalbox.Task) { t.SessionID = "x" })}, Slots: []signalbox.Slot{holds}}}},
		"task e stands in the history and is working":          {shots: []store.Snapshot{{}}, ended: []signalbox.Task{{ID: "e", State: signalbox.Working}}},
		"task e is failed without a reason, a message":         {shots: []store.Snapshot{{}}, ended: []signalbox.Task{{ID: "e", State: signalbox.Failed, Reason: "lost", EndedAt: now}}},
		"task r has ended and runs":                            {shots: []store.Snapshot{{InFlight: []signalbox.Task{runs}, Slots: []signalbox.Slot{holds}}}, ended: []signalbox.Task{{ID: "r", State: signalbox.Failed, Reason: "lost", Message: "m", EndedAt: now}}},
		"journal entry 4 follows 2":                            {shots: []store.Snapshot{{}}, journal: []signalbox.Entry{{Seq: 1}, {Seq: 2}, {Seq: 4}}},
		"the audit log: row 2 does not follow row 1":           {shots: []store.Snapshot{{}}, audit: []signalbox.Audit{{Seq: 2, Prev: "x"}, {Seq: 1, Hash: "y"}}},
		"the audit log is empty, and 1 tokens and users are":   {shots: []store.Snapshot{{}}, tokens: []signalbox.Token{{ID: "t"}, {ID: "u", CreatedBy: signalbox.TokenByUp}}},
		"sessions one and two of agent coder are both current": {shots: []store.Snapshot{{}}, current: []signalbox.Session{{ID: "one", Agent: "coder"}, {ID: "two", Agent: "coder"}}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel() // each looks several times
			got := said(doctor.Store(&r, func() time.Time { return now })(t.Context(), true))
			switch {
			case want == "" && !reflect.DeepEqual(got, []string{well}):
				t.Errorf("nothing is wrong, and it says\n  %s", strings.Join(got, "\n  "))
			case want != "" && !strings.Contains(strings.Join(got, "\n"), want):
				t.Errorf("want %q in\n  %s", want, strings.Join(got, "\n  "))
			}
		})
	}
}

func TestManyFindingsAreCut(t *testing.T) {
	r := &rows{shots: []store.Snapshot{{}}}
	for i := range 100 {
		r.shots[0].InFlight = append(r.shots[0].InFlight, signalbox.Task{ID: strings.Repeat("x", i+1), State: signalbox.Working, Agent: "coder", Fence: 1})
	}
	got := doctor.Store(r, nil)(t.Context(), false)
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
	look := doctor.Data(doctor.Folder{Dir: dir, KeyFile: "secret.key", KeyEnv: variable})
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
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	want(t, look(t.Context(), true)[:1], "fail data: the data folder "+dir+" can be written by others (mode 0777)")
	t.Setenv(variable, "x")
	want(t, look(t.Context(), true)[2:], "ok data: secrets are encrypted with the key in "+variable)
	t.Setenv(variable, "")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	got = look(t.Context(), false)
	want(t, []api.Check{got[0], got[2]}, "fail data: the data folder cannot be written: no such file or directory", "fail data: the key that encrypts secrets cannot be read: no such file or directory")
}
