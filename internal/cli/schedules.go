package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/cron"
)

func (a *app) schedulesCmd() *cobra.Command {
	var opts client.SchedulesOptions
	cmd := &cobra.Command{Use: "schedules", Short: "List the schedules, with their next and their last firing"}
	cmd.Flags().StringVar(&opts.Agent, "agent", "", "only those for this `agent`")
	cmd.AddCommand(a.showScheduleCmd(), a.addScheduleCmd(), a.editScheduleCmd(), a.removeScheduleCmd(), a.enableScheduleCmd(), a.disableScheduleCmd(),
		a.triggerScheduleCmd(), a.executionsCmd(), a.checkCronCmd())
	return query(a, cmd, func(ctx context.Context, c *client.Client, _ []string) (api.Schedules, error) {
		all := api.Schedules{Schedules: []api.Schedule{}}
		for s, err := range c.AllSchedules(ctx, opts) {
			if err != nil {
				return all, err
			}
			all.Schedules = append(all.Schedules, s)
		}
		return all, nil
	}, func(all api.Schedules) {
		list(a, all.Schedules, "No schedules. signalbox schedules add NAME --cron \"0 1 * * *\" --prompt TEXT makes one.",
			[]string{"NAME", "WHEN", "FOR", "NEXT", "LAST", "STATE"}, func(s *api.Schedule) []string {
				return []string{s.Name, s.Words + ", " + s.Timezone, scheduleTarget(s), a.nextText(s), a.lastText(s), scheduleState(s)}
			})
	})
}

// scheduleTarget is the agent or kind that a schedule's tasks are for.
func scheduleTarget(s *api.Schedule) string {
	return cmp.Or(s.AgentName, opt("any %s", s.Kind), "any agent")
}

// nextText says when a schedule fires next.
func (a *app) nextText(s *api.Schedule) string {
	switch {
	case !s.Enabled:
		return "-"
	case s.OverdueSeconds > 0:
		return "overdue by " + ago(time.Duration(s.OverdueSeconds)*time.Second)
	case s.NextRunAt == nil:
		return "never"
	}
	return "in " + ago(s.NextRunAt.Sub(a.io.Now()))
}

// lastText is the status of a schedule's last firing.
func (a *app) lastText(s *api.Schedule) string {
	if s.LastRunAt == nil {
		return "never"
	}
	return outcomeWords(s.LastStatus) + " " + a.since(*s.LastRunAt) + " ago"
}

// outcomeWords returns a readable form of an outcome.
func outcomeWords(status string) string {
	if what, skipped := strings.CutPrefix(status, "skipped_"); skipped {
		return "skipped (" + strings.ReplaceAll(what, "_", " ") + ")"
	}
	return status
}

func scheduleState(s *api.Schedule) string {
	switch {
	case !s.Enabled:
		return "disabled"
	case s.OverdueSeconds > 0:
		return "overdue"
	case signalbox.RunStatus(s.LastStatus).Failed():
		return "failing"
	}
	return "enabled"
}

func (a *app) showScheduleCmd() *cobra.Command {
	return query(a, &cobra.Command{Use: "show NAME", Short: "Show a schedule and its newest firings", ValidArgsFunction: a.completeArg(scheduleNames)},
		oneArg((*client.Client).Schedule), a.scheduleText)
}

// scheduleText prints a schedule in full.
func (a *app) scheduleText(s api.Schedule) {
	a.say("%s [%s]%s", clean(s.Name), scheduleState(&s), opt(" %s", s.Description))
	timeout, from := "", ""
	if s.TimeoutSeconds > 0 {
		timeout = ago(time.Duration(s.TimeoutSeconds) * time.Second)
	}
	if s.Source == "config" {
		from = "the director's configuration: change it there"
	}
	a.table(nonEmptyRows([][]string{
		{"  id:", s.ID},
		{"  when:", fmt.Sprintf("%s, %s (%s)", s.Words, s.Timezone, s.CronExpression)},
		{"  next:", a.nextRunsText(&s)},
		{"  for:", scheduleTarget(&s)},
		{"  last:", a.lastText(&s)},
		{"  error:", s.LastError},
		{"  overlap:", s.Overlap},
		{"  missed:", fmt.Sprintf("%s, within %s", s.Missed, ago(time.Duration(s.MissedWindowSeconds)*time.Second))},
		{"  queue full:", s.OnFull},
		{"  model:", s.Model}, {"  tier:", s.Tier}, {"  session:", s.SessionID}, {"  owner:", s.OwnerID},
		{"  timeout:", timeout}, {"  from:", from},
		{"  workspace:", strings.TrimSpace(clean(s.Workspace) + opt(" of %s", s.Repo) + opt(" from %s", s.Base))},
		{"  checks:", checkNames(s.Checks)}, {"  lands:", landsText(&s.Delivery)},
		{"  prompt:", firstLine(s.Message)},
	}))
	if len(s.Outcomes) > 0 {
		a.say("")
		a.executionTable(s.Outcomes)
	}
}

// checkNames are the names of checks.
func checkNames(list []api.TaskCheck) string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = clean(c.Name)
	}
	return strings.Join(names, ", ")
}

// landsText says where the work of a schedule's tasks lands.
func landsText(d *api.Delivery) string {
	text := d.Land
	if text == signalbox.LandPR {
		text = "as a pull request"
	}
	return clean(text) + opt(" (%s)", d.LandMethod)
}

// nextRunsText lists the next firings of a schedule, in its time zone.
func (a *app) nextRunsText(s *api.Schedule) string {
	text := a.nextText(s)
	zone, err := cron.Zone(s.Timezone)
	if err != nil || len(s.NextRuns) == 0 {
		return text
	}
	var times []string
	for _, at := range s.NextRuns {
		times = append(times, at.In(zone).Format("2006-01-02 15:04 MST"))
	}
	return text + ": " + strings.Join(times, ", ")
}

func (a *app) executionsCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "executions NAME", Short: "List the firings of a schedule, newest first", ValidArgsFunction: a.completeArg(scheduleNames)}
	limit := cmd.Flags().Int("limit", 20, "how many to list, at most 100")
	cmd.RunE = a.ask(func(ctx context.Context, c *client.Client, args []string) error {
		return printed(a, func(got api.Executions) {
			if len(got.Executions) == 0 {
				a.note("It has not fired yet. signalbox schedules trigger %s fires it now.", args[0])
				return
			}
			a.executionTable(got.Executions)
		})(c.Executions(ctx, args[0], *limit))
	})
	return cmd
}

func (a *app) executionTable(all []api.ScheduleExecution) {
	list(a, all, "", []string{"INSTANT", "BY", "STATUS", "TASK", "NOTE"}, func(e *api.ScheduleExecution) []string {
		return []string{a.clock(e.Nominal), e.Trigger + opt(" (%s)", e.By), e.Status, cmp.Or(e.QueueID, "-"), executionNote(e)}
	})
}

// executionNote explains the status of a firing.
func executionNote(e *api.ScheduleExecution) string {
	var parts []string
	if strings.HasPrefix(e.Outcome, "skipped_") {
		parts = append(parts, outcomeWords(e.Outcome))
	}
	if e.Missed > 0 {
		parts = append(parts, plural(e.Missed, "instant", "instants")+" before it skipped")
	}
	if e.Error != "" {
		parts = append(parts, e.Error)
	}
	return strings.Join(parts, ": ")
}

func (a *app) checkCronCmd() *cobra.Command {
	var zoneName string
	var n int
	cmd := &cobra.Command{
		Use:   "check EXPRESSION",
		Short: "Explain a cron expression and list when it is due next",
		Long:  "Explain a cron expression and list when it is due next. Put it in quotes. The command needs no director.",
		Example: "  signalbox schedules check \"0 9 * * mon-fri\" --timezone Europe/Berlin\n" +
			"  signalbox schedules check @daily",
		RunE: run(func(_ context.Context, args []string) error { return a.checkCron(args[0], zoneName, n) }),
	}
	cmd.Flags().StringVar(&zoneName, "timezone", "UTC", "IANA `name` of the time zone, such as Europe/Berlin")
	cmd.Flags().IntVarP(&n, "number", "n", 3, "how many times to list, 1 to 50")
	return cmd
}

func (a *app) checkCron(expression, zoneName string, n int) error {
	if n < 1 || n > 50 {
		return usage("-n: want a number from 1 to 50, got %d", n)
	}
	expr, err := cron.Parse(expression)
	if err != nil {
		return usage("%s", err)
	}
	zone, err := cron.Zone(zoneName)
	if err != nil {
		return usage("--timezone: %s", err)
	}
	out := api.CronCheck{CronExpression: expr.String(), Timezone: zone.String(), Words: expr.Describe(), NextRuns: []time.Time{}}
	for at := a.io.Now(); len(out.NextRuns) < n; out.NextRuns = append(out.NextRuns, at) {
		if at = expr.Next(at, zone); at.IsZero() {
			break
		}
	}
	return a.print(out, func() {
		a.say("%s, %s", out.Words, out.Timezone)
		for _, at := range out.NextRuns {
			a.say("  %s  in %s", at.In(zone).Format("Mon 2006-01-02 15:04 MST"), ago(at.Sub(a.io.Now())))
		}
	})
}
