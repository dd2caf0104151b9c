//go:build unix

package checks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/checks"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a folder in which checks run.
type fixture struct {
	*testing.T
	dir string
	log bytes.Buffer
	checks.Options
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, dir: t.TempDir()}
	f.Options = checks.Options{Dir: f.dir, Env: []string{"PATH=" + os.Getenv("PATH")}, Log: &f.log, Mark: fmt.Sprintf("checks-%d-%s", os.Getpid(), filepath.Base(f.dir)), Grace: time.Second}
	return f
}

// run runs one check.
func (f *fixture) run(c api.TaskCheck) (api.AgentChecks, api.CheckResult) {
	f.Helper()
	c.Name = "test"
	all, err := checks.Run(f.Context(), f.Options, []api.TaskCheck{c})
	if err != nil {
		f.Fatal(err)
	}
	if len(all.Results) != 1 || all.Rounds != 1 {
		f.Fatalf("got %+v", all)
	}
	return all, all.Results[0]
}

// pid reads a PID that a process wrote to a file.
func (f *fixture) pid(name string) int {
	f.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		f.Fatal(err)
	}
	return pid
}

func (f *fixture) dead(pid int) {
	f.Helper()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		f.Errorf("process %d lives: %v", pid, err)
	}
}

func TestStateOfACheck(t *testing.T) {
	for name, c := range map[string]struct {
		run, state, output string
		code               int
	}{
		"exit 0":                    {"echo fine", api.CheckPassed, "fine\n", 0},
		"exit 1":                    {"echo broken >&2; exit 1", api.CheckFailed, "broken\n", 1},
		"exit 255":                  {"exit 255", api.CheckFailed, "", 255},
		"no such program":           {"no-such-program-at-all --version", api.CheckUnavailable, "no-such-program-at-all", 127},
		"a program in a list":       {"true && no-such-program-at-all", api.CheckUnavailable, "no-such-program-at-all", 127},
		"a file that is no program": {"./data", api.CheckUnavailable, "data", 126},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if err := os.WriteFile(filepath.Join(f.dir, "data"), []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
			all, r := f.run(api.TaskCheck{Run: c.run})
			if r.State != c.state || all.State != c.state || r.ExitCode == nil || *r.ExitCode != c.code || !strings.Contains(r.Output, c.output) {
				t.Errorf("got %+v, want %+v", r, c)
			}
			if log := f.log.String(); !strings.Contains(log, "check test: "+c.run) || !strings.Contains(log, "check test: "+c.state) || !strings.Contains(log, c.output) {
				t.Errorf("the log is %q", log)
			}
		})
	}
}

func TestACheckThatIsEndedByASignalHasFailed(t *testing.T) {
	_, r := newFixture(t).run(api.TaskCheck{Run: "kill -KILL $$"})
	if r.State != api.CheckFailed || r.ExitCode != nil {
		t.Errorf("got %+v", r)
	}
}

func TestACheckThatCannotBeStartedIsUnavailable(t *testing.T) {
	f := newFixture(t)
	f.Dir = filepath.Join(f.dir, "gone")
	if _, r := f.run(api.TaskCheck{Run: "true"}); r.State != api.CheckUnavailable || !strings.Contains(r.Output, "gone") {
		t.Errorf("got %+v", r)
	}
}

func TestAllChecksRunAndTheWorstCounts(t *testing.T) {
	pass, fail, gone := api.TaskCheck{Name: "pass", Run: "true"}, api.TaskCheck{Name: "fail", Run: "false"}, api.TaskCheck{Name: "gone", Run: "no-such-program-at-all"}
	for _, c := range []struct {
		list []api.TaskCheck
		want string
	}{
		{[]api.TaskCheck{fail, pass, gone}, api.CheckFailed},
		{[]api.TaskCheck{gone, fail}, api.CheckFailed},
		{[]api.TaskCheck{pass, gone, pass}, api.CheckUnavailable},
		{[]api.TaskCheck{pass, pass}, api.CheckPassed},
		{nil, api.CheckUnavailable},
	} {
		all, err := checks.Run(t.Context(), newFixture(t).Options, c.list)
		if err != nil || all.State != c.want || len(all.Results) != len(c.list) {
			t.Errorf("%+v: got %+v, %v", c.list, all, err)
		}
	}
}

func TestACheckThatHangsIsStoppedWithAllThatItStarted(t *testing.T) {
	f := newFixture(t)
	_, r := f.run(api.TaskCheck{Run: "echo begins; sleep 300 & echo $! >child; echo $$ >shell; wait", TimeoutSeconds: 1})
	if r.State != api.CheckTimeout || r.ExitCode != nil || r.Output != "begins\n" || r.Seconds < 1 {
		t.Errorf("got %+v", r)
	}
	f.dead(f.pid("shell"))
	f.dead(f.pid("child"))
	if !strings.Contains(f.log.String(), "check test: timeout, stopped after 1s") {
		t.Errorf("the log is %q", f.log.String())
	}
}

// TestWhatACheckLeavesBehindIsEnded: the remaining process keeps the outputs open, in a
// session of its own.
func TestWhatACheckLeavesBehindIsEnded(t *testing.T) {
	f := newFixture(t)
	run := "sleep 300 & echo $! >child; exit 0"
	if _, err := os.Stat("/usr/bin/setsid"); err == nil {
		run = "setsid sh -c 'trap \"\" TERM; echo $$ >child; sleep 300' & until test -s child; do :; done; exit 0"
	}
	f.Grace = 50 * time.Millisecond
	_, r := f.run(api.TaskCheck{Run: run})
	if r.State != api.CheckPassed {
		t.Errorf("got %+v", r)
	}
	f.dead(f.pid("child"))
}

func TestACheckThatPrintsAGigabyteIsBounded(t *testing.T) {
	f := newFixture(t)
	_, r := f.run(api.TaskCheck{Run: fmt.Sprintf("echo the first; head -c %d /dev/zero | tr '\\0' x; echo; echo the last; exit 1", soak.Pick(1<<26, 1<<30))})
	if r.State != api.CheckFailed || len(r.Output) > 8<<10 || !strings.HasSuffix(r.Output, "x\nthe last\n") {
		t.Errorf("got %s with %d bytes that end with %q", r.State, len(r.Output), r.Output[max(0, len(r.Output)-40):])
	}
	log := f.log.String()
	if len(log) > 300<<10 || !strings.Contains(log, "the first\n") || !strings.Contains(log, "the last\n") || !strings.Contains(log, " bytes left out here") {
		t.Errorf("the log has %d bytes", len(log))
	}
}

func TestOutputIsTextWithoutControlCharacters(t *testing.T) {
	f := newFixture(t)
	_, r := f.run(api.TaskCheck{Run: `printf '\033[31mred\033[0m \377 \303\251\007\r\n'`})
	if r.Output != "red \uFFFD é\n" {
		t.Errorf("got %q", r.Output)
	}
	// Invalid bytes, whose replacement is longer, and a character at the cut.
	_, r = f.run(api.TaskCheck{Run: `for i in 1 2 3 4 5 6 7 8 9; do head -c 1000 /dev/zero | tr '\0' '\303'; printf 'é%.0s' $(seq 300); done`})
	if len(r.Output) > 8<<10 || !strings.HasSuffix(r.Output, "éé") || strings.HasPrefix(r.Output, "\xa9") {
		t.Errorf("got %d bytes", len(r.Output))
	}
}

func TestStopEndsTheCheckAndTheRest(t *testing.T) {
	f := newFixture(t)
	cause := errors.New("cancelled by its owner")
	ctx, cancel := context.WithCancelCause(t.Context())
	begun := make(chan proc.Ident, 3)
	f.Begun = func(id proc.Ident) { begun <- id }
	go func() {
		<-begun
		if id := <-begun; id.PID == 0 || id.Mark != f.Mark {
			t.Errorf("got %+v", id)
		}
		cancel(cause)
	}()
	all, err := checks.Run(ctx, f.Options, []api.TaskCheck{{Name: "passes", Run: "true"}, {Name: "hangs", Run: "echo $$ >shell; sleep 300"}, {Name: "next", Run: "touch next"}})
	if !errors.Is(err, cause) || len(all.Results) != 1 || all.State != api.CheckUnavailable || all.Message == "" {
		t.Errorf("got %+v, %v", all, err)
	}
	if _, err := os.Stat(filepath.Join(f.dir, "next")); err == nil {
		t.Error("the next check ran")
	}
	all, err = checks.Run(ctx, f.Options, []api.TaskCheck{{Name: "next", Run: "touch next"}})
	if !errors.Is(err, cause) || len(all.Results) != 0 {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestEnvironmentIsWhatIsGiven(t *testing.T) {
	f := newFixture(t)
	f.Env = append(f.Env, "COLOUR=blue")
	t.Setenv("SIGNALBOX_TOKEN", "a token of the agent")
	if _, r := f.run(api.TaskCheck{Run: "echo $COLOUR $SIGNALBOX_TOKEN; pwd"}); !strings.HasPrefix(r.Output, "blue\n") || !strings.Contains(r.Output, filepath.Base(f.dir)) {
		t.Errorf("got %q", r.Output)
	}
}
