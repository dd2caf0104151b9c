package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/internal/config"
)

// SchedulerOptions are what signalbox scheduler is told beyond the
// configuration.
type SchedulerOptions struct {
	Out, Err io.Writer
	// Director finds the director to submit to: its URL, and what to present to
	// it. Known says that somebody named it or that it runs here; otherwise
	// there is nobody to submit to, for now.
	Director func() (url, token string, known bool, err error)
}

var schedulerFlags = []keyFlag{
	{"addr", "scheduler.addr", "`host:port` to listen on (default 127.0.0.1:9100)"},
	{"data", "data", "`folder` of what it remembers (default ~/.signalbox/data)"},
	{"timezone", "scheduler.timezone", "IANA `name` of the time zone of jobs that give none (default UTC)"},
	{"scheduler-token", "scheduler.token", "`token` that callers of the scheduler must present"},
	{"log-format", "log.format", "`format` of the log: text (default) or json"},
	{"log-level", "log.level", "`level` of the log: debug, verbose, info (default), warn or error"},
}

func (a *app) schedulerCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scheduler",
		Short: "Run a scheduler that stands alone and submits its jobs to a director",
		Long: "Run a scheduler that stands alone: it submits the jobs of its configuration to a director, which may be on\n" +
			"another host. A director has a scheduler of its own; this one is for jobs that are kept elsewhere. What it\n" +
			"fired it remembers in --data. Two of them with the same jobs and the same --token make one task of an instant.",
		Example: "  signalbox scheduler --config scheduler.yaml --director http://queue.example:8080\n" +
			"  curl -X POST http://127.0.0.1:9100/trigger/nightly-maintenance",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.loadFrom(config.Sources{Flags: given(cmd.Flags(), schedulerFlags), Scheduler: true})
			if err != nil {
				return err
			}
			return a.roles.Scheduler(cmd.Context(), cfg, SchedulerOptions{
				Out: a.io.Out, Err: a.io.Err,
				Director: func() (string, string, bool, error) {
					t, err := a.locate(target{url: cfg.Director, token: cfg.Token})
					if err != nil {
						err = fmt.Errorf("find the director: %w", err)
					}
					return t.url, t.token, t.found, err
				},
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	addKeyFlags(cmd.Flags(), schedulerFlags)
	return cmd
}
