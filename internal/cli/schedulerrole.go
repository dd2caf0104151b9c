package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

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
	{openFlag, "open", "`true` asks its callers for no token (default false)"},
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
			"  signalbox scheduler trigger nightly-maintenance",
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
	}
	addKeyFlags(cmd.Flags(), schedulerFlags)
	cmd.AddCommand(a.fireJobCmd())
	return cmd
}

func (a *app) fireJobCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "trigger JOB",
		Short: "Fire a job of the scheduler that stands alone and that you run here",
		RunE: run(func(ctx context.Context, args []string) error {
			home := config.Home(a.io.Env)
			here, err := readDirectorFile(config.SchedulerFile(home))
			if err != nil {
				return err
			}
			if here.URL == "" {
				return &fault{exit: exitUnreachable, code: "unreachable", message: "no scheduler of yours runs here", hint: "signalbox scheduler starts one; signalbox schedules trigger is for those of a director"}
			}
			token := ""
			if here.TokenFile != "" {
				if token, err = config.ReadSecret(here.TokenFile); err != nil {
					return err
				}
			}
			return a.fireJob(ctx, here.URL, token, args[0])
		}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// fireJob asks the scheduler at url for a firing, and prints its answer.
func (a *app) fireJob(ctx context.Context, at, token, job string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/trigger/"+url.PathEscape(job), nil)
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return &fault{exit: exitUnreachable, code: "unreachable", message: fmt.Sprintf("the scheduler at %s does not answer: %v", at, err)}
	}
	defer resp.Body.Close()
	const most = 64 << 10
	said, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return &fault{exit: exitError, code: "error", message: fmt.Sprintf("the scheduler answered %s: %s", resp.Status, strings.TrimSpace(string(said)))}
	}
	return a.say("%s", clean(strings.TrimSpace(string(said))))
}
