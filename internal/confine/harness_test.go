//go:build linux

package confine_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// asDirector makes the test binary a director that will be killed.
const asDirector = "confine-test-director"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asDirector {
		direct(os.Args[2], os.Args[3])
		return
	}
	if len(os.Args) == 4 && os.Args[1] == asAttacker {
		attack(os.Args[2], os.Args[3])
		syscall.Exit(0) // the race detector would sleep first
	}
	goleak.VerifyTestMain(m)
}

// name returns a unique name.
func name(t testing.TB) string {
	return fmt.Sprintf("signalbox-test-%d-%s", os.Getpid(), strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
}

// methods are the methods under test.
var methods = []string{"groups", "rlimit"}

// open opens a host, or skips the test if this machine does not support the
// method.
func open(t testing.TB, method string, change ...func(confine.Options) confine.Options) *confine.Host {
	t.Helper()
	o := confine.Options{Name: name(t), Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		o = c(o)
	}
	if method == "rlimit" {
		o.Method = "rlimit"
	}
	h, err := confine.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if method == "groups" && !h.Report().Tracked {
		_ = h.Close()
		t.Skip("no control groups: ", h.Report().Detail)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if left := groups(o.Name); len(left) > 0 {
			t.Errorf("groups are left: %v", left)
		}
	})
	return h
}

// needs skips a test of limits that this machine's control groups do not enforce.
func needs(t testing.TB, h *confine.Host, limits ...string) {
	t.Helper()
	for _, l := range h.Report().Limits {
		if slices.Contains(limits, l.Name) && l.By != "cgroup2" {
			t.Skip("no control group keeps "+l.Name+": ", h.Report().Detail)
		}
	}
}

// groups finds the control groups of a host.
func groups(name string) []string {
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == name {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// output is what a run prints; said waits for a line.
type output struct {
	mu    sync.Mutex
	all   bytes.Buffer
	pw    *io.PipeWriter
	lines chan string
}

func newOutput() *output {
	o := &output{lines: make(chan string, 1000)}
	var pr *io.PipeReader
	pr, o.pw = io.Pipe()
	go func() {
		defer close(o.lines)
		for sc := bufio.NewScanner(pr); sc.Scan(); {
			o.lines <- sc.Text()
		}
	}()
	return o
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	o.all.Write(b)
	o.mu.Unlock()
	return o.pw.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// said waits for a line with this prefix, and returns the rest of the line.
func (o *output) said(t *testing.T, prefix string) string {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case line, ok := <-o.lines:
			if !ok {
				t.Fatalf("the run ended before it said %q; it said %s", prefix, o)
			}
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				return strings.TrimSpace(rest)
			}
		case <-timeout:
			t.Fatalf("the run does not say %q; it said %s", prefix, o)
		}
	}
}

// run is a program in a box.
type run struct {
	*proc.Process
	t   *testing.T
	box *confine.Box
	out *output
}

// marks gives each run a mark of its own.
var marks atomic.Int64

// start runs a shell script in a box.
func start(t *testing.T, h *confine.Host, l confine.Limits, s confine.Sandbox, script string) *run {
	t.Helper()
	box, err := h.Take(l, s)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, box: box, out: newOutput()}
	r.Process, err = proc.Start(proc.Spec{
		Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}, Dir: "/usr",
		Stdout: r.out, Stderr: r.out, Mark: fmt.Sprintf("%s-%d", name(t), marks.Add(1)), Box: box,
	})
	if err != nil {
		_ = box.Free()
		t.Fatal(err)
	}
	t.Cleanup(r.done)
	return r
}

// done ends the run if necessary, and frees its box.
func (r *run) done() {
	if _, err := r.Kill(); err != nil {
		r.t.Error(err)
	}
	r.out.pw.Close()
	if err := r.box.Free(); err != nil {
		r.t.Error(err)
	}
}

// finish waits for the end of the program, kills the processes that it left,
// and returns the limits that it reached.
func (r *run) finish() (proc.Exit, []string) {
	r.t.Helper()
	select {
	case <-r.Exited():
	case <-time.After(time.Minute):
		r.t.Error("the run does not end")
	}
	exit, err := r.Kill()
	if err != nil {
		r.t.Error(err)
	}
	return exit, r.box.Struck()
}

// dead fails the test if a process is alive.
func dead(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if syscall.Kill(n, 0) == nil {
		if s := state(n); s != "Z" && s != "" {
			t.Errorf("process %d lives: %s", n, s)
		}
	}
}

func state(pid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(b), ") ")
	s, _, _ := strings.Cut(rest, " ")
	return s
}
