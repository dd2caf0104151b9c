package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// scheduleFlags are the flags of a schedule.
type scheduleFlags struct {
	api.NewSchedule
	project         string
	commands        checkFlags
	timeout, window optionalDuration
	thinking        bool
}

// optionalDuration is a duration that may be "none".
type optionalDuration struct{ durationFlag }

func (s *optionalDuration) Set(text string) error {
	if text == "none" || text == "0" {
		s.durationFlag = 0
		return nil
	}
	return s.durationFlag.Set(text)
}

func (s *scheduleFlags) register(f *pflag.FlagSet) {
	f.StringVar(&s.CronExpression, "cron", "", "cron `expression` in quotes: five fields such as \"0 1 * * *\", or @daily and the like")
	f.StringVar(&s.Timezone, "timezone", "", "IANA `name` of its time zone, such as Europe/Berlin (default: the director's scheduler.timezone)")
	f.StringVar(&s.Message, "prompt", "", "`prompt` of its tasks; - reads it from standard input")
	f.StringVar(&s.Description, "description", "", "`text` for people")
	f.StringVar(&s.AgentName, "agent", "", "only this `agent` may take its tasks")
	f.StringVar(&s.Kind, "kind", "", "only agents of this `kind` may take its tasks; not with --agent")
	f.StringVar(&s.Model, "model", "", "`model` to run them with")
	f.StringVar(&s.Tier, "tier", "", "`tier` of model to run them with")
	f.Var(&s.timeout, "timeout", "limit of a run, such as 30m, or none (default: the agent's)")
	f.StringVar(&s.SessionID, "session", "", "`id` of the conversation to continue")
	f.StringVar(&s.project, "project", "", "`folder` on the agent to run in, absolute or relative to its work folder")
	registerPlace(f, &s.Workspace, &s.Repo, &s.Base)
	s.commands.register(f)
	registerLand(f, &s.Land, &s.LandMethod, &s.FastForward)
	f.BoolVar(&s.thinking, "thinking", false, "let the model think, or not with --thinking=false (default: the agent's)")
	f.IntVar(&s.Priority, "priority", 0, "`number` from -10 to 10")
	f.Var(newChoice(&s.OnLost, "", "fail", "requeue"), "on-lost", "what happens to a task when its agent is lost: fail or requeue (default: queue.on_lost of the director, fail)")
	f.Var(newChoice(&s.Overlap, "", "queue", "skip", "cancel_previous", "allow"), "overlap", "what to do if the previous task has not ended: queue (wait for it, default), skip, cancel_previous or allow")
	f.Var(newChoice(&s.Missed, "", "skip", "once", "all"), "missed", "what to do about times that passed while nothing could fire: once (fire for the newest, default), skip or all")
	f.Var(&s.window, "missed-window", "how old missed times may be (default 24h)")
	f.Var(newChoice(&s.OnFull, "", "skip", "retry"), "on-full", "what to do if the queue is full: skip (default), or retry until the next time is due")
}

// apply copies the given flags into a schedule.
func (s *scheduleFlags) apply(a *app, f *pflag.FlagSet, to *api.NewSchedule) error {
	for name, set := range map[string]func(){
		"cron": func() { to.CronExpression = s.CronExpression }, "timezone": func() { to.Timezone = s.Timezone }, "description": func() { to.Description = s.Description },
		"agent": func() { to.AgentName = s.AgentName }, "kind": func() { to.Kind = s.Kind }, "model": func() { to.Model = s.Model }, "tier": func() { to.Tier = s.Tier },
		"timeout": func() { to.TimeoutSeconds = s.timeout.seconds() }, "session": func() { to.SessionID = s.SessionID },
		"thinking": func() { to.Thinking = &s.thinking }, "priority": func() { to.Priority = s.Priority }, "on-lost": func() { to.OnLost = s.OnLost },
		"overlap": func() { to.Overlap = s.Overlap }, "missed": func() { to.Missed = s.Missed }, "on-full": func() { to.OnFull = s.OnFull },
		"workspace": func() { to.Workspace = s.Workspace }, "repo": func() { to.Repo = s.Repo }, "base": func() { to.Base = s.Base },
		"land-method": func() { to.LandMethod = s.LandMethod }, "fast-forward": func() { to.FastForward = s.FastForward },
		"missed-window": func() { to.MissedWindowSeconds = int64(s.window.seconds()) }, "project": func() { to.Project = projectAt(s.project) },
	} {
		if f.Changed(name) {
			set()
		}
	}
	if f.Changed("land") {
		if to.Land = s.Land; s.Land == "" { // the work does not land
			to.LandMethod, to.FastForward = "", false
		}
	}
	if to.AgentName != "" && to.Kind != "" {
		return usage("--agent and --kind exclude each other: an agent has a kind").withHint("clear the other one with --agent \"\" or --kind \"\"")
	}
	err := cmp.Or(checkPriority(to.Priority), s.commands.fill(f, &to.Checks, &to.CheckRetries))
	if err == nil && f.Changed("prompt") {
		to.Message, err = a.prompt(s.Message)
	}
	return err
}

// registerPlace registers the flags for where a run works.
func registerPlace(f *pflag.FlagSet, kind, repo, base *string) {
	f.Var(newChoice(kind, "", signalbox.WorkspaceFolder, signalbox.WorkspaceWorktree, signalbox.WorkspaceClone), "workspace", "where the run works: folder, worktree (a git worktree of its own) or clone (of a remote repository) (default: as the agent is configured)")
	f.StringVar(repo, "repo", "", "for a worktree a `folder` on the agent, for a clone the address of a repository that the agent allows")
	f.StringVar(base, "base", "", "`branch`, tag or commit to make the worktree from")
}

// registerLand registers the flags for where the work of a task lands.
func registerLand(f *pflag.FlagSet, onto, method *string, fastForward *bool) {
	f.StringVar(onto, "land", "", "land the task's work on this `branch` when it has completed, or pr for a pull request")
	f.Var(newChoice(method, "", "rebase", "squash"), "land-method", "how the work lands: rebase or squash (default: as the agent is configured)")
	f.BoolVar(fastForward, "fast-forward", false, "also fast-forward a clean checkout of the branch")
}

// checkFlags are the flags for checks of a task.
type checkFlags struct {
	pairs   []string // NAME=COMMAND
	retries int
}

func (c *checkFlags) register(f *pflag.FlagSet) {
	f.StringArrayVar(&c.pairs, "check", nil, "check the task's work with `NAME=COMMAND`: a shell command that the agent runs after a successful run; repeatable (default: the checks of the agent or the repository)")
	f.IntVar(&c.retries, "check-retries", 0, "how many `times` the conversation continues with the output of failed checks, 0 to 10 (default: the agent's, 2)")
}

// fill fills in the given checks. A single --check "" means no checks.
func (c *checkFlags) fill(f *pflag.FlagSet, list *[]api.TaskCheck, retries **int) error {
	var all signalbox.Checking
	if f.Changed("check") {
		*list = nil
	}
	if f.Changed("check-retries") {
		all.Retries, *retries = &c.retries, &c.retries
	}
	for _, pair := range c.pairs {
		if len(c.pairs) == 1 && pair == "" {
			break
		}
		name, command, ok := strings.Cut(pair, "=")
		if !ok {
			return usage("--check %s: want NAME=COMMAND, such as test='go test ./...'", clean(pair))
		}
		all.Checks = append(all.Checks, signalbox.Check{Name: name, Run: command})
		*list = append(*list, api.TaskCheck{Name: name, Run: command})
	}
	if err := all.Validate(); err != nil {
		return usage("--check, --check-retries: %s", err)
	}
	return nil
}

func projectAt(path string) *api.Project {
	if path == "" {
		return nil
	}
	return &api.Project{Path: path}
}

func (a *app) addScheduleCmd() *cobra.Command {
	var s scheduleFlags
	var disabled bool
	var req api.NewSchedule
	cmd := &cobra.Command{
		Use:   "add NAME --cron EXPRESSION --prompt TEXT",
		Short: "Make a schedule",
		Example: "  signalbox schedules add nightly --cron \"0 1 * * *\" --timezone Europe/Berlin --prompt \"tidy up\" --agent coder\n" +
			"  signalbox schedules add report --cron @weekly --prompt - < report.md",
		PreRunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"cron", "prompt"} {
				if !cmd.Flags().Changed(name) {
					return usage("--%s is missing: a schedule needs an expression and a prompt", name).withHint("%s --help", cmd.CommandPath())
				}
			}
			enabled := !disabled
			req = api.NewSchedule{Name: args[0], Enabled: &enabled}
			return s.apply(a, cmd.Flags(), &req)
		},
	}
	s.register(cmd.Flags())
	cmd.Flags().BoolVar(&disabled, "disabled", false, "make the schedule, but do not let it fire yet")
	return action(a, cmd, "", func(ctx context.Context, c *client.Client, args []string) (api.Schedule, error) {
		got, err := c.CreateSchedule(ctx, req)
		if client.IsUnreachable(err) { // a retry would fail if the name is taken now
			err = toFault(err).withHint("signalbox schedules show %s shows whether it was made", args[0])
		}
		return got, err
	}, a.scheduled("Added"))
}

// scheduled returns a function that prints what was done to a schedule, and when it
// fires next.
func (a *app) scheduled(what string) func(api.Schedule) {
	return func(s api.Schedule) {
		a.say("%s: %s (%s, %s; next %s)", what, clean(s.Name), clean(s.Words), clean(s.Timezone), a.nextText(&s))
	}
}

func (a *app) editScheduleCmd() *cobra.Command {
	var s scheduleFlags
	var name string
	cmd := &cobra.Command{
		Use:     "edit NAME",
		Short:   "Change a schedule: flags that are not given leave it as it is",
		Example: "  signalbox schedules edit nightly --cron \"0 3 * * *\" --agent \"\"",
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			given := false
			cmd.Flags().Visit(func(f *pflag.Flag) { given = given || cmd.InheritedFlags().Lookup(f.Name) == nil })
			if !given {
				return usage("nothing to change: give a flag").withHint("%s --help", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: a.completeArg(scheduleNames),
	}
	f := cmd.Flags()
	s.register(f)
	f.StringVar(&name, "name", "", "new `name`")
	return action(a, cmd, "", func(ctx context.Context, c *client.Client, args []string) (api.Schedule, error) {
		old, err := c.Schedule(ctx, args[0])
		if err != nil {
			return old, err
		}
		req := asNew(&old)
		if f.Changed("name") {
			req.Name = name
		}
		if err := s.apply(a, f, &req); err != nil {
			return old, err
		}
		return c.PutSchedule(ctx, old.ID, req)
	}, a.scheduled("Changed"))
}

// asNew is the request that would create a schedule again.
func asNew(s *api.Schedule) api.NewSchedule {
	return api.NewSchedule{
		Name: s.Name, Description: s.Description, CronExpression: s.CronExpression, Timezone: s.Timezone, Enabled: &s.Enabled,
		Message: s.Message, AgentName: s.AgentName, Kind: s.Kind, Model: s.Model, Tier: s.Tier, TimeoutSeconds: s.TimeoutSeconds,
		SessionID: s.SessionID, Project: s.Project, Thinking: s.Thinking, Workspace: s.Workspace, Repo: s.Repo, Base: s.Base, Delivery: s.Delivery, Priority: s.Priority, OnLost: s.OnLost,
		Overlap: s.Overlap, Missed: s.Missed, MissedWindowSeconds: s.MissedWindowSeconds, OnFull: s.OnFull,
	}
}

func (a *app) removeScheduleCmd() *cobra.Command {
	return removal(a, &cobra.Command{Use: "remove NAME", Short: "Remove a schedule; its tasks stay", ValidArgsFunction: a.completeArg(scheduleNames)},
		"Remove the schedule %s (its tasks stay)?", "removed", (*client.Client).RemoveSchedule)
}

func (a *app) enableScheduleCmd() *cobra.Command {
	return action(a, &cobra.Command{Use: "enable NAME", Short: "Enable a schedule: let it fire from now on", ValidArgsFunction: a.completeArg(scheduleNames)}, "",
		oneArg((*client.Client).EnableSchedule), a.scheduled("Enabled"))
}

func (a *app) disableScheduleCmd() *cobra.Command {
	return action(a, &cobra.Command{Use: "disable NAME", Short: "Disable a schedule: let it not fire any more", ValidArgsFunction: a.completeArg(scheduleNames)}, "",
		oneArg((*client.Client).DisableSchedule), func(got api.Schedule) { a.say("Disabled: %s", clean(got.Name)) })
}

func scheduleNames(ctx context.Context, c *client.Client) []string {
	page, _ := c.Schedules(ctx, client.SchedulesOptions{Limit: 1000})
	return completions(page.Schedules, func(s *api.Schedule) (string, string) { return s.Name, s.Words })
}

func (a *app) triggerScheduleCmd() *cobra.Command {
	var w waitFlags
	cmd := &cobra.Command{
		Use:   "trigger NAME",
		Short: "Fire a schedule now, in addition to its times",
		Long: "Fire a schedule now, in addition to its times. If its previous task has not ended and the schedule waits for it\n" +
			"(--overlap queue), the firing is held until then.",
		PreRunE:           func(*cobra.Command, []string) error { return w.check() },
		RunE:              a.askRetrying(func(ctx context.Context, c *client.Client, args []string) error { return a.trigger(ctx, c, args[0], w) }),
		ValidArgsFunction: a.completeArg(scheduleNames),
	}
	w.register(cmd)
	return cmd
}

func (a *app) trigger(ctx context.Context, c *client.Client, name string, w waitFlags) error {
	got, err := c.TriggerSchedule(ctx, name)
	if client.IsUnreachable(err) {
		return toFault(err).withHint("signalbox schedules executions %s shows whether it fired", name)
	}
	if err != nil {
		return err
	}
	line := "Queued: " + clean(got.QueueID)
	if got.QueueID == "" {
		line = fmt.Sprintf("Held: %s (until the previous task has ended)", clean(name))
	}
	if !w.on {
		return a.print(got, func() { a.say("%s", line) })
	}
	a.note("%s", line)
	wait, cancel := w.bound(ctx)
	defer cancel()
	id, err := a.heldTask(ctx, wait, c, name, got)
	if err != nil {
		return err
	}
	return a.wait(ctx, wait, c, api.SubmitResponse{QueueID: id, State: "pending"})
}

// heldTask waits until a held firing has submitted its task.
func (a *app) heldTask(ctx, wait context.Context, c *client.Client, name string, got api.Triggered) (string, error) {
	for got.QueueID == "" {
		select {
		case <-a.io.After(time.Second):
		case <-wait.Done():
			back := "signalbox schedules executions " + name
			if ctx.Err() != nil {
				return "", failure(exitDetached, "interrupted", "interrupted; the firing is held").withHint("%s shows it", back)
			}
			return "", failure(exitWaitOver, "wait_over", "the wait is over; the firing is held").withHint("%s shows it", back)
		}
		list, err := c.Executions(wait, name, 100)
		if err != nil && wait.Err() == nil {
			return "", err
		}
		for _, e := range list.Executions {
			switch {
			case e.ID != got.Execution.ID:
			case e.QueueID != "":
				got.QueueID = e.QueueID
			case e.Status != "held" && e.Status != "firing":
				return "", failure(exitConflict, "conflict", "%s made no task: %s", name, executionNote(&e))
			}
		}
	}
	return got.QueueID, nil
}
