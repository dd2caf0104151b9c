package e2e_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// reapEnv gives the reaper the folder of its test run.
const reapEnv = "SIGNALBOX_E2E_REAP"

// startReaper starts this test binary again, to clean up after a run that
// cannot do so itself, because it was killed or reached its time limit. It
// notices that by the end of the pipe on its standard input.
func startReaper(dir string) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), reapEnv+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C must not reach it
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() { in.Close(); cmd.Wait() }, nil
}

// reap waits for the end of the run and removes what it left behind.
func reap(dir string) {
	io.Copy(io.Discard, os.Stdin)
	killAllOf(dir)
	unmountAllOf(dir)
	os.RemoveAll(dir)
}

// killAllOf kills the processes that have a folder, or one below it, in their
// environment, as HOME or on PATH, or as their working folder: Redis
// overwrites its environment with its title.
func killAllOf(dir string) {
	testkit.Within(5*time.Second, func() bool {
		left := processesOf(dir)
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(left) == 0
	})
}

func processesOf(dir string) []int {
	var pids []int
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range found {
		env, _ := os.ReadFile(filepath.Join(process, "environ"))
		line, _ := os.ReadFile(filepath.Join(process, "cmdline")) // for a director or agent, only root can read more
		folder, _ := os.Readlink(filepath.Join(process, "cwd"))
		if !bytes.Contains(env, []byte(dir+"/")) && !bytes.Contains(line, []byte(dir+"/")) && !strings.HasPrefix(folder, dir+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
