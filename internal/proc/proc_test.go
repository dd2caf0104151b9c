//go:build unix

package proc_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

const flag = "proc-test-"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], flag) {
		play(strings.TrimPrefix(os.Args[1], flag))
		return
	}
	goleak.VerifyTestMain(m)
}

// play plays one of the roles of the program under test.
func play(role string) {
	say := func() { fmt.Printf("ready %d\n", os.Getpid()) }
	sleep := func() {
		for {
			time.Sleep(time.Hour)
		}
	}
	switch role {
	case "exit3":
		os.Exit(3)
	case "binds":
		p, err := proc.Start(proc.Spec{Argv: []string{os.Args[0], flag + "sleep"}, Env: os.Environ(), Mark: "binds", Bound: true})
		if err != nil {
			os.Exit(1)
		}
		fmt.Println(p.Ident().PID)
		sleep()
	case "sleep":
		sleep()
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "flood":
		b := bytes.Repeat([]byte("x"), 1<<16)
		for range 512 {
			_, _ = os.Stdout.Write(b)
		}
	case "owns", "shares": // what a child program has of its files
		if role == "owns" {
			proc.OwnFiles()
		}
		cmd := exec.Command("/bin/sh", "-c", "if [ -e /dev/fd/3 ]; then echo true; else echo false; fi")
		cmd.Stdout = os.Stdout
		if err := cmd.Run(); err != nil {
			os.Exit(1)
		}
	case "hang":
		say()
		sleep()
	case "stubborn", "stubborn-noenv":
		signal.Ignore(syscall.SIGTERM)
		say()
		sleep()
	case "stopped":
		say()
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "holds-stdout": // exits; its child keeps the pipe open
		spawn("stubborn", nil, nil)
	case "setsid": // lives on beside a child in a session of its own
		spawn("stubborn", &syscall.SysProcAttr{Setsid: true}, nil)
		sleep()
	case "double-fork": // exits; the child exits; the grandchild is in a session of its own
		spawn("double-fork-2", nil, nil)
	case "double-fork-2":
		spawn("stubborn", &syscall.SysProcAttr{Setsid: true}, nil)
	case "gone": // exits; its child exits; the grandchild has neither mark nor session nor parents
		spawn("gone-2", nil, nil)
	case "gone-2":
		spawn("stubborn-noenv", &syscall.SysProcAttr{Setsid: true}, []string{})
	case "sheds": // exits; its child exits; the grandchild has nothing of it, and an output only to report its PID
		spawn("sheds-2", nil, nil)
	case "sheds-2", "sheds-stamp-2":
		r, w, err := os.Pipe()
		if err != nil {
			panic(err)
		}
		cmd := exec.Command(os.Args[0], flag+strings.Replace(role, "2", "3", 1))
		cmd.SysProcAttr, cmd.Env, cmd.ExtraFiles = &syscall.SysProcAttr{Setsid: true}, []string{}, []*os.File{w}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		w.Close()
		_, _ = io.Copy(os.Stdout, r)
	case "sheds-stamp": // the same, and it also raises every limit that it may
		spawn("sheds-stamp-2", nil, nil)
	case "sheds-3", "sheds-stamp-3":
		signal.Ignore(syscall.SIGTERM)
		if role == "sheds-stamp-3" {
			takeOffStamp()
		}
		out := os.NewFile(3, "out")
		fmt.Fprintf(out, "ready %d\n", os.Getpid())
		out.Close()
		sleep()
	case "sheds-and-stays":
		spawn("sheds-2", nil, nil)
		sleep()
	case "headless": // its first thread ends; the others continue
		go func() {
			signal.Ignore(syscall.SIGTERM)
			say()
			sleep()
		}()
		endThread()
	case "no-env": // a grandchild without the mark, in a session of its own
		spawn("stubborn-noenv", &syscall.SysProcAttr{Setsid: true}, []string{})
		sleep()
	}
}

func spawn(role string, attr *syscall.SysProcAttr, env []string) {
	cmd := exec.Command(os.Args[0], flag+role)
	cmd.Stdout, cmd.SysProcAttr, cmd.Env = os.Stdout, attr, env
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// output is a program's standard output; lines has its lines.
type output struct {
	pr    *io.PipeReader
	pw    *io.PipeWriter
	lines *bufio.Scanner
}

func newOutput() *output {
	o := &output{}
	o.pr, o.pw = io.Pipe()
	o.lines = bufio.NewScanner(o.pr)
	return o
}

func (o *output) Write(b []byte) (int, error) { return o.pw.Write(b) }

// ready returns the PID that the next program reports when it is ready.
func (o *output) ready(t *testing.T) int {
	t.Helper()
	for o.lines.Scan() {
		if s, ok := strings.CutPrefix(o.lines.Text(), "ready "); ok {
			pid, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("the program ended before it was ready")
	return 0
}

func start(t *testing.T, role string, out io.Writer, grace time.Duration) *proc.Process {
	t.Helper()
	return startMarked(t, t.Name(), role, out, grace)
}

func startMarked(t *testing.T, mark, role string, out io.Writer, grace time.Duration) *proc.Process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := proc.Start(proc.Spec{
		Argv: []string{exe, flag + role}, Dir: t.TempDir(), Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0"), Stdin: "from stdin",
		Stdout: out, Mark: mark, Grace: grace,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.End() })
	return p
}

// dead fails the test unless the PID is unused or a zombie's.
func dead(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); err == nil && proc.Identify(pid).Start != 0 {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if gone := runtime.GOOS == "linux" && err != nil; !gone && !strings.Contains(string(state), ") Z ") {
			t.Errorf("process %d lives: %s", pid, state)
		}
	}
}

func TestExitStatusAndStdin(t *testing.T) {
	p := start(t, "exit3", nil, time.Second)
	if e, err := p.End(); err != nil || (e.Code != 3 && e.Signal == "") {
		t.Errorf("got %v, %v", e, err)
	}
	var out bytes.Buffer
	p = start(t, "cat", &out, time.Second)
	<-p.Exited()
	if e, err := p.End(); err != nil || e.Code != 0 || out.String() != "from stdin" {
		t.Errorf("got %v, %v, %q", e, err, out.String())
	}
}

func TestAllOutputIsReadBeforeEndReturns(t *testing.T) {
	var out bytes.Buffer
	p := start(t, "flood", &out, time.Second)
	<-p.Exited()
	if _, err := p.End(); err != nil || out.Len() != 512<<16 {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

func TestStartErrorLeavesNothing(t *testing.T) {
	for _, spec := range []proc.Spec{
		{},
		{Argv: []string{"/nonexistent/program"}},
		{Argv: []string{"/bin/sh", "-c", "true"}, Dir: "/nonexistent"},
	} {
		if p, err := proc.Start(spec); err == nil {
			t.Errorf("%v started: %v", spec.Argv, p.Ident())
		}
	}
}

// A process that survives SIGTERM, leaves the group, loses its parent or
// holds the pipe is gone when End returns.
func TestEndLeavesNothingAlive(t *testing.T) {
	for _, role := range []string{"hang", "stubborn", "stopped", "holds-stdout", "setsid", "double-fork", "no-env"} {
		t.Run(role, func(t *testing.T) {
			if role != "hang" && role != "stubborn" && role != "stopped" && role != "holds-stdout" && runtime.GOOS != "linux" {
				t.Skip("finding who left the session needs /proc")
			}
			out := newOutput()
			p := start(t, role, out, 50*time.Millisecond)
			pid := out.ready(t)
			go io.Copy(io.Discard, out.pr)
			if len(p.Alive()) == 0 {
				t.Error("no process seems to be alive before the end")
			}
			if _, err := p.End(); err != nil {
				t.Fatal(err)
			}
			out.pw.Close()
			dead(t, pid)
			if pids := p.Alive(); len(pids) > 0 {
				t.Errorf("%v live", pids)
			}
		})
	}
}

func TestEndIsOneForAllCallers(t *testing.T) {
	p := start(t, "stubborn", nil, 20*time.Millisecond)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if e, err := p.End(); err != nil || e.Signal == "" {
				t.Errorf("got %v, %v", e, err)
			}
		})
	}
	wg.Wait()
}

// After a crash, the next daemon has only what was stored.
func TestClearByIdent(t *testing.T) {
	for _, role := range []string{"stubborn", "setsid", "double-fork"} {
		t.Run(role, func(t *testing.T) {
			if role != "stubborn" && runtime.GOOS != "linux" {
				t.Skip("finding who left the session needs /proc")
			}
			out := newOutput()
			p := start(t, role, out, time.Second)
			pid := out.ready(t)
			go io.Copy(io.Discard, out.pr)
			defer out.pw.Close()
			if len(proc.Alive(p.Ident())) == 0 {
				t.Error("not seen from outside")
			}
			if err := proc.Clear(p.Ident(), 20*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			dead(t, pid)
			_, _ = p.End()
		})
	}
}

// Many runs are cleared together, and no other process is.
func TestClearMarks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reading another's environment needs /proc")
	}
	var marks []string
	var pids []int
	for _, role := range []string{"stubborn", "setsid", "double-fork", "hang"} {
		out := newOutput()
		p := startMarked(t, t.Name()+" "+role, role, out, time.Second)
		pids = append(pids, out.ready(t))
		go io.Copy(io.Discard, out.pr)
		defer out.pw.Close()
		marks = append(marks, p.Ident().Mark)
	}
	last := len(marks) - 1
	if left := proc.ClearMarks([]string{marks[0], marks[1], "", "unknown", marks[2]}); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	for _, pid := range pids[:last] {
		dead(t, pid)
	}
	if err := syscall.Kill(pids[last], 0); err != nil {
		t.Error("an unrelated process was killed")
	}
	if left := proc.ClearMarks(nil); left != nil {
		t.Errorf("left %v", left)
	}
}

// A process that reuses the PID, or an Ident of an earlier boot, is not
// killed.
func TestClearSparesOthers(t *testing.T) {
	out := newOutput()
	p := start(t, "hang", out, time.Second)
	pid := out.ready(t)
	id := p.Ident()
	for _, other := range []proc.Ident{
		{PID: id.PID, Start: id.Start - 1, Boot: id.Boot, Mark: "someone else's"},
		{PID: id.PID, Start: id.Start, Boot: "another boot", Mark: id.Mark},
		{Mark: ""}, {Mark: "unknown"},
	} {
		if err := proc.Clear(other, 0); err != nil {
			t.Error(err)
		}
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Error("it was killed")
	}
	select {
	case <-p.Exited():
		t.Error("it has ended")
	default:
	}
}

func TestUnkillableErrorNamesThem(t *testing.T) {
	var u *proc.UnkillableError
	if err := error(&proc.UnkillableError{PIDs: []int{7}}); !errors.As(err, &u) || !strings.Contains(err.Error(), "[7]") {
		t.Error(err)
	}
}

// TestABoundProgramEndsWithAKilledParent: the parent is a separate program,
// killed by SIGKILL; the child does not read stdin.
func TestABoundProgramEndsWithAKilledParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a program that its parent has died")
	}
	parent := exec.Command(os.Args[0], flag+"binds")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(out)
	if !in.Scan() {
		t.Fatal("the parent says nothing")
	}
	child, err := strconv.Atoi(in.Text())
	if err != nil {
		t.Fatal(err)
	}
	id := proc.Identify(child)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	t.Cleanup(func() {
		if t.Failed() {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
	})
	testkit.Wait(t, "the child ends with its parent", func() bool { return len(proc.Alive(id)) == 0 })
}

func TestInputIsHandedOn(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p, err := proc.Start(proc.Spec{Argv: []string{os.Args[0], flag + "cat"}, Env: os.Environ(), Input: r, Stdout: &out, Grace: 5 * time.Second, Mark: "input", LeaveOrphans: true, Look: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "one ")
	fmt.Fprint(w, "two")
	w.Close()
	<-p.Exited()
	<-p.Drained()
	if exit, err := p.End(); err != nil || exit.Code != 0 || out.String() != "one two" {
		t.Errorf("%v, %v, %q", exit, err, out.String())
	}
}
