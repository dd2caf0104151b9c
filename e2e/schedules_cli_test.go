package e2e_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// TestSchedulesFromTheCommandLine creates, fires, shows and removes a schedule
// of a director; impossible values are refused with the name of the field.
func TestSchedulesFromTheCommandLine(t *testing.T) {
	b := newBox(t)
	addr := freePort(t)
	director := b.director("--addr", addr)
	b.agent("coder", director.url)
	for field, args := range map[string][]string{
		"agent_name":      {"--cron", "@daily", "--prompt", "p", "--agent", "nobody"},
		"timezone":        {"--cron", "@daily", "--prompt", "p", "--timezone", "Mars/Olympus"},
		"land must be":    {"--cron", "@daily", "--prompt", "p", "--land-method", "squash"},
		"NAME=COMMAND":    {"--cron", "@daily", "--prompt", "p", "--check", "test"},
		"cron_expression": {"--cron", "0 0 31 2 *", "--prompt", "p"},
	} {
		code := 2
		if field == "agent_name" {
			code = 3
		}
		if got := b.want(code, append([]string{"schedules", "add", "wrong"}, args...)...); !strings.Contains(got.err, field) {
			t.Errorf("%s is not named: %s", field, got.err)
		}
	}
	b.want(0, "schedules", "add", "nightly", "--cron", "0 1 * * *", "--timezone", "Europe/Berlin", "--prompt", "tidy up", "--agent", "coder")
	if got := b.want(5, "schedules", "add", "nightly", "--cron", "@daily", "--prompt", "p"); !strings.Contains(got.err, "nightly") {
		t.Errorf("%s", got.err)
	}
	if got := b.want(0, "schedules", "trigger", "nightly", "--wait"); got.out != "Demo agent finished: tidy up\n" {
		t.Errorf("%q", got.out)
	}
	b.want(0, "schedules", "edit", "nightly", "--cron", "0 3 * * *", "--check", "test=make test", "--check-retries", "1", "--land", "main")
	b.want(0, "schedules", "edit", "nightly", "--land-method", "squash", "--fast-forward")
	director.kill()
	director = b.director("--addr", addr)

	// Acknowledged schedules and firings survive a crash.
	s := parse[api.Schedule](t, b.want(0, "schedules", "show", "nightly", "--json").out)
	if s.CronExpression != "0 3 * * *" || s.AgentName != "coder" || s.LastStatus != "queued" || len(s.Outcomes) != 1 || s.Outcomes[0].Status != "completed" ||
		len(s.Checks) != 1 || s.Checks[0].Run != "make test" || *s.CheckRetries != 1 || s.Land != "main" || s.LandMethod != "squash" || !s.FastForward ||
		s.Outcomes[0].QueueID != s.LastQueueID || len(s.NextRuns) != 3 || s.NextRuns[0].In(zone(t, "Europe/Berlin")).Hour() != 3 {
		t.Errorf("%+v", s)
	}
	past, err := b.client(director.url).History(b.ctx(), client.HistoryOptions{SourceJob: "nightly"})
	if err != nil || len(past.Tasks) != 1 || past.Tasks[0].Source != "scheduler" {
		t.Errorf("%+v %v", past, err)
	}
	if got := b.want(0, "schedules", "show", "nightly"); !strings.Contains(got.out, "checks:      test\n") || !strings.Contains(got.out, "lands:       main (squash)\n") {
		t.Errorf("%s", got.out)
	}
	b.want(0, "schedules", "edit", "nightly", "--check", "", "--land", "")
	if s := parse[api.Schedule](t, b.want(0, "schedules", "show", "nightly", "--json").out); s.Checks != nil || s.Land != "" || s.LandMethod != "" || s.FastForward {
		t.Errorf("%+v", s)
	}
	b.want(0, "schedules", "disable", "nightly")
	if got := b.want(0, "schedules"); !strings.Contains(got.out, "disabled") {
		t.Errorf("%s", got.out)
	}
	b.want(0, "schedules", "remove", "nightly")
	b.want(3, "schedules", "show", "nightly")
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// The jobs in the director's configuration follow its file; those in a working
// folder's file only after its user has trusted the new version.
func TestTheDirectorFollowsTheJobsOfItsFile(t *testing.T) {
	b := newBox(t)
	write := func(jobs string) string { return b.file("work/signalbox.yaml", "jobs:\n"+jobs, 0o600) }
	write("  - {name: a, schedule: \"0 1 * * *\", prompt: p}\n")
	if got := b.want(2, "director", "--addr", "127.0.0.1:0"); !strings.Contains(got.err, "it sets jobs, which") {
		t.Errorf("%s", got.err)
	}
	b.want(0, "trust")
	director := b.director()
	c := b.client(director.url)
	names := func() string {
		var out []string
		for s, err := range c.AllSchedules(b.ctx(), client.SchedulesOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, s.Name+"/"+s.Source)
		}
		return strings.Join(out, " ")
	}
	if got := names(); got != "a/config" {
		t.Fatalf("%s", got)
	}
	b.want(5, "schedules", "remove", "a")
	b.want(0, "schedules", "add", "mine", "--cron", "@daily", "--prompt", "p")

	write("  - {name: b, schedule: \"0 1 * * *\", prompt: p}\n")
	director.signal(syscall.SIGHUP)
	director.says("signalbox trust " + filepath.Join(b.work, "signalbox.yaml"))
	if got := names(); got != "a/config mine/api" {
		t.Fatalf("untrusted jobs: %s", got)
	}
	b.want(0, "trust")
	b.until("the job of the file is another", func() bool { return names() == "b/config mine/api" })
	write("  - {name: c, schedule: \"61 1 * * *\", prompt: p}\n")
	director.says("signalbox.yaml:2: jobs[0].schedule: ") // noticed without a signal
	if got := names(); got != "b/config mine/api" {
		t.Errorf("%s", got)
	}
	director.stop()
}
