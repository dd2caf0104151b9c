//go:build linux

package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTrees(t *testing.T) {
	const (
		systemd   = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		container = "600 590 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n"
		older     = `31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
36 31 0:33 /elsewhere /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/uni\040fied rw - cgroup2 cgroup2 rw
`
	)
	for _, c := range []struct {
		mounts, groups string
		want           tree
	}{
		{systemd, "0::/user.slice/app.scope\n", tree{"/sys/fs/cgroup/user.slice/app.scope", "/user.slice/app.scope", false}},
		{container, "0::/\n", tree{"/sys/fs/cgroup", "/", false}},
		{older, "9:name=systemd:/x\n8:pids:/docker/abc\n4:memory:/docker/abc/in\n2:cpu,cpuacct:/docker/abc\n0::/u\n", tree{"/sys/fs/cgroup/uni fied/u", "/u", true}},
		{older, "9:name=systemd:/x\n2:cpu,cpuacct:/docker/abc\n", tree{older: true}},
		{systemd, "9:devices:/x\n0::/\n", tree{"/sys/fs/cgroup", "/", false}},
		{"", "", tree{}},
		{"garbage\n", "1:2\n", tree{}},
	} {
		if got := parseTree(c.mounts, c.groups); got != c.want {
			t.Errorf("%q in %q:\n%+v, want\n%+v", c.groups, c.mounts, got, c.want)
		}
	}
}

// fake is a group of version 2 that consists of ordinary files.
func fake(t *testing.T, files map[string]string) *group {
	t.Helper()
	dir := t.TempDir()
	for n, text := range files {
		if err := os.WriteFile(filepath.Join(dir, n), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := groupAt(dir)
	t.Cleanup(g.close)
	return g
}

func TestLimitsOfVersion2(t *testing.T) {
	g := fake(t, map[string]string{"memory.max": "", "memory.swap.max": "", "pids.max": "", "cpu.max": ""})
	b := &Box{h: &Host{by: map[string]string{memory: byV2, processes: byV2, cpus: byV2}}, members: g}
	for _, c := range []struct {
		l    Limits
		kind string
		want map[string]string
	}{
		{Limits{Memory: 64 << 20, Processes: 50, CPUs: 0.5}, "", map[string]string{
			"memory.max": "67108864", "memory.swap.max": "0", "pids.max": "50", "cpu.max": "50000 100000"}},
		{Limits{Processes: 5, CPUs: 0.001}, bubblewrap, map[string]string{
			"memory.max": "max", "memory.swap.max": "max", "pids.max": "7", "cpu.max": "1000 100000"}},
		{Limits{}, "", map[string]string{
			"memory.max": "max", "memory.swap.max": "max", "pids.max": "max", "cpu.max": "max 100000"}},
	} {
		for n := range c.want { // ordinary files keep the end of a longer old value
			if err := os.Truncate(filepath.Join(g.dir, n), 0); err != nil {
				t.Fatal(err)
			}
		}
		g.wrote = map[string]string{}
		if err := b.setLimits(c.l, c.kind); err != nil {
			t.Fatal(err)
		}
		for n, want := range c.want {
			if got, err := g.read(n); got != want {
				t.Errorf("%+v: %s is %q, %v; want %q", c.l, n, got, err, want)
			}
		}
	}
}

func TestStruckOfVersion2(t *testing.T) {
	g := fake(t, map[string]string{
		"memory.events": "low 0\nmax 10\noom 1\noom_kill 3\n", "pids.events": "max 4\n", "cpu.stat": "usage_usec 1000000\nuser_usec 5\n",
	})
	b := &Box{h: &Host{by: map[string]string{memory: byV2, processes: byV2, cpuTime: byV2}}, members: g}
	b.limits = Limits{Memory: 1, Processes: 1, CPUTime: time.Second}
	b.before = b.count()
	if want := (counters{oom: 3, forks: 4, cpu: time.Second}); b.before != want {
		t.Errorf("%+v, want %+v", b.before, want)
	}
	if b.look() || len(b.Struck()) > 0 {
		t.Errorf("struck %v by events of the previous run", b.struck)
	}
	for n, text := range map[string]string{"memory.events": "oom_kill 4\n", "pids.events": "max 5\n", "cpu.stat": "usage_usec 2000000\n"} {
		if err := os.WriteFile(filepath.Join(g.dir, n), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !b.look() || !slices.Equal(b.Struck(), []string{memory, processes, cpuTime}) {
		t.Errorf("struck %v", b.Struck())
	}
}

// If the system can neither create a child in a group nor stop it at its
// first instruction, the child is confined just after.
func TestWithoutClone3AndPtrace(t *testing.T) {
	for _, trace := range []bool{true, false} {
		h, err := Open(Options{Name: "signalbox-test-late"})
		if err != nil {
			t.Fatal(err)
		}
		if h.members == "" {
			defer h.Close()
			t.Skip("no control groups: ", h.Report().Detail)
		}
		h.byFD, h.trace = false, trace
		b, err := h.Take(Limits{FileSize: 1 << 20, CPUs: 1}, Sandbox{})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", "-c", "read go; ulimit -f; cat /proc/self/cgroup")
		var out strings.Builder
		cmd.Stdout = &out
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Start(cmd); err != nil {
			t.Fatal(err)
		}
		if pids, ok := b.Alive(); !ok || !slices.Equal(pids, []int{cmd.Process.Pid}) {
			t.Errorf("%v, %v live, not %d", pids, ok, cmd.Process.Pid)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		if s := out.String(); !strings.HasPrefix(s, "2048\n") || !strings.Contains(s, b.place()) {
			t.Errorf("it says %s", s)
		}
		if err := b.Free(); err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []Options{{}, {Name: "a/b"}, {Name: ".."}, {Name: "x", Method: "jail"}} {
		if _, err := Open(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// A group that cannot be created is an error of this run only: its folder may
// be removed while the director lives.
func TestBoxWhoseGroupCannotBeMade(t *testing.T) {
	here := t.TempDir()
	h := &Host{members: filepath.Join(here, "gone", "too")}
	if b, err := h.newBox("box-1"); err == nil {
		t.Errorf("%+v", b)
	}
	if left, err := os.ReadDir(here); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestBoundsOfFolders(t *testing.T) {
	args := bwrapArgs(Sandbox{Read: []string{"/data", "/data/in/deep"}, Write: []string{"/data/in", "/tmp/place/"}, Network: true}, nil, "/data")
	line := strings.Join(args, " ")
	last := -1
	for _, want := range []string{"--ro-bind /data /data", "--bind /data/in /data/in", "--ro-bind /data/in/deep /data/in/deep", "--tmpfs /tmp", "--bind /tmp/place /tmp/place", "--remount-ro /", "--chdir /data --"} {
		i := strings.Index(line, want)
		if i <= last {
			t.Errorf("%q is not in its place in %s", want, line)
		}
		last = i
	}
	if strings.Contains(line, "--unshare-net") {
		t.Error("the network is missing")
	}
}

// A machine is offered only a remedy that works for it.
func TestCureFitsTheMachine(t *testing.T) {
	v1, v2, both := tree{older: true}, tree{own: "/sys/fs/cgroup"}, tree{own: "/sys/fs/cgroup/unified", older: true}
	for _, c := range []struct {
		o        Options
		tree     tree
		has, not string
	}{
		{Options{}, v2, "Delegate=yes", "version 1"},
		{Options{}, both, "unified_cgroup_hierarchy=1", "Delegate"}, // its version 2 has no controllers
		{Options{Method: byV2}, both, "Delegate=yes", "version 1"},
		{Options{}, v1, "unified_cgroup_hierarchy=1", "Delegate"},
		{Options{}, tree{}, "/sys/fs/cgroup", "Delegate"},
		{Options{Method: byRlimit}, v2, "commands.limits", "Delegate"},
	} {
		if got := cureOf(c.o, c.tree); !strings.Contains(got, c.has) || strings.Contains(got, c.not) {
			t.Errorf("%+v, %v: %q", c.o, c.tree, got)
		}
	}
}

// Without control groups, the report does not claim that all processes of a
// run are known.
func TestReportSaysWhetherRunsAreTracked(t *testing.T) {
	h, err := Open(Options{Name: "signalbox-test-tracked", Method: byRlimit})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if r := h.Report(); r.Tracked || r.Cure == "" {
		t.Errorf("%+v", r)
	}
}
