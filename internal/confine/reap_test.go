//go:build linux

package confine_test

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// The keeper collects orphans, but never the program of a run that has just
// begun: its exit status would be lost.
func TestTheKeeperLeavesProgramsAlone(t *testing.T) {
	h := open(t, "groups")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				h.Reap()
			}
		}
	}()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range soak.Pick(25, 100) {
				box, err := h.Take(confine.Limits{}, confine.Sandbox{})
				if err != nil {
					t.Error(err)
					return
				}
				if code := exitCode(t, box, "exit 7"); code != 7 {
					t.Errorf("exit code %d, want 7", code)
				}
				if err := box.Free(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	close(stop)
	<-stopped
}

func exitCode(t *testing.T, box *confine.Box, script string) int {
	t.Helper()
	p, err := proc.Start(proc.Spec{Argv: []string{"/bin/sh", "-c", script}, Dir: "/usr", Mark: name(t), Box: box})
	if err != nil {
		t.Error(err)
		return -1
	}
	exit, err := func() (proc.Exit, error) { <-p.Exited(); return p.Kill() }()
	if err != nil {
		t.Error(err)
	}
	return exit.Code
}

// Whether any child is dead is known without listing them all: a run that left
// nothing behind must not pay for the children of every thread.
func TestADeadChildIsSeenWithoutALookAtAll(t *testing.T) {
	const alone = "SIGNALBOX_TEST_NO_OTHER_CHILDREN"
	if os.Getenv(alone) == "" { // other tests leave dead children of their own
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), alone+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	becomes := func(want bool) {
		t.Helper()
		testkit.Wait(t, fmt.Sprint("a dead child: ", want), func() bool { return confine.ChildDied() == want })
	}
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	becomes(true)
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if p, err = os.StartProcess("/bin/sleep", []string{"sleep", "600"}, &os.ProcAttr{}); err != nil {
		t.Fatal(err)
	}
	becomes(false)
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	becomes(true)
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	becomes(false)
}
