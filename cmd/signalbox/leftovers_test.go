package main

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/proc"
)

// sweep reads process ids and kills those that are still directors of a test, once
// the test binary is gone. This includes directors that were suspended when the test
// binary was killed, which nothing else would end.
const sweep = `while read -r pid; do all="$all $pid"; done
for pid in $all; do
	grep -qz ^` + mainEnv + `= "/proc/$pid/environ" 2>/dev/null && kill -KILL "$pid"
done`

// sweeper is the pipe to which process ids are written.
var sweeper = sync.OnceValues(func() (*os.File, error) { return startSweeper() })

func startSweeper() (*os.File, error) {
	end, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer end.Close()
	cmd := exec.Command("/bin/sh", "-c", sweep)
	cmd.Stdin = end
	proc.Detach(cmd) // an interrupt from the keyboard must not reach it
	return ours, cmd.Start()
}

// leaveNothing makes sure that a process ends with the test binary at the latest.
func leaveNothing(pid int) error {
	to, err := sweeper()
	if err == nil {
		_, err = fmt.Fprintln(to, pid)
	}
	return err
}

func TestTheSweeperEndsWhatIsSuspended(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("processes are told apart by /proc")
	}
	ours, err := startSweeper()
	if err != nil {
		t.Fatal(err)
	}
	start := func(env ...string) *exec.Cmd {
		cmd := exec.Command("/bin/sleep", "60")
		cmd.Env = env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := proc.Suspend(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(ours, cmd.Process.Pid)
		return cmd
	}
	director, other := start(mainEnv+"=1"), start("PATH=/bin")
	ours.Close() // as if this process had ended
	ended := make(chan error, 1)
	go func() { ended <- director.Wait() }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("a suspended director was left behind")
		_ = director.Process.Kill()
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("it ended a process that is no director: %v", err)
	}
	_ = other.Process.Kill()
	_ = other.Wait()
}
