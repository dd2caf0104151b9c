//go:build linux

package confine_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/confine"
)

func TestMemory(t *testing.T) {
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			h := open(t, method)
			if method == "groups" {
				needs(t, h, "memory")
			}
			l := confine.Limits{Memory: 64 << 20}
			r := start(t, h, l, confine.Sandbox{}, `dd if=/dev/zero of=/dev/null bs=200M count=1 2>&1; echo end $?; sleep 100`)
			if method == "rlimit" {
				if code := r.out.said(t, "end"); code == "0" {
					t.Errorf("it got the memory: %s", r.out)
				}
				return
			}
			exit, struck := r.finish() // the whole run is killed, including processes that did not use the memory
			if exit.Signal == "" || !slices.Contains(struck, "memory") {
				t.Errorf("%v, struck %v: %s", exit, struck, r.out)
			}
			r.done()
			r = start(t, h, l, confine.Sandbox{}, `dd if=/dev/zero of=/dev/null bs=1M count=1`)
			if exit, struck := r.finish(); exit.Code != 0 || len(struck) > 0 {
				t.Errorf("the next run: %v, struck %v: %s", exit, struck, r.out)
			}
		})
	}
}

// A fork bomb ends at its limit, and the machine is not affected.
func TestProcesses(t *testing.T) {
	h := open(t, "groups")
	needs(t, h, "processes")
	script := `n=0; while [ $n -lt 1000 ]; do sleep 100 & n=$((n+1)); echo n $n; done; echo through`
	r := start(t, h, confine.Limits{Processes: 50}, confine.Sandbox{}, script)
	select {
	case <-r.Exited(): // a shell gives up when it cannot fork
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	pids, ok := r.box.Alive()
	if n := len(pids); !ok || n < 45 || n > 50 {
		t.Errorf("%d live", n)
	}
	if _, struck := r.finish(); !slices.Contains(struck, "processes") {
		t.Errorf("struck %v", struck)
	}
	if strings.Contains(r.out.String(), "through") || !strings.Contains(r.out.String(), "n 49") {
		t.Errorf("it said %s", r.out)
	}
}

func TestCPUTime(t *testing.T) {
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			h := open(t, method)
			limit, script := 300*time.Millisecond, `(while :; do :; done) & (while :; do :; done) & wait`
			if method == "rlimit" {
				limit, script = time.Second, `while :; do :; done`
			}
			r := start(t, h, confine.Limits{CPUTime: limit}, confine.Sandbox{}, script)
			if exit, struck := r.finish(); exit.Signal == "" || !slices.Contains(struck, "cpu_time") {
				t.Errorf("%v, struck %v", exit, struck)
			}
		})
	}
}

func TestShareOfACore(t *testing.T) {
	h := open(t, "groups")
	needs(t, h, "cpus")
	r := start(t, h, confine.Limits{CPUs: 0.1}, confine.Sandbox{}, `trap 'times; exit 0' TERM; echo ready; while :; do :; done`)
	r.out.said(t, "ready")
	time.Sleep(600 * time.Millisecond) // the CPU time within this period is measured
	if _, err := r.EndWithin(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	used, err := time.ParseDuration(strings.Fields(strings.TrimPrefix(r.out.String(), "ready"))[0])
	if err != nil || used > 250*time.Millisecond {
		t.Errorf("it used %v (%v): %s", used, err, r.out)
	}
}

func TestFileSizeAndOpenFiles(t *testing.T) {
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			h := open(t, method)
			file := filepath.Join(t.TempDir(), "large")
			r := start(t, h, confine.Limits{FileSize: 1 << 20, OpenFiles: 40}, confine.Sandbox{},
				`ulimit -n; exec dd if=/dev/zero of=`+file+` bs=64k count=100`)
			exit, struck := r.finish()
			if exit.Signal == "" || !slices.Equal(struck, []string{"file_size"}) || !strings.HasPrefix(r.out.String(), "40\n") {
				t.Errorf("%v, struck %v: %s", exit, struck, r.out)
			}
			if st, err := os.Stat(file); err != nil || st.Size() != 1<<20 {
				t.Errorf("%v, %v", st, err)
			}
		})
	}
}

// Without groups the user's limit is used, except for root, to whom it does not
// apply.
func TestProcessesOfAUser(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("the limit of a user does not bind root")
	}
	h := open(t, "rlimit")
	r := start(t, h, confine.Limits{Processes: 50}, confine.Sandbox{}, `n=0; while [ $n -lt 400 ]; do sleep 100 & n=$((n+1)); echo n $n; done; echo through`)
	r.finish()
	if strings.Contains(r.out.String(), "through") || !strings.Contains(r.out.String(), "n 20\n") {
		t.Errorf("it said %s", r.out)
	}
}

// Different limits for the next run of the same box apply as well.
func TestLimitsOfOneRunAreNotThoseOfTheNext(t *testing.T) {
	h := open(t, "groups")
	needs(t, h, "processes", "memory")
	fork := `for i in 1 2 3 4 5 6 7 8; do sleep 100 & done; echo through; kill -9 $$`
	for _, c := range []struct {
		l    confine.Limits
		want bool
	}{
		{confine.Limits{Processes: 5, Memory: 32 << 20}, false},
		{confine.Limits{}, true},
		{confine.Limits{Processes: 20, Memory: 1 << 30}, true},
		{confine.Limits{Processes: 3, Memory: 16 << 20}, false},
	} {
		r := start(t, h, c.l, confine.Sandbox{}, fork)
		r.finish()
		if got := strings.Contains(r.out.String(), "through"); got != c.want {
			t.Errorf("%+v: %s", c.l, r.out)
		}
		r.done()
	}
}
