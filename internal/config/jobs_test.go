package config_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// asScheduler loads a file as a standalone scheduler does.
func (w *world) asScheduler(flags ...config.Flag) (config.Config, error) {
	return config.Load(config.Sources{Ask: trusted, Dir: w.dir, Flags: flags, Scheduler: true, Env: w.lookup})
}

func (w *world) lookup(name string) (string, bool) {
	v, ok := w.env[name]
	return v, ok
}

// TestSeedSchedulerFile loads the seed's configs/scheduler.yaml unchanged.
func TestSeedSchedulerFile(t *testing.T) {
	w := newWorld(t)
	w.file(`# configs/scheduler.yaml
port: 9101
log_level: debug
director_url: http://localhost:8080  # Required for queue submission

# agent_url no longer needed - queue handles dispatch
# agent_url: http://localhost:9000  # Removed

jobs:
  - name: nightly-maintenance
    schedule: "0 1 * * *"
    prompt: |
      Perform nightly maintenance...
`)
	c, err := w.asScheduler()
	if err != nil {
		t.Fatal(err)
	}
	if c.Scheduler.Addr != "127.0.0.1:9101" || c.Log.Level != "debug" || c.Director != "http://localhost:8080" || c.Scheduler.Timezone != "UTC" || !c.Scheduler.Enabled {
		t.Errorf("%+v %q %q", c.Scheduler, c.Log.Level, c.Director)
	}
	want := []config.Job{{Line: 10, Schedule: signalbox.Schedule{
		Name: "nightly-maintenance", Cron: "0 1 * * *", Prompt: "Perform nightly maintenance...\n", Enabled: true, Source: signalbox.ScheduleFromConfig,
		Overlap: signalbox.OverlapQueue, Missed: signalbox.MissedOnce, MissedWindow: 24 * time.Hour, OnFull: signalbox.FullSkip,
	}}}
	if !reflect.DeepEqual(c.Jobs, want) {
		t.Errorf("%+v", c.Jobs)
	}
}

func TestAllKeysOfAJob(t *testing.T) {
	w := newWorld(t)
	w.env["TEAM"] = "billing"
	w.env["SIGNALBOX_SCHEDULER_TIMEZONE"] = "America/New_York"
	w.file(`
scheduler: {enabled: false, timezone: Europe/Berlin, addr: "127.0.0.1:9200"}
jobs:
  - {name: a, schedule: "@hourly", prompt: "look after ${TEAM}", timezone: Asia/Tokyo, agent: coder, model: opus, tier: heavy, timeout: 90s,
     enabled: false, description: d, priority: -3, session_id: s1, project: /srv/shop, thinking: true, on_lost: requeue,
     overlap: cancel_previous, missed: all, missed_window: 2h, on_full: retry}
  - {name: b, schedule: "*/5  *  * * *", prompt: p, kind: claude, timeout: 1800, project: {name: shop, path: shop},
     workspace: worktree, base: main, checks: [{name: test, run: "go test ./$PKG", timeout: 10m}], check_retries: 0, land: main, land_method: squash, fast_forward: true}
`)
	c := w.mustLoad("")
	if c.Scheduler != (config.Scheduler{Timezone: "America/New_York", Addr: "127.0.0.1:9200"}) {
		t.Errorf("%+v", c.Scheduler)
	}
	on := true
	want := []signalbox.Schedule{{
		Name: "a", Cron: "@hourly", Prompt: "look after billing", Timezone: "Asia/Tokyo", Agent: "coder", Model: "opus", Tier: "heavy", TimeoutSeconds: 90,
		Description: "d", Priority: -3, SessionID: "s1", Project: &signalbox.Project{Path: "/srv/shop"}, Thinking: &on, OnLost: signalbox.LostRequeue,
		Overlap: signalbox.OverlapCancel, Missed: signalbox.MissedAll, MissedWindow: 2 * time.Hour, OnFull: signalbox.FullRetry, Source: signalbox.ScheduleFromConfig,
	}, {
		Name: "b", Cron: "*/5 * * * *", Prompt: "p", Kind: "claude", TimeoutSeconds: 1800, Project: &signalbox.Project{Name: "shop", Path: "shop"}, Enabled: true,
		Workspace: &signalbox.Workspace{Kind: "worktree", Base: "main"}, Checking: signalbox.Checking{Checks: []signalbox.Check{{Name: "test", Run: "go test ./$PKG", TimeoutSeconds: 600}}, Retries: new(int)},
		Landing: &signalbox.LandWish{Onto: "main", Method: "squash", FastForward: true},
		Overlap: signalbox.OverlapQueue, Missed: signalbox.MissedOnce, MissedWindow: 24 * time.Hour, OnFull: signalbox.FullSkip, Source: signalbox.ScheduleFromConfig,
	}}
	if got := config.Schedules(c.Jobs); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestInvalidJobs(t *testing.T) {
	const good = "name: a, schedule: \"0 1 * * *\", prompt: p"
	for _, x := range []struct{ jobs, want string }{
		{"jobs: 3", "signalbox.yaml:1: jobs: want a list of jobs, got the number 3"},
		{"jobs:\n  - 3", "signalbox.yaml:2: jobs[0]: want a section"},
		{"jobs:\n  - {schedule: \"0 1 * * *\", prompt: p}", "signalbox.yaml:2: jobs[0]: it has no name"},
		{"jobs:\n  - {name: a, prompt: p}", "signalbox.yaml:2: jobs[0]: job a has no schedule"},
		{"jobs:\n  - {name: a, schedule: \"0 1 * * *\"}", "signalbox.yaml:2: jobs[0]: job a has no prompt"},
		{"jobs:\n  - {" + good + "}\n  - {" + good + "}", "signalbox.yaml:3: jobs[1].name: there is already a job named a, at signalbox.yaml:2"},
		{"jobs:\n  - {" + good + ", agent: x, kind: y}", "job a has an agent and a kind"},
		{"jobs:\n  - {" + good + ", agent: commands@local}", "jobs[0].agent: want 1 to 64 letters"},
		{"jobs:\n  - name: a\n    schedule: \"0 0 31 2 *\"\n    prompt: p", "signalbox.yaml:3: jobs[0].schedule: "},
		{"jobs:\n  - name: a\n    schedule: 5\n    prompt: p", "signalbox.yaml:3: jobs[0].schedule: want a cron expression in quotes"},
		{"jobs:\n  - {" + good + ", land: 3}", "jobs[0].land: want a branch, or pr for a pull request, got the number 3"},
		{"jobs:\n  - {" + good + ", land: main, land_method: merge}", `jobs[0].land_method: want rebase or squash, got "merge"`},
		{"jobs:\n  - {" + good + ", land: main, fast_forward: often}", "jobs[0].fast_forward: want true or false"},
		{"jobs:\n  - {" + good + ", checks: [{name: a}]}", "jobs[0].checks: checks: check a has no command"},
		{"jobs:\n  - {" + good + ", check_retries: 11}", "jobs[0].check_retries: want a whole number from 0 to 10"},
		{"jobs:\n  - {" + good + ", timezone: Mars/Olympus}", "jobs[0].timezone: want the IANA name of a time zone, such as Europe/Berlin or UTC, got \"Mars/Olympus\""},
		{"scheduler: {timezone: Mars/Olympus}", "signalbox.yaml:1: scheduler.timezone: want the IANA name"},
		{"jobs:\n  - {" + good + ", timeout: 0}", "jobs[0].timeout: want a duration from 1s"},
		{"jobs:\n  - {" + good + ", timeout: 169h}", "jobs[0].timeout: want a duration from 1s"},
		{"jobs:\n  - {" + good + ", overlap: never}", "jobs[0].overlap: want queue, skip, cancel_previous or allow, got \"never\""},
		{"jobs:\n  - {" + good + ", missed: never}", "jobs[0].missed: want skip, once or all"},
		{"jobs:\n  - {" + good + ", missed_window: 1s}", "jobs[0].missed_window: want a duration from 1m"},
		{"jobs:\n  - {" + good + ", on_full: wait}", "jobs[0].on_full: want skip or retry"},
		{"jobs:\n  - {" + good + ", project: {dir: x}}", "jobs[0].project: want a folder, or a section with name and path"},
		{"jobs:\n  - {" + good + ", thinking: maybe}", "jobs[0].thinking: want true or false"},
		{"jobs:\n  - {" + good + ", cron: x}", "jobs[0].cron: there is no such key"},
		{"jobs:\n  - {" + good + ", prompt: q}", "jobs[0].prompt: it stands twice"},
		{"jobs:\n  - {" + good + ", session_id: ../x}", "jobs[0].session_id: want 1 to 128"},
		{"agent_url: http://localhost:9000", "signalbox.yaml:1: agent_url: a scheduler submits to the director's queue"},
		{"port: 9100", "signalbox.yaml:1: port: it is the port of a standalone scheduler"},
		{"log: {level: info}\nlog_level: debug", "signalbox.yaml:2: log_level: it is the same as log.level, which stands at signalbox.yaml:1"},
	} {
		w := newWorld(t)
		w.file(x.jobs)
		if _, err := w.load(""); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s:\n got %v\nwant %s", x.jobs, err, x.want)
		}
	}
	for _, text := range []string{"port: 70000", "port: \"9100\"", "port: 9100\nscheduler: {addr: \"127.0.0.1:1\"}"} {
		w := newWorld(t)
		w.file(text)
		if _, err := w.asScheduler(); err == nil || !strings.Contains(err.Error(), "port: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// All mistakes of a file are reported at once, including those of jobs.
func TestAllMistakesOfJobsAreReported(t *testing.T) {
	w := newWorld(t)
	w.file("addr: x\njobs:\n  - {name: a, schedule: \"61 * * * *\", prompt: p}\n  - {name: a b, schedule: \"0 1 * * *\", prompt: p}\n")
	_, err := w.load("")
	for _, want := range []string{"signalbox.yaml:1: addr", "signalbox.yaml:3: jobs[0].schedule", "signalbox.yaml:4: jobs[1].name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in %v", want, err)
		}
	}
}

// A program that serves neither tools nor schedules does not fail because of
// mistakes in them.
func TestOnlySchedulersReadJobs(t *testing.T) {
	w := newWorld(t)
	w.file("jobs:\n  - {name: a, schedule: never, prompt: \"${UNSET}\"}\nmcpServers: 3\n")
	if _, err := config.Load(config.Sources{Ask: trusted, Dir: w.dir, NoTools: true, Env: w.lookup}); err != nil {
		t.Errorf("without tools: %v", err)
	}
	_, err := w.asScheduler()
	if err == nil || strings.Contains(err.Error(), "mcpServers") || !strings.Contains(err.Error(), "jobs[0].schedule") {
		t.Errorf("as a scheduler: %v", err)
	}
	if c, err := w.asScheduler(flag("--addr", "scheduler.addr", "127.0.0.1:0")); err == nil || len(c.Jobs) > 0 {
		t.Error("an invalid file was loaded")
	}
}

func names(jobs []config.Job) string {
	var out []string
	for _, j := range jobs {
		out = append(out, j.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
