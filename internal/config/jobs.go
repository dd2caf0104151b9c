package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/internal/cron"
)

// jobSettings are the keys of one entry of jobs: those of the seed work-queue
// and additional ones.
func jobSettings(j *Job) schema {
	return schema{
		text("name", wantName, &j.Name, signalbox.ValidName),
		{key: "schedule", tell: j.setCron},
		text("prompt", "a text", &j.Prompt, notEmpty),
		text("model", "a model's name", &j.Model, notEmpty),
		{key: "timeout", want: "a duration from 1s to 168h, such as 30m or a number of seconds", set: j.setTimeout},
		zone("timezone", &j.Timezone),
		text("description", "a text", &j.Description, notEmpty),
		boolean("enabled", &j.Enabled),
		text("agent", wantName, &j.Agent, signalbox.ValidName),
		text("kind", wantName, &j.Kind, signalbox.ValidName),
		text("tier", "a tier's name", &j.Tier, notEmpty),
		text("session_id", "1 to 128 letters, digits, dots, underscores or hyphens, the first a letter or digit", &j.SessionID, signalbox.ValidSessionID),
		whole("priority", signalbox.MinPriority, signalbox.MaxPriority, &j.Priority),
		{key: "thinking", want: "true or false", set: j.setThinking},
		{key: "project", want: "a folder, or a section with name and path", set: j.setProject},
		j.place("workspace", "folder, worktree or clone", func(w *signalbox.Workspace) *string { return &w.Kind }),
		j.place("repo", "a folder at the agent, or "+wantRemote, func(w *signalbox.Workspace) *string { return &w.Repo }),
		j.place("base", "a branch, tag or commit", func(w *signalbox.Workspace) *string { return &w.Base }),
		{key: "checks", nested: decodeChecks(&j.Checking.Checks)},
		typed("check_retries", conffile.WantWhole(0, signalbox.MaxCheckRetries), &j.Checking.Retries, func(v value) (*int, bool) {
			n, ok := v.Whole(0, signalbox.MaxCheckRetries)
			return &n, ok
		}),
		j.lands("land", "a branch, or pr for a pull request", func(w *signalbox.LandWish, v value) bool {
			w.Onto = v.Text
			return v.Form == conffile.Text && v.Text != ""
		}),
		j.lands("land_method", conffile.WantOneOf("rebase", "squash"), func(w *signalbox.LandWish, v value) bool {
			w.Method = v.Text
			return v.Form == conffile.Text && (v.Text == "rebase" || v.Text == "squash")
		}),
		j.lands("fast_forward", "true or false", func(w *signalbox.LandWish, v value) (ok bool) { w.FastForward, ok = v.Boolean(); return ok }),
		oneOf("on_lost", &j.OnLost, signalbox.LostFail, signalbox.LostRequeue),
		oneOf("overlap", &j.Overlap, signalbox.Overlaps()...),
		oneOf("missed", &j.Missed, signalbox.MissedPolicies()...),
		duration("missed_window", time.Minute, 366*day, &j.MissedWindow),
		oneOf("on_full", &j.OnFull, signalbox.OnFulls()...),
	}
}

// zone is a key with a time zone.
func zone(key string, to *string) setting {
	const want = "want the IANA name of a time zone, such as Europe/Berlin or UTC, got "
	return setting{key: key, tell: func(v value) string {
		if _, err := cron.Zone(v.Text); err != nil || v.Form != conffile.Text || v.Text == "" {
			return want + v.Shown()
		}
		*to = v.Text
		return ""
	}}
}

func (j *Job) setCron(v value) string {
	if v.Form != conffile.Text {
		return "want a cron expression in quotes, such as \"0 1 * * *\" or \"@daily\", got " + v.Shown()
	}
	expr, err := cron.Parse(v.Text)
	if err != nil {
		return err.Error()
	}
	j.Cron = expr.String()
	return ""
}

func (j *Job) setTimeout(v value) bool {
	d, ok := v.duration(time.Second, 168*time.Hour)
	if ok {
		j.TimeoutSeconds = int((d + time.Second - 1) / time.Second) // tasks count in seconds
	}
	return ok
}

func (j *Job) setThinking(v value) bool {
	on, ok := v.Boolean()
	if ok = ok && v.Form == conffile.Boolean; ok {
		j.Thinking = &on
	}
	return ok
}

func (j *Job) setProject(v value) bool {
	if v.Form == conffile.Text && v.Text != "" {
		j.Project = &signalbox.Project{Path: v.Text}
		return true
	}
	if v.Form != conffile.Section || len(v.table) == 0 {
		return false
	}
	for key, text := range v.table {
		if key != "name" && key != "path" || text == "" {
			return false
		}
	}
	j.Project = &signalbox.Project{Name: v.table["name"], Path: v.table["path"]}
	return true
}

// place is a key about where its runs work. The schedule's check validates the
// combination.
func (j *Job) place(key, want string, field func(*signalbox.Workspace) *string) setting {
	return setting{key: key, want: want, set: func(v value) bool {
		if v.Form != conffile.Text || v.Text == "" {
			return false
		}
		if j.Workspace == nil {
			j.Workspace = &signalbox.Workspace{}
		}
		*field(j.Workspace) = v.Text
		return true
	}}
}

// lands is a key about how the work of its runs lands.
func (j *Job) lands(key, want string, set func(*signalbox.LandWish, value) bool) setting {
	return setting{key: key, want: want, set: func(v value) bool {
		if j.Landing == nil {
			j.Landing = &signalbox.LandWish{}
		}
		return set(j.Landing, v)
	}}
}

// setSchedulerPort sets the port from the seed's scheduler.yaml.
func (c *Config) setSchedulerPort(v value) bool {
	ok := v.Form == conffile.Number && validPort(v.Text, 0)
	if ok {
		c.Scheduler.Addr = net.JoinHostPort("127.0.0.1", v.Text)
	}
	return ok
}

// decodeJobs decodes the list of schedules.
func decodeJobs(f *file, _ string, pair conffile.Pair) {
	n := pair.Value
	switch {
	case n.Form == conffile.Nothing || f.noJobs:
		return
	case n.Form != conffile.List:
		f.add(n.Line, "jobs", "want a list of jobs, got "+f.value(n).Shown())
		return
	}
	f.seen["jobs"] = f.where(pair.Line)
	for i, item := range n.Items {
		job := Job{Line: item.Line, Schedule: signalbox.Schedule{
			Enabled: true, Source: signalbox.ScheduleFromConfig,
			Overlap: signalbox.OverlapQueue, Missed: signalbox.MissedOnce, MissedWindow: signalbox.DefaultMissedWindow, OnFull: signalbox.FullSkip,
		}}
		key := fmt.Sprintf("jobs[%d]", i)
		if f.entry(item, key, jobSettings(&job)) {
			f.checkJob(key, job)
		}
	}
}

func (f *file) checkJob(key string, job Job) {
	for _, before := range f.c.Jobs {
		if before.Name == job.Name {
			f.add(job.Line, key+".name", fmt.Sprintf("there is already a job named %s, at %s: give this one another name", job.Name, f.where(before.Line)))
			return
		}
	}
	_, executor := signalbox.ExecutorKind(job.Agent)
	switch {
	case job.Name == "":
		f.add(job.Line, key, "it has no name")
	case job.Cron == "":
		f.add(job.Line, key, fmt.Sprintf("job %s has no schedule, such as \"0 1 * * *\"", job.Name))
	case job.Prompt == "":
		f.add(job.Line, key, fmt.Sprintf("job %s has no prompt", job.Name))
	case job.Agent != "" && job.Kind != "":
		f.add(job.Line, key, fmt.Sprintf("job %s has an agent and a kind, which exclude each other: an agent has one kind", job.Name))
	case executor:
		f.add(job.Line, key+".agent", fmt.Sprintf("%s is the director's own executor, which takes tool calls and no prompts", job.Agent))
	default:
		f.c.Jobs = append(f.c.Jobs, job)
	}
}

// Schedules returns the jobs without their places in the file.
func Schedules(jobs []Job) []signalbox.Schedule {
	out := make([]signalbox.Schedule, len(jobs))
	for i := range jobs {
		out[i] = jobs[i].Schedule
	}
	return out
}

// agentKinds are the kinds of Signalbox's own agents.
var agentKinds = []string{"claude", "codex", "opencode", "command", "llm", "demo"}

// kindSettings are the keys of agent that may differ by kind: keys that
// identify a single agent are not among them.
func kindSettings(c *Config) (out schema) {
	for _, x := range settings(c) {
		key, of := strings.CutPrefix(x.key, "agent.")
		if of && !slices.Contains([]string{"name", "kind", "addr", "token", "pull", "directors"}, key) {
			x.key = key
			out = append(out, x)
		}
	}
	return out
}

// decodeKinds decodes the options of each kind. They are stored unchanged, and
// For applies them.
func decodeKinds(f *file, pair conffile.Pair) {
	c := f.c
	for one := range f.once(pair.Value, "agents.") {
		key := "agents." + one.Key
		if !slices.Contains(agentKinds, one.Key) {
			f.add(one.Line, key, "there is no such kind of agent"+conffile.Suggest(one.Key, agentKinds))
			continue
		}
		c.Kinds = append(c.Kinds, one.Key)
		if one.Value.Form == conffile.Nothing {
			continue
		}
		options := *f
		apply := func(target *Config) Problems {
			f := options
			f.found, f.seen = nil, map[string]string{}
			f.walk(one.Value, "", kindSettings(target))
			for key, at := range f.seen {
				target.origins["agent."+key] = at
			}
			return f.found
		}
		scratch := Default("")
		f.addBelow(key, apply(&scratch))
		if c.kinds == nil {
			c.kinds = map[string]func(*Config) Problems{}
		}
		c.kinds[one.Key] = apply
	}
}

// For is the configuration of an agent of that kind: agent, then the options of
// the kind in agents, then the environment and the flags, as for the rest of a
// file.
func (c *Config) For(kind string) Config {
	own := *c
	own.Agent.Kind = kind
	apply := c.kinds[kind]
	if apply == nil {
		return own
	}
	own.origins = maps.Clone(c.origins)
	apply(&own) // Load has already reported its problems: there are none
	loadEnv(&own, c.sources)
	loadFlags(&own, c.sources)
	own.Agent.Kind = kind
	return own
}
