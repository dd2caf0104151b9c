//go:build linux

package confine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// stubborn children: the processes that they print as "pid" must be dead at
// the end.
var stubborn = map[string]string{
	"ignores TERM":    `trap '' TERM; echo pid $$; while :; do sleep 1; done`,
	"holds stdout":    `sh -c 'trap "" TERM; echo pid $$; while :; do sleep 1; done' & exit 0`,
	"setsid":          `setsid sh -c 'trap "" TERM; echo pid $$; while :; do sleep 1; done'`,
	"double fork":     `(setsid sh -c 'trap "" TERM; echo pid $$; while :; do sleep 1; done' &)`,
	"stopped":         `echo pid $$; kill -STOP $$`,
	"forgets its env": `(setsid env -i /bin/sh -c 'echo pid $$; while :; do /bin/sleep 1; done' &); sleep 100`,
}

func TestNothingSurvivesTheEnd(t *testing.T) {
	for _, method := range methods {
		for what, script := range stubborn {
			for how, grace := range map[string]time.Duration{"killed": 0, "cancelled": 30 * time.Millisecond} {
				t.Run(method+"/"+what+"/"+how, func(t *testing.T) {
					h := open(t, method)
					r := start(t, h, confine.Limits{Processes: 50}, confine.Sandbox{}, script)
					pid := r.out.said(t, "pid")
					begin := time.Now()
					if _, err := r.EndWithin(grace); err != nil {
						t.Fatal(err)
					}
					if d := time.Since(begin); d > 30*time.Second {
						t.Errorf("the end took %v", d)
					}
					dead(t, pid)
					if pids := r.Alive(); len(pids) > 0 {
						t.Errorf("%v live", pids)
					}
				})
			}
		}
	}
}

// A kill cuts the grace of a cancel short.
func TestAKillCutsTheGraceShort(t *testing.T) {
	h := open(t, "groups")
	r := start(t, h, confine.Limits{}, confine.Sandbox{}, stubborn["ignores TERM"])
	r.out.said(t, "pid")
	ended := make(chan error, 1)
	go func() {
		_, err := r.EndWithin(time.Hour)
		ended <- err
	}()
	if _, err := r.Kill(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A process that forks faster than it is killed, outside of its session and
// of its parent's reach, is killed all the same, every time.
func TestKillsOfDoubleForkers(t *testing.T) {
	h := open(t, "groups")
	mark := fmt.Sprintf("7%d", os.Getpid())
	script := `(setsid sh -c 'while :; do (setsid sleep ` + mark + ` &); done' &)
echo ready
while :; do (setsid sleep ` + mark + ` &); done`
	for range 200 {
		r := start(t, h, confine.Limits{Processes: 40}, confine.Sandbox{}, script)
		r.out.said(t, "ready")
		if _, err := r.Kill(); err != nil {
			t.Fatal(err)
		}
		if pids, ok := r.box.Alive(); len(pids) > 0 || !ok {
			t.Fatalf("%v live, %v", pids, ok)
		}
		r.done()
	}
	if left := running("sleep\x00" + mark); len(left) > 0 {
		t.Errorf("%v survived", left)
	}
	noZombies(t)
}

// running finds processes with these arguments.
func running(args string) []int {
	var pids []int
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, l := range lines {
		if b, _ := os.ReadFile(l); strings.HasPrefix(string(b), args) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(l)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func childrenOf(pid int) []int {
	var pids []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, l := range lists {
		b, _ := os.ReadFile(l)
		for f := range strings.FieldsSeq(string(b)) {
			n, _ := strconv.Atoi(f)
			pids = append(pids, n)
		}
	}
	return pids
}

// noZombies waits until the dead children that were in the boxes of this test are
// collected. Other tests leave some behind: without control groups nobody collects
// them.
func noZombies(t *testing.T) {
	t.Helper()
	testkit.Wait(t, "dead children are collected", func() bool {
		return !slices.ContainsFunc(childrenOf(os.Getpid()), func(pid int) bool {
			group, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
			return state(pid) == "Z" && strings.Contains(string(group), "/"+name(t)+"/")
		})
	})
}

// Zombies of orphans that became children of the director are collected, but
// no other children.
func TestDeadOrphansAreCollected(t *testing.T) {
	h := open(t, "groups")
	mine := exec.Command("true") // not from a box: this test waits for it
	if err := mine.Start(); err != nil {
		t.Fatal(err)
	}
	r := start(t, h, confine.Limits{Processes: 20}, confine.Sandbox{}, `for i in 1 2 3 4 5; do (setsid true &); done; sleep 0.1; echo ready; cat /proc/self/stat >/dev/null`)
	r.out.said(t, "ready")
	if exit, struck := r.finish(); exit.Code != 0 || len(struck) > 0 {
		t.Errorf("%v, %v: %s", exit, struck, r.out)
	}
	r.done()
	if err := mine.Wait(); err != nil {
		t.Error(err)
	}
	noZombies(t)
}

func TestNoNewPrivileges(t *testing.T) {
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			r := start(t, open(t, method), confine.Limits{}, confine.Sandbox{}, `grep NoNewPrivs /proc/self/status`)
			if exit, _ := r.finish(); exit.Code != 0 || !strings.Contains(r.out.String(), "NoNewPrivs:\t1") {
				t.Errorf("%v: %s", exit, r.out)
			}
			if b, err := os.ReadFile("/proc/self/status"); err != nil || !strings.Contains(string(b), "NoNewPrivs:\t0") {
				t.Errorf("the director itself gave up its privileges: %v", err)
			}
		})
	}
}
