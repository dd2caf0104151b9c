package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/roles"
)

func (a *app) streams() roles.Streams { return roles.Streams{Out: a.io.Out, Err: a.io.Err} }

// keyFlag is a flag of a role that sets a key of the configuration.
type keyFlag struct{ name, key, usage string }

// Flags whose value may be omitted.
const (
	terminalFlag = "terminal"
	pullFlag     = "pull"
	openFlag     = "open"
)

var serverFlags = []keyFlag{
	{"addr", "addr", "`host:port` to listen on (default 127.0.0.1:8080)"},
	{"data", "data", "`folder` for the store, keys and logs (default ~/.signalbox/data)"},
	{"store", "store", "`store`: sqlite:[FILE], postgres://…, redis://… or memory: (default sqlite:, a file in --data)"},
	{"instance", "instance", "`name` of this director among those that share a store (default host-port)"},
	{"advertise", "advertise", "`URL` at which the other directors reach this one (default: where it listens)"},
	{"discover", "discover", "`ports` of this host on which to look for agents, such as 9000-9010 (default off)"},
	{openFlag, "open", "`true` requires no token: every program and user of this host may do everything (default false)"},
	{"grace", "grace", "how long a stop waits for running tasks: a `duration` (default 30s)"},
	{"on-shutdown", "on_shutdown", "`what` happens to tasks that still run at a stop: leave (default) or stop"},
	{terminalFlag, "terminal", "`true` lets users with the scope terminal open terminals at agents that offer them (default false)"},
}

var logFlags = []keyFlag{
	{"log-format", "log.format", "`format` of the log: text (default) or json"},
	{"log-level", "log.level", "`level` of the log: debug, verbose, info (default), warn or error"},
}

// childFlags are the flags of an agent that signalbox up also has.
var childFlags = []keyFlag{
	{"workdir", "agent.workdir", "`folder` in which tasks run (default: the current one)"},
	{"workspace", "agent.workspace", "`where` tasks work: folder (default); worktree: a git worktree for each conversation; clone: one of workspace.repo"},
	{"slots", "agent.slots", "`number` of tasks at the same time (default 1)"},
	{"isolated-slots", "agent.isolated_slots", "`number` of additional isolated tasks, for the bypass (default 4)"},
	{"model", "agent.model", "`model` for tasks that name none (default: the CLI's own)"},
	{"timeout", "agent.timeout", "limit for tasks that set none: a `duration` (default 30m)"},
	{"permission-mode", "agent.permission_mode", "`mode`: what the CLI may do without asking (default: the safest that works)"},
}

var agentFlags = []keyFlag{
	{"name", "agent.name", "`name` of the agent (default: its kind)"},
	{"kind", "agent.kind", "`kind`: claude, codex, opencode, command, llm or demo (default: the CLI found here); also --runner"},
	{"addr", "agent.addr", "`host:port` to listen on (default 127.0.0.1:9000)"},
	{pullFlag, "agent.pull", "`true`: do not listen, poll the director for tasks, for agents behind NAT (default false)"},
	{"data", "data", "`folder` for records and logs (default ~/.signalbox/data)"},
	{"account", "agent.account", "`name` of the account that its runs use (default: derived from kind and login)"},
	{"home", "agent.home", "`folder` to use as HOME of the CLI (default: yours)"},
	{terminalFlag, "agent.terminal", "`true` lets the director open terminals here (default false)"},
	{"agent-token", "agent.token", "`token` that callers of the agent must present (default: a generated one; better: SIGNALBOX_AGENT_TOKEN)"},
	{openFlag, "open", "`true` requires no token from callers unless one is given (default false)"},
}

// serverLists are repeatable flags of a server.
var serverLists = []keyFlag{
	{"tools", "tools", "`file` of tools: .mcp.json, .ai-agent.json, mcp-config.json or YAML; repeatable"},
}

// listFlags are repeatable flags of an agent.
var listFlags = []keyFlag{
	{"other-director", "agent.directors", "`URL` of another director that shares the store, with --pull; repeatable"},
	{"arg", "agent.args", "additional `argument` for the CLI; repeatable"},
	{"project-root", "agent.project_roots", "`folder` in which a task's project must lie; repeatable (default: --workdir)"},
	{"task-env", "agent.task_env", "`name` of a variable that tasks of non-admins may set, such as CALENDAR_*; repeatable"},
	{"pass-env", "agent.pass_env", "`name` of a variable to pass on to the CLI; repeatable"},
}

// configKey annotates a flag with the configuration key that it sets.
const configKey = "config-key"

func addKeyFlags(f *pflag.FlagSet, groups ...[]keyFlag) {
	for _, k := range slices.Concat(groups...) {
		f.String(k.name, "", k.usage)
		_ = f.SetAnnotation(k.name, configKey, []string{k.key})
		if k.name == terminalFlag || k.name == pullFlag || k.name == openFlag {
			f.Lookup(k.name).NoOptDefVal = "true"
		}
	}
}

func addListFlags(f *pflag.FlagSet, flags []keyFlag) {
	for _, k := range flags {
		f.StringArray(k.name, nil, k.usage)
		_ = f.SetAnnotation(k.name, configKey, []string{k.key})
	}
}

// givenFlags returns the changed flags that set a configuration key.
func givenFlags(f *pflag.FlagSet) []config.Flag {
	var out []config.Flag
	f.Visit(func(flag *pflag.Flag) {
		key := flag.Annotations[configKey]
		if key == nil {
			return
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		out = append(out, config.Flag{Name: "--" + flag.Name, Key: key[0], Values: values})
	})
	return out
}

func (a *app) upCmd() *cobra.Command {
	var kinds []string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a director, and an agent for each coding CLI found here",
		Long: "Run a director and, as child processes, an agent for each coding CLI found on PATH, or a demo agent where\n" +
			"there is none.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := givenFlags(cmd.Flags())
			if f := cmd.Flags().Lookup(terminalFlag); f.Changed { // for director and agents
				flags = append(flags, config.Flag{Name: "--" + terminalFlag, Key: "agent.terminal", Values: []string{f.Value.String()}})
			}
			cfg, err := a.load(config.Sources{Flags: flags})
			if err != nil {
				return err
			}
			opts := roles.Up{Streams: a.streams()}
			if cmd.Flags().Changed("agents") {
				if opts.Kinds, err = parseKinds(kinds); err != nil {
					return err
				}
			}
			return a.roles.Up(cmd.Context(), cfg, opts)
		},
	}
	addKeyFlags(cmd.Flags(), serverFlags, logFlags, childFlags)
	addListFlags(cmd.Flags(), serverLists)
	cmd.Flags().StringSliceVar(&kinds, "agents", nil, "`kinds` of agents to start, such as claude,codex, or none (default: each CLI found)")
	return cmd
}

func parseKinds(kinds []string) ([]string, error) {
	if len(kinds) == 1 && kinds[0] == "none" {
		return []string{}, nil
	}
	for _, kind := range kinds {
		switch kind {
		case "claude", "codex", "opencode", "llm", "demo":
		default:
			return nil, usage("--agents: want claude, codex, opencode, llm, demo or none, got %q", kind)
		}
	}
	return kinds, nil
}

func (a *app) directorCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "director",
		Short: "Run a director",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load(config.Sources{Flags: givenFlags(cmd.Flags())})
			if err != nil {
				return err
			}
			return a.roles.Director(cmd.Context(), cfg, roles.Director{Streams: a.streams()})
		},
	}
	addKeyFlags(cmd.Flags(), serverFlags, logFlags)
	addListFlags(cmd.Flags(), serverLists)
	return cmd
}

func (a *app) agentCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent [-- COMMAND ARG...]",
		Short: "Run an agent and register it with the director",
		Long: "Run an agent and register it with the director. After -- stands the command of an agent of kind command: a\n" +
			"template in which {prompt} and the like are replaced by parts of the task.\n\n" +
			"The director connects to the agent. With --pull the agent does not listen, but polls the director for its tasks.",
		Example: "  signalbox agent --kind claude --workdir ~/src/shop\n" +
			"  signalbox agent --name tests --slots 4 -- ./run-tests.sh {prompt}\n" +
			"  signalbox agent --name basement --pull --director https://signalbox.example -- ./report.sh {prompt}",
		Args: cobra.ArbitraryArgs,
		RunE: a.agent,
	}
	addKeyFlags(cmd.Flags(), agentFlags, logFlags, childFlags)
	addListFlags(cmd.Flags(), listFlags)
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "runner" { // the agent's own name for its kind
			name = "kind"
		}
		return pflag.NormalizedName(name)
	})
	return cmd
}

func (a *app) agent(cmd *cobra.Command, args []string) error {
	f := cmd.Flags()
	flags := givenFlags(f)
	if len(args) > 0 {
		if f.ArgsLenAtDash() != 0 {
			return usage("got argument %q: a command stands after --", args[0]).withHint("signalbox agent -- %s", args[0])
		}
		flags = append(flags, config.Flag{Name: "--", Key: "agent.command", Values: args})
		if !f.Changed("kind") {
			flags = append(flags, config.Flag{Name: "--", Key: "agent.kind", Values: []string{"command"}})
		}
	}
	cfg, err := a.load(config.Sources{Flags: flags, NoTools: true})
	if err != nil {
		return err
	}
	if len(args) > 0 && cfg.Agent.Kind != "command" {
		return usage("a command after -- is for an agent of kind command, this one is of kind %s", cfg.Agent.Kind)
	}
	opts := roles.Agent{Streams: a.streams()}
	opts.Find = func() (roles.Agent, error) {
		t, err := a.locate(target{url: cfg.Director, token: cfg.Token})
		if err != nil {
			return opts, fmt.Errorf("find the director: %w", err)
		}
		found := opts
		if t.found {
			found.Director, found.Token, found.Known, found.Owner = t.url, t.token, true, t.owner
		}
		return found, nil
	}
	if opts, err = opts.Find(); err != nil {
		return err
	}
	return a.roles.Agent(cmd.Context(), cfg, opts)
}

func (a *app) demoCmd() *cobra.Command {
	opts := roles.Demo{Streams: a.streams()}
	pace := durationFlag(4 * time.Second)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a demo: three agents, two tool queues, and work for them",
		Long: "Run a demo, without an account, a database or a key. A director starts on this host alone, with three demo agents\n" +
			"(researcher, coder, writer), two tool queues (browser with 2 slots, github with 1), a schedule, and a slow stream\n" +
			"of tasks. The demo prints the address of the dashboard; signalbox top and the other commands find it by themselves.\n\n" +
			"Its data is in a folder of its own in the temporary folder, and is removed when the demo ends. After a demo was\n" +
			"killed, the next one takes over its data and says what it recovered.\n\n" +
			"Keys at a terminal: w makes an agent hang, and the dashboard shows what to do about it; u undoes that, s submits a\n" +
			"task, q quits. Without a terminal the demo runs until it is stopped.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if pace < durationFlag(100*time.Millisecond) {
				return usage("--pace: want 100ms or more, got %s", time.Duration(pace))
			}
			opts.Pace = time.Duration(pace)
			if a.io.TTY == nil {
				return a.roles.Demo(cmd.Context(), opts)
			}
			var end error
			opts.Keys, opts.Out, opts.Err = a.io.In, crlfWriter{a.io.Out}, crlfWriter{a.io.Err}
			err := a.raw(func() { end = a.roles.Demo(cmd.Context(), opts) })
			return cmp.Or(err, end)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.Addr, "addr", "", "`host:port` to listen on, on a loopback address (default: that of the previous demo, else any free port)")
	f.BoolVar(&opts.Keep, "keep", false, "keep the data folder at the end")
	f.Uint64Var(&opts.Seed, "seed", 1, "random seed: a `number` that determines what is submitted when")
	f.Var(&pace, "pace", "average time from one task to the next")
	cmd.AddCommand(a.demoToolCmd())
	return cmd
}

// crlfWriter writes lines to a terminal in raw mode.
type crlfWriter struct{ w io.Writer }

func (r crlfWriter) Write(p []byte) (int, error) {
	_, err := r.w.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")))
	return len(p), err
}

// demoToolCmd is the command behind the demo's tools: it waits as long as the call
// says, and answers. It needs no shell.
func (a *app) demoToolCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "tool",
		Short:  "Act as a tool of the demo: read a call from standard input",
		Hidden: true,
		RunE:   run(func(ctx context.Context, _ []string) error { return a.demoTool(ctx) }),
	}
}

// maxDemoCall limits a call of a demo tool.
const maxDemoCall = time.Minute

func (a *app) demoTool(ctx context.Context) error {
	var call struct {
		Tool  string
		Input struct {
			About   string
			Seconds float64
		}
	}
	if err := json.NewDecoder(a.io.In).Decode(&call); err != nil {
		return fmt.Errorf("want a call as JSON on standard input: %w", err)
	}
	wait := min(max(0, time.Duration(call.Input.Seconds*float64(time.Second))), maxDemoCall)
	select {
	case <-a.io.After(wait):
	case <-ctx.Done():
		return ctx.Err()
	}
	a.say("%s looked into “%s” for %s and found what it was asked for.", clean(call.Tool), clean(firstLine(call.Input.About)), wait)
	return nil
}
