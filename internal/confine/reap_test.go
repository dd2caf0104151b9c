//go:build linux

package confine_test

import (
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// The keeper collects orphans, and never the program of a run that has just
// begun: how that ended would be lost.
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
			for range 100 {
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
