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

// jobSettings are the keys of one entry of jobs: those of the seed work-queue,
// and ours.
var jobSettings = schema[Job]{
	text("name", wantName, func(j *Job) *string { return &j.Name }, signalbox.ValidName),
	{key: "schedule", tell: setCron},
	text("prompt", "a text", func(j *Job) *string { return &j.Prompt }, notEmpty),
	text("model", "a model's name", func(j *Job) *string { return &j.Model }, notEmpty),
	{key: "timeout", want: "a duration from 1s to 168h, such as 30m or a number of seconds", set: setJobTimeout},
	zone("timezone", func(j *Job) *string { return &j.Timezone }),
	text("description", "a text", func(j *Job) *string { return &j.Description }, notEmpty),
	boolean("enabled", func(j *Job) *bool { return &j.Enabled }),
	text("agent", wantName, func(j *Job) *string { return &j.Agent }, signalbox.ValidName),
	text("kind", wantName, func(j *Job) *string { return &j.Kind }, signalbox.ValidName),
	text("tier", "a tier's name", func(j *Job) *string { return &j.Tier }, notEmpty),
	text("session_id", "1 to 128 letters, digits, dots, underscores or hyphens, the first a letter or digit", func(j *Job) *string { return &j.SessionID }, signalbox.ValidSessionID),
	whole("priority", signalbox.MinPriority, signalbox.MaxPriority, func(j *Job) *int { return &j.Priority }),
	{key: "thinking", want: "true or false", set: setThinking},
	{key: "project", want: "a folder, or a section with name and path", set: setProject},
	oneOf("on_lost", func(j *Job) *signalbox.OnLost { return &j.OnLost }, signalbox.LostFail, signalbox.LostRequeue),
	oneOf("overlap", func(j *Job) *signalbox.Overlap { return &j.Overlap }, signalbox.Overlaps()...),
	oneOf("missed", func(j *Job) *signalbox.Missed { return &j.Missed }, signalbox.MissedPolicies()...),
	duration("missed_window", time.Minute, 366*day, func(j *Job) *time.Duration { return &j.MissedWindow }),
	oneOf("on_full", func(j *Job) *signalbox.OnFull { return &j.OnFull }, signalbox.OnFulls()...),
}

// zone is a key that takes a time zone.
func zone[T any](key string, p func(*T) *string) setting[T] {
	const want = "want the IANA name of a time zone, such as Europe/Berlin or UTC, got "
	return setting[T]{key: key, tell: func(c *T, v value) string {
		name, ok := v.asText()
		if !ok || name == "" {
			return want + v.Shown()
		}
		if _, err := cron.Zone(name); err != nil {
			return want + v.Shown()
		}
		*p(c) = name
		return ""
	}}
}

func setCron(j *Job, v value) string {
	s, ok := v.asText()
	if !ok {
		return "want a cron expression in quotes, such as \"0 1 * * *\" or \"@daily\", got " + v.Shown()
	}
	expr, err := cron.Parse(s)
	if err != nil {
		return err.Error()
	}
	j.Cron = expr.String()
	return ""
}

func setJobTimeout(j *Job, v value) bool {
	d, ok := v.duration(time.Second, 168*time.Hour)
	if ok {
		j.TimeoutSeconds = int((d + time.Second - 1) / time.Second) // tasks count in seconds
	}
	return ok
}

func setThinking(j *Job, v value) bool {
	on, ok := v.Boolean()
	if ok = ok && v.Form == conffile.Boolean; ok {
		j.Thinking = &on
	}
	return ok
}

func setProject(j *Job, v value) bool {
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

// setSchedulerPort takes the port of the seed's scheduler.yaml.
func setSchedulerPort(c *Config, v value) bool {
	ok := v.Form == conffile.Number && validPort(v.Text, 0)
	if ok {
		c.Scheduler.Addr = net.JoinHostPort("127.0.0.1", v.Text)
	}
	return ok
}

// decodeJobs decodes the list of schedules.
func decodeJobs(f *file, pair conffile.Pair, c *Config) {
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
		if walkEntry(f, item, key, jobSettings, &job) {
			f.checkJob(key, job, c)
		}
	}
}

func (f *file) checkJob(key string, job Job, c *Config) {
	for _, before := range c.Jobs {
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
		c.Jobs = append(c.Jobs, job)
	}
}

// Schedules are the jobs without their places in the file.
func Schedules(jobs []Job) []signalbox.Schedule {
	out := make([]signalbox.Schedule, len(jobs))
	for i := range jobs {
		out[i] = jobs[i].Schedule
	}
	return out
}

// agentKinds are the kinds of agents that a process of ours can be.
var agentKinds = []string{"claude", "codex", "opencode", "command", "llm", "demo"}

// kindSettings are the keys of agent that may be another for each kind: what
// tells one agent from all others is not among them.
var kindSettings schema[Config]

func init() { // settings themselves lead here
	for _, x := range settings {
		key, of := strings.CutPrefix(x.key, "agent.")
		if of && !slices.Contains([]string{"name", "kind", "addr", "token", "pull", "directors"}, key) {
			x.key = key
			kindSettings = append(kindSettings, x)
		}
	}
}

// decodeKinds decodes the options of each kind. They are kept as they stand, and
// applied by For.
func decodeKinds(f *file, pair conffile.Pair, c *Config) {
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
			walk(&f, one.Value, "", kindSettings, target)
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

// For is the configuration of an agent of that kind: agent, then what agents has
// for the kind, then the environment and the flags, as for all that is in a file.
func (c *Config) For(kind string) Config {
	own := *c
	own.Agent.Kind = kind
	apply := c.kinds[kind]
	if apply == nil {
		return own
	}
	own.origins = maps.Clone(c.origins)
	apply(&own) // its problems are those that Load found: none
	loadEnv(&own, c.sources)
	loadFlags(&own, c.sources)
	own.Agent.Kind = kind
	return own
}
