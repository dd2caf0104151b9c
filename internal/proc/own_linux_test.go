package proc_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// takeOffStamp raises the limits that could carry a stamp.
func takeOffStamp() {
	for resource := range unix.RLIMIT_RTTIME + 1 {
		var l unix.Rlimit
		if unix.Getrlimit(resource, &l) == nil {
			_ = unix.Setrlimit(resource, &unix.Rlimit{Cur: l.Max, Max: l.Max})
		}
	}
}

// leave starts a program in one of its roles, and returns the PID of the
// process that reports ready.
func leave(t *testing.T, role string) (*proc.Process, int) {
	t.Helper()
	out := newOutput()
	p := start(t, role, out, 50*time.Millisecond)
	pid := out.ready(t)
	go io.Copy(io.Discard, out.pr)
	t.Cleanup(func() { out.pw.Close() })
	return p, pid
}

func parentOf(pid int) int   { _, parent := statOf(pid); return parent }
func stateOf(pid int) string { state, _ := statOf(pid); return state }

// statOf returns the state and parent of a process; both are zero if there is
// none.
func statOf(pid int) (state string, parent int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, _ = fmt.Sscan(string(text[bytes.LastIndexByte(text, ')')+1:]), &state, &parent)
	return state, parent
}

// init keeps the main goroutine on the first thread, which endThread ends.
func init() {
	if slices.Contains(os.Args, flag+"headless") {
		runtime.LockOSThread()
	}
}

// endThread ends only the current thread.
func endThread() {
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
}

// living reports whether a process has a thread that still runs.
func living(pid int) bool {
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return len(threads) > 1 || len(threads) == 1 && stateOf(pid) != "Z"
}

// A process without its first thread looks like a zombie but is alive.
func TestEndFindsWhatLostItsFirstThread(t *testing.T) {
	p, pid := leave(t, "headless")
	testkit.Wait(t, "its first thread ends", func() bool { return stateOf(pid) == "Z" })
	if !living(pid) || !slices.Contains(p.Alive(), pid) {
		t.Errorf("it lives: %v; found: %v", living(pid), p.Alive())
	}
	if _, err := p.End(); err != nil {
		t.Fatal(err)
	}
	if living(pid) {
		t.Error("it survived")
	}
}

// A process that has left its session and its parents and has neither an
// environment nor an output of its run still ends with the run.
func TestEndFindsWhatShedAllSigns(t *testing.T) {
	for _, role := range []string{"sheds", "sheds-stamp"} {
		t.Run(role, func(t *testing.T) {
			p, orphan := leave(t, role)
			<-p.Exited()
			if _, err := p.End(); err != nil {
				t.Fatal(err)
			}
			if living(orphan) {
				_ = syscall.Kill(orphan, syscall.SIGKILL)
				t.Errorf("process %d survived", orphan)
			}
		})
	}
}

// The end of one run leaves alone what other runs left behind, what other runs
// have, and what belongs to no run.
func TestEndLeavesOthersAlone(t *testing.T) {
	other, theirs := leave(t, "sheds-and-stays")
	part := exec.Command("/bin/sleep", "1000")
	part.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := proc.StartOwn(part); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = part.Process.Kill()
		_ = part.Wait()
	})
	helper := exec.Command("/bin/sleep", "1000") // in this process's own session
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = helper.Process.Kill()
		_ = helper.Wait()
	})
	testkit.Wait(t, "the other's orphan is handed to us", func() bool { return parentOf(theirs) == os.Getpid() })

	p, orphan := leave(t, "sheds")
	if _, err := p.End(); err != nil {
		t.Fatal(err)
	}
	if living(orphan) {
		t.Errorf("process %d survived its run", orphan)
	}
	for what, pid := range map[string]int{"the other run": other.Ident().PID, "its orphan": theirs, "a part": part.Process.Pid, "a helper": helper.Process.Pid} {
		if !living(pid) {
			t.Errorf("%s was ended too", what)
		}
	}
	if _, err := other.End(); err != nil {
		t.Fatal(err)
	}
	if living(theirs) {
		t.Errorf("process %d survived its run", theirs)
	}
}

// Programs inherit the limits of this process, not a stamp.
func TestAStampIsNotKept(t *testing.T) {
	var before, after unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &before); err != nil {
		t.Fatal(err)
	}
	p, _ := leave(t, "stubborn")
	if _, err := p.End(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &after); err != nil {
		t.Fatal(err)
	}
	if before != after {
		t.Errorf("the limit is %v, was %v", after, before)
	}
}
