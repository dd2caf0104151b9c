//go:build linux

package confine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// A starting director kills nothing of another director, even if that has no
// lock because it is an older version: its groups have living processes.
func TestANeighbourWithoutALockLives(t *testing.T) {
	h, err := confine.Open(confine.Options{Name: name(t)})
	if err != nil {
		t.Fatal(err)
	}
	mine := groups(name(t))
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if len(mine) == 0 {
		t.Skip("no control groups")
	}
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, dir := range mine {
		dirs = append(dirs, dir+"-other")
		if err := os.Mkdir(dir+"-other", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir+"-other", "cgroup.procs"), []byte(strconv.Itoa(other.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
	if h, err = confine.Open(confine.Options{Name: name(t)}); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	_ = other.Process.Signal(syscall.SIGTERM)
	_ = other.Wait()
	if other.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("it was ended: %v", other.ProcessState)
	}
	for _, dir := range dirs {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	}
}

// A starting director removes what dead directors of other names left behind,
// but takes nothing from one that is restarting.
func TestANeighbourStartsAgain(t *testing.T) {
	mine := confine.Options{Name: name(t) + "-mine"}
	starting(t)
	for range 40 {
		h, err := confine.Open(mine)
		if err != nil {
			t.Fatal(err)
		}
		t.Run("run", func(t *testing.T) { // its cleanup frees the box
			r := start(t, h, confine.Limits{Processes: 16}, confine.Sandbox{}, `trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
			r.out.said(t, "ready")
			if exit, err := r.EndWithin(20 * time.Second); err != nil || exit.Code != 3 {
				t.Errorf("%v, %v", exit, err)
			}
		})
		left := groups(mine.Name)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		for _, dir := range left { // as a killed director leaves them
			_ = os.Mkdir(dir, 0o750)
		}
	}
}

// The processes that a killed director left are killed at its next start,
// even if others start at the same time and inspect its groups.
func TestLeftoversDieWhileNeighboursStart(t *testing.T) {
	o := confine.Options{Name: name(t) + "-mine"}
	for range 4 {
		starting(t)
	}
	for range soak.Pick(5, 20) {
		leader, leftover := killedDirector(t, o)
		waitDead(t, leader)
		h, err := confine.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if !h.Report().Tracked {
			_ = exec.Command("kill", "-9", leftover).Run() // only its mark could find it
		} else {
			dead(t, leftover)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		_ = exec.Command("kill", "-9", leftover).Run()
		collect(leader, leftover)
		if t.Failed() {
			return
		}
	}
}

// starting makes directors of other names start and end until the test is
// over.
func starting(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	o := confine.Options{Name: name(t) + "-neighbour"}
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			h, err := confine.Open(o)
			if err != nil {
				t.Error(err)
				return
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
}
