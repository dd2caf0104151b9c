package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/roles"
)

var gatewayFlags = []keyFlag{
	{"addr", "addr", "`host:port` to listen on (default 127.0.0.1:8080)"},
	{openFlag, "open", "`true` requires no token: every program and user of this host may call the tools (default false)"},
}

func (a *app) gatewayCmd() *cobra.Command {
	var stdio, alone bool
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Serve tools without a director, or as an MCP server on stdin and stdout",
		Long: "Serve the configured tools over HTTP, without a director: the MCP server at /mcp and the routes under /api/tools.\n" +
			"up and director serve the same if their configuration names tools. Callers need the owner's token, which the\n" +
			"command line of the same user finds if --director names the gateway.\n\n" +
			"With --stdio it is an MCP server on standard input and output, for programs that start their own server. If a\n" +
			"director with tools runs here, or --director or SIGNALBOX_DIRECTOR names one, it serves that director's tools\n" +
			"and queues, so that all clients share them. Otherwise, and with --alone or --tools, it serves the tools of its\n" +
			"own configuration to its one client.",
		Example: "  signalbox gateway --tools .mcp.json --addr 127.0.0.1:8090\n" +
			"  claude mcp add signalbox -- signalbox gateway --stdio",
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := givenFlags(cmd.Flags())
			own := alone || cmd.Flags().Changed("tools")
			if !stdio && alone {
				return usage("--alone needs --stdio: over HTTP a gateway always is alone")
			}
			return a.gateway(cmd.Context(), flags, stdio, own)
		},
	}
	addKeyFlags(cmd.Flags(), gatewayFlags, logFlags)
	addListFlags(cmd.Flags(), serverLists)
	cmd.Flags().BoolVar(&stdio, "stdio", false, "serve one MCP client on standard input and output")
	cmd.Flags().BoolVar(&alone, "alone", false, "with --stdio: serve the configured tools, even if a director with tools runs")
	return cmd
}

// gateway runs the role. own means that it serves the tools of its configuration.
func (a *app) gateway(ctx context.Context, flags []config.Flag, stdio, own bool) (err error) {
	opts := roles.Gateway{Streams: a.streams(), In: a.io.In, Stdio: stdio}
	if stdio && own && a.director != "" {
		return usage("--director excludes --alone and --tools: the tools are the director's, or the gateway's own")
	}
	if stdio && !own {
		if opts.Bridge, err = a.bridge(ctx); err != nil {
			return err
		}
	}
	cfg, err := a.load(config.Sources{Flags: flags, NoTools: opts.Bridge != nil, NoWorkFile: stdio})
	if err != nil {
		return err
	}
	if opts.Bridge == nil && cfg.Tools.Empty() {
		return usage("there are no tools to serve").
			withHint("name a file with --tools FILE (.mcp.json, .ai-agent.json, mcp-config.json or YAML), or put mcpServers, restTools, openapiSpecs or commandTools into signalbox.yaml")
	}
	return a.roles.Gateway(ctx, cfg, opts)
}

// bridgeWait is the timeout for listing the director's tools.
const bridgeWait = 5 * time.Second

// bridge finds the director whose tools are served. A configured director must
// have tools; the one on this host may have none, or be gone.
func (a *app) bridge(ctx context.Context) (*roles.Bridge, error) {
	t, err := a.target()
	if err != nil || !t.found {
		return nil, err
	}
	local, _ := a.directorFile("") // target has reported an error, unless a director is configured
	named := !sameURL(t.url, local.URL)
	c, err := client.New(t.url, client.Options{Token: t.token, UserAgent: "signalbox-cli/" + a.roles.Version})
	if err != nil {
		return nil, usage("%s", err)
	}
	asking, cancel := context.WithTimeout(ctx, bridgeWait)
	defer cancel()
	_, err = c.ListTools(asking)
	switch {
	case err == nil:
		return &roles.Bridge{URL: c.URL(), Token: t.token, Execution: a.executionID() != ""}, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case named && client.Code(err) == "not_found":
		return nil, failure(exitNotFound, "not_found", "the director at %s has no tools", c.URL()).
			withHint("--alone serves the tools of your own configuration")
	case named, client.Code(err) == "unauthorized", client.Code(err) == "forbidden":
		return nil, err
	}
	return nil, nil // the local director has no tools
}

var schedulerFlags = []keyFlag{
	{"addr", "scheduler.addr", "`host:port` to listen on (default 127.0.0.1:9100)"},
	{"data", "data", "`folder` of its state (default ~/.signalbox/data)"},
	{"timezone", "scheduler.timezone", "IANA `name` of the time zone for jobs without one (default UTC)"},
	{"scheduler-token", "scheduler.token", "`token` that callers of the scheduler must present"},
	{openFlag, "open", "`true` requires no token from callers (default false)"},
}

func (a *app) schedulerCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scheduler",
		Short: "Run a standalone scheduler that submits its jobs to a director",
		Long: "Run a standalone scheduler: it submits the jobs of its configuration to a director, which may be on another\n" +
			"host. A director has a scheduler of its own; this one is for jobs that are kept elsewhere. It records what it\n" +
			"fired in --data. Two schedulers with the same jobs and the same --token make one task per instant.",
		Example: "  signalbox scheduler --config scheduler.yaml --director http://queue.example:8080\n" +
			"  signalbox scheduler trigger nightly-maintenance",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load(config.Sources{Flags: givenFlags(cmd.Flags()), Scheduler: true})
			if err != nil {
				return err
			}
			return a.roles.Scheduler(cmd.Context(), cfg, roles.Scheduler{
				Streams: a.streams(),
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
	addKeyFlags(cmd.Flags(), schedulerFlags, logFlags)
	cmd.AddCommand(a.triggerJobCmd())
	return cmd
}

func (a *app) triggerJobCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "trigger JOB",
		Short: "Fire a job of the standalone scheduler that you run here",
		RunE: run(func(ctx context.Context, args []string) error {
			home := config.Home(a.io.Env)
			local, err := readDirectorFile(config.SchedulerFile(home))
			if err != nil {
				return err
			}
			if local.URL == "" {
				return failure(exitUnreachable, "unreachable", "no scheduler of yours runs here").
					withHint("signalbox scheduler starts one; signalbox schedules trigger fires a director's schedules")
			}
			token := ""
			if local.TokenFile != "" {
				if token, err = config.ReadSecret(local.TokenFile); err != nil {
					return err
				}
			}
			return a.triggerJob(ctx, local.URL, token, args[0])
		}),
	}
}

// triggerJob fires a job of the scheduler at a URL and prints the answer.
func (a *app) triggerJob(ctx context.Context, at, token, job string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/trigger/"+url.PathEscape(job), nil)
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return failure(exitUnreachable, "unreachable", "the scheduler at %s does not answer: %v", at, err)
	}
	defer resp.Body.Close()
	const most = 64 << 10
	said, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return failure(exitError, "error", "the scheduler answered %s: %s", resp.Status, strings.TrimSpace(string(said)))
	}
	a.say("%s", clean(strings.TrimSpace(string(said))))
	return nil
}
