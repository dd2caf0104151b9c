package cli

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// scheduleFlags are what can be said of a schedule.
type scheduleFlags struct {
	cron, timezone, description      string
	prompt, agent, kind, model, tier string
	session, project                 string
	overlap, missed, onFull, onLost  string
	timeout, window                  openSpan
	thinking                         bool
	priority                         int
}

// openSpan is a duration that may also be none.
type openSpan span

func (s *openSpan) Type() string   { return "duration" }
func (s *openSpan) String() string { return (*span)(s).String() }
func (s *openSpan) Set(text string) error {
	if text == "none" || text == "0" {
		*s = 0
		return nil
	}
	return (*span)(s).Set(text)
}

// seconds rounds up to whole seconds.
func (s openSpan) seconds() int { return int(math.Ceil(time.Duration(s).Seconds())) }

func (s *scheduleFlags) register(f *pflag.FlagSet) {
	f.StringVar(&s.cron, "cron", "", "cron `expression` in quotes: five fields such as \"0 1 * * *\", or @daily and the like")
	f.StringVar(&s.timezone, "timezone", "", "IANA `name` of its time zone, such as Europe/Berlin (default: the director's scheduler.timezone)")
	f.StringVar(&s.prompt, "prompt", "", "`text` of its tasks; - reads it from standard input")
	f.StringVar(&s.description, "description", "", "`text` for people")
	f.StringVar(&s.agent, "agent", "", "only this `agent` may take its tasks")
	f.StringVar(&s.kind, "kind", "", "only agents of this `kind` may take its tasks; not with --agent")
	f.StringVar(&s.model, "model", "", "`model` to run them with")
	f.StringVar(&s.tier, "tier", "", "`tier` of model to run them with")
	f.Var(&s.timeout, "timeout", "limit of a run, such as 30m, or none (default: the agent's)")
	f.StringVar(&s.session, "session", "", "`id` of the conversation to go on with")
	f.StringVar(&s.project, "project", "", "`folder` on the agent to run in, absolute or relative to its work folder")
	f.BoolVar(&s.thinking, "thinking", false, "let the model think, or not with --thinking=false (default: the agent's)")
	f.IntVar(&s.priority, "priority", 0, "`number` from -10 to 10")
	f.Var(newChoice(&s.onLost, "", "fail", "requeue"), "on-lost", "what becomes of a task when its agent is lost: fail or requeue (default: queue.on_lost of the director, fail)")
	f.Var(newChoice(&s.overlap, "", "queue", "skip", "cancel_previous", "allow"), "overlap", "when the task before has not ended: queue (wait for it, default), skip, cancel_previous or allow")
	f.Var(newChoice(&s.missed, "", "skip", "once", "all"), "missed", "instants that passed while nothing could fire: once (the newest, default), skip or all")
	f.Var(&s.window, "missed-window", "how long ago they may have been (default 24h)")
	f.Var(newChoice(&s.onFull, "", "skip", "retry"), "on-full", "when the queue is full: skip (default), or retry until the next instant")
}

// apply puts what was given into a schedule.
func (s *scheduleFlags) apply(a *app, f *pflag.FlagSet, to *api.NewSchedule) error {
	for name, set := range map[string]func(){
		"cron": func() { to.CronExpression = s.cron }, "timezone": func() { to.Timezone = s.timezone }, "description": func() { to.Description = s.description },
		"agent": func() { to.AgentName = s.agent }, "kind": func() { to.Kind = s.kind }, "model": func() { to.Model = s.model }, "tier": func() { to.Tier = s.tier },
		"timeout": func() { to.TimeoutSeconds = s.timeout.seconds() }, "session": func() { to.SessionID = s.session },
		"thinking": func() { to.Thinking = &s.thinking }, "priority": func() { to.Priority = s.priority }, "on-lost": func() { to.OnLost = s.onLost },
		"overlap": func() { to.Overlap = s.overlap }, "missed": func() { to.Missed = s.missed }, "on-full": func() { to.OnFull = s.onFull },
		"missed-window": func() { to.MissedWindowSeconds = int64(s.window.seconds()) }, "project": func() { to.Project = projectAt(s.project) },
	} {
		if f.Changed(name) {
			set()
		}
	}
	if to.AgentName != "" && to.Kind != "" {
		return usage("--agent and --kind do not go together: an agent has its kind").hinted("take the other one away with --agent \"\" or --kind \"\"")
	}
	if to.Priority < -10 || to.Priority > 10 {
		return usage("--priority: want a number from -10 to 10, got %d", to.Priority)
	}
	if !f.Changed("prompt") {
		return nil
	}
	var err error
	to.Message, err = a.prompt(s.prompt)
	return err
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
	cmd := &cobra.Command{
		Use:   "add NAME --cron EXPRESSION --prompt TEXT",
		Short: "Make a schedule",
		Example: "  signalbox schedules add nightly --cron \"0 1 * * *\" --timezone Europe/Berlin --prompt \"tidy up\" --agent coder\n" +
			"  signalbox schedules add report --cron @weekly --prompt - < report.md",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"cron", "prompt"} {
				if !cmd.Flags().Changed(name) {
					return usage("--%s is missing: a schedule needs to know when, and what", name).hinted("%s --help", cmd.CommandPath())
				}
			}
			enabled := !disabled
			req := api.NewSchedule{Name: args[0], Enabled: &enabled}
			if err := s.apply(a, cmd.Flags(), &req); err != nil {
				return err
			}
			return a.with(cmd.Context(), func(c *client.Client) error {
				got, err := c.CreateSchedule(cmd.Context(), req)
				if client.IsUnreachable(err) { // a second try would find the name taken
					return toFault(err).hinted("signalbox schedules show %s says whether it was made", args[0])
				}
				return a.scheduled("Added", got, err)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	s.register(cmd.Flags())
	cmd.Flags().BoolVar(&disabled, "disabled", false, "make it, but let it not fire yet")
	return cmd
}

// scheduled says what was done to a schedule, and when it fires next.
func (a *app) scheduled(what string, s api.Schedule, err error) error {
	if err != nil {
		return err
	}
	return a.print(s, func() error {
		return a.say("%s: %s (%s, %s; next %s)", what, clean(s.Name), clean(s.Words), clean(s.Timezone), a.nextText(&s))
	})
}

func (a *app) editScheduleCmd() *cobra.Command {
	var s scheduleFlags
	var name string
	cmd := &cobra.Command{
		Use:     "edit NAME",
		Short:   "Change a schedule: what is not given stays as it is",
		Example: "  signalbox schedules edit nightly --cron \"0 3 * * *\" --agent \"\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			given := false
			cmd.Flags().Visit(func(f *pflag.Flag) { given = given || cmd.InheritedFlags().Lookup(f.Name) == nil })
			if !given {
				return usage("nothing to change was given").hinted("%s --help", cmd.CommandPath())
			}
			return a.with(cmd.Context(), func(c *client.Client) error {
				old, err := c.Schedule(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				req := asNew(&old)
				if cmd.Flags().Changed("name") {
					req.Name = name
				}
				if err := s.apply(a, cmd.Flags(), &req); err != nil {
					return err
				}
				got, err := c.PutSchedule(cmd.Context(), old.ID, req)
				return a.scheduled("Changed", got, err)
			})
		},
		ValidArgsFunction: a.offer(scheduleNames),
	}
	s.register(cmd.Flags())
	cmd.Flags().StringVar(&name, "name", "", "its new `name`")
	return cmd
}

// asNew is a schedule as it would be made anew.
func asNew(s *api.Schedule) api.NewSchedule {
	return api.NewSchedule{
		Name: s.Name, Description: s.Description, CronExpression: s.CronExpression, Timezone: s.Timezone, Enabled: &s.Enabled,
		Message: s.Message, AgentName: s.AgentName, Kind: s.Kind, Model: s.Model, Tier: s.Tier, TimeoutSeconds: s.TimeoutSeconds,
		SessionID: s.SessionID, Project: s.Project, Thinking: s.Thinking, Priority: s.Priority, OnLost: s.OnLost,
		Overlap: s.Overlap, Missed: s.Missed, MissedWindowSeconds: s.MissedWindowSeconds, OnFull: s.OnFull,
	}
}

func (a *app) removeScheduleCmd() *cobra.Command {
	return a.removing(&cobra.Command{
		Use:               "remove NAME",
		Short:             "Forget a schedule; its tasks stay",
		ValidArgsFunction: a.offer(scheduleNames),
	}, "The schedule %s is forgotten; its tasks stay. Remove it?", func(ctx context.Context, c *client.Client, name string) error {
		return a.done("removed", name, c.RemoveSchedule(ctx, name))
	})
}

func (a *app) switchScheduleCmd(name, short string, f func(*client.Client, context.Context, string) (api.Schedule, error)) *cobra.Command {
	return &cobra.Command{
		Use:   name + " NAME",
		Short: short,
		RunE: a.ask(func(ctx context.Context, c *client.Client, args []string) error {
			got, err := f(c, ctx, args[0])
			if err != nil || name == "enable" {
				return a.scheduled("Enabled", got, err)
			}
			return a.print(got, func() error { return a.say("Disabled: %s", clean(got.Name)) })
		}),
		ValidArgsFunction: a.offer(scheduleNames),
	}
}

func scheduleNames(ctx context.Context, c *client.Client) []string {
	page, _ := c.Schedules(ctx, client.SchedulesOptions{Limit: 1000})
	var out []string
	for i := range page.Schedules {
		out = append(out, described(page.Schedules[i].Name, page.Schedules[i].Words))
	}
	return out
}

func (a *app) triggerScheduleCmd() *cobra.Command {
	var w waitFlags
	cmd := &cobra.Command{
		Use:   "trigger NAME",
		Short: "Fire a schedule now, beside its instants",
		Long: "Fire a schedule now, beside its instants. Where the task before has not ended and it waits for it, the firing\n" +
			"is held until then.",
		RunE: run(func(ctx context.Context, args []string) error {
			if w.limit != 0 && !w.on {
				return usage("--wait-timeout bounds a wait: it goes with --wait")
			}
			c, err := a.following()
			if err != nil {
				return err
			}
			return a.trigger(ctx, c, args[0], &w)
		}),
		ValidArgsFunction: a.offer(scheduleNames),
	}
	w.register(cmd)
	return cmd
}

func (a *app) trigger(ctx context.Context, c *client.Client, name string, w *waitFlags) error {
	got, err := c.TriggerSchedule(ctx, name)
	if client.IsUnreachable(err) {
		return toFault(err).hinted("signalbox schedules executions %s says whether it fired", name)
	}
	if err != nil {
		return err
	}
	line := "Queued: " + clean(got.QueueID)
	if got.QueueID == "" {
		line = fmt.Sprintf("Held: %s (until the task before has ended)", clean(name))
	}
	if !w.on {
		return a.print(got, func() error { return a.say("%s", line) })
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

// heldTask waits until a firing that is held has its task.
func (a *app) heldTask(ctx, wait context.Context, c *client.Client, name string, got api.Triggered) (string, error) {
	for got.QueueID == "" {
		select {
		case <-a.io.After(time.Second):
		case <-wait.Done():
			back := "signalbox schedules executions " + name
			if ctx.Err() != nil {
				return "", (&fault{exit: exitDetached, code: "interrupted", message: "interrupted; the firing is held"}).hinted("%s shows it", back)
			}
			return "", (&fault{exit: exitWaitOver, code: "wait_over", message: "the wait is over; the firing is held"}).hinted("%s shows it", back)
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
				return "", &fault{exit: exitConflict, code: "conflict", message: fmt.Sprintf("%s made no task: %s", name, executionNote(&e))}
			}
		}
	}
	return got.QueueID, nil
}
