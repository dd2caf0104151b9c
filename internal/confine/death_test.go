//go:build linux

package confine_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// direct is a director that runs one command that leaves its session.
func direct(name, method string) {
	h, err := confine.Open(confine.Options{Name: name, Method: method})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	b, err := h.Take(confine.Limits{}, confine.Sandbox{})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	_, err = proc.Start(proc.Spec{
		Argv:   []string{"/bin/sh", "-c", `(setsid env -i /bin/sh -c 'echo leftover $$; exec /bin/sleep 1000' &); echo leader $$; exec sleep 1000`},
		Env:    []string{"PATH=/usr/bin:/bin"},
		Stdout: os.Stdout, Mark: "killed", Box: b, LeaveOrphans: true,
	})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	time.Sleep(time.Hour)
}

// TestADirectorThatIsKilled: its command dies with it, and the command's
// child processes are killed at the next start.
func TestADirectorThatIsKilled(t *testing.T) {
	for _, method := range []string{"auto", "rlimit"} {
		t.Run(method, func(t *testing.T) {
			o := confine.Options{Name: name(t), Method: method}
			leader, leftover := killedDirector(t, o)
			defer collect(leader, leftover) // this process is a subreaper by now, so they are its children
			waitDead(t, leader)
			if method == "rlimit" {
				_ = exec.Command("kill", "-9", leftover).Run() // only its mark could find it, and it has none
				return
			}
			h, err := confine.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			if h.Report().Method == "rlimit" {
				_ = exec.Command("kill", "-9", leftover).Run() // without control groups it cannot be found
			} else {
				dead(t, leftover)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			if left := groups(o.Name); len(left) > 0 {
				t.Errorf("groups are left: %v", left)
			}
		})
	}
}

// TestTwoDirectorsOfOneName: the second does not kill the first one's runs.
func TestTwoDirectorsOfOneName(t *testing.T) {
	h := open(t, "groups")
	r := start(t, h, confine.Limits{}, confine.Sandbox{}, `trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	r.out.said(t, "ready")
	second, err := confine.Open(confine.Options{Name: name(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if exit, err := r.EndWithin(20 * time.Second); err != nil || exit.Code != 3 {
		t.Errorf("%v, %v", exit, err)
	}
}

func killedDirector(t *testing.T, o confine.Options) (leader, leftover string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, asDirector, o.Name, o.Method)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for sc := bufio.NewScanner(out); (leader == "" || leftover == "") && sc.Scan(); {
		switch what, pid, _ := strings.Cut(sc.Text(), " "); what {
		case "leader":
			leader = pid
		case "leftover":
			leftover = pid
		default:
			t.Error(sc.Text())
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if leader == "" || leftover == "" {
		t.Fatal("the processes of the director did not start")
	}
	return leader, leftover
}

// collect waits for dead children.
func collect(pids ...string) {
	for _, p := range pids {
		if pid, err := strconv.Atoi(p); err == nil {
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
	}
}

func waitDead(t *testing.T, pid string) {
	t.Helper()
	var n int
	_, _ = fmt.Sscan(pid, &n)
	testkit.Wait(t, pid+" ends with its director", func() bool { return slices.Contains([]string{"", "Z"}, state(n)) })
}
