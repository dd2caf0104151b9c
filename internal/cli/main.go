package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/roles"
)

// IO is all that the command line touches of the world.
type IO struct {
	In  io.Reader
	Out io.Writer // results
	Err io.Writer // all else
	// Env looks up an environment variable, Dir is the working folder.
	Env func(string) (string, bool)
	Dir string
	// InTTY says that In is a terminal that a person types at, OutTTY and
	// ErrTTY that Out or Err is one that a person looks at; Columns is its
	// width, 0 if unknown.
	InTTY          bool
	OutTTY, ErrTTY bool
	Columns        int
	Now            func() time.Time
	// After is time.After; tests put a clock of their own here.
	After func(time.Duration) <-chan time.Time
	// TTY is the terminal that In and Out are; nil where they are not one.
	TTY TTY
}

// System is the IO of the process.
func System() IO {
	columns, _, _ := term.GetSize(int(os.Stderr.Fd()))
	dir, _ := os.Getwd() // whoever needs it will say that it is gone
	world := IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv, Dir: dir,
		InTTY: term.IsTerminal(int(os.Stdin.Fd())), OutTTY: term.IsTerminal(int(os.Stdout.Fd())), ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Columns: columns, Now: time.Now, After: time.After,
	}
	if world.InTTY && world.OutTTY {
		world.TTY = systemTTY{}
	}
	return world
}

// Main runs one command line, args without the program's name, and returns
// the exit code. The end of ctx is the person's interrupt: it stops a role,
// and detaches a command from what it waits for.
func Main(ctx context.Context, args []string, io IO, r roles.Roles) int {
	fill(&io)
	a := &app{io: io, roles: r, line: &progress{w: io.Err}}
	root := a.root()
	root.SetArgs(append([]string{}, args...))
	root.SetIn(io.In)
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	err := root.ExecuteContext(ctx)
	return report(io.Err, a.json || wantsJSON(args), asFault(ctx, err))
}

func fill(io *IO) {
	if io.Env == nil {
		io.Env = os.LookupEnv
	}
	if io.Now == nil {
		io.Now = time.Now
	}
	if io.After == nil {
		io.After = time.After
	}
}

// wantsJSON looks for --json where the flags could not be read.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}

// commandError is what a command itself returned; every other error comes
// from reading the command line.
type commandError struct{ err error }

func (e commandError) Error() string { return e.err.Error() }
func (e commandError) Unwrap() error { return e.err }

func asFault(ctx context.Context, err error) error {
	var own commandError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &own):
		plain, _, _ := strings.Cut(err.Error(), ": strconv.") // how a number is read is no news to a person
		return usage("%s", plain).hinted("signalbox help, or a command with --help")
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return &fault{exit: exitDetached, code: "interrupted", message: "interrupted"}
	}
	return own.err
}

// app is one run of the command line.
type app struct {
	io    IO
	roles roles.Roles

	line *progress // the last line of standard error, while it is written over and over

	unwritten error // what kept a line of the result from being written

	// Global flags.
	director  string
	token     string
	tokenFile string
	config    string
	json      bool
	color     string
}

func (a *app) root() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "signalbox",
		Short: "One durable queue in front of every AI agent",
		Long: "Signalbox is one durable queue in front of every AI agent: it lets one task into a slot of an agent\n" +
			"at a time, holds the rest in line, and says to each how long.",
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return a.say("signalbox %s", a.version())
			}
			return cmd.Help()
		},
	}
	// Not cobra's own, whose template keeps the linker from dropping what is never called: 19 MB.
	root.Flags().BoolVarP(&version, "version", "v", false, "version for signalbox")
	root.CompletionOptions.HiddenDefaultCmd = false
	f := root.PersistentFlags()
	f.StringVar(&a.director, "director", "", "the director's `URL` (env SIGNALBOX_DIRECTOR; else the one of yours that runs here)")
	f.StringVar(&a.token, "token", "", "the director's `token`, which every user of this host sees in the list of processes (better: --token-file, env SIGNALBOX_TOKEN)")
	f.StringVar(&a.tokenFile, "token-file", "", "`file`, mode 0600, with the director's token (env SIGNALBOX_TOKEN_FILE; else that of the one that runs here)")
	f.StringVar(&a.config, "config", "", "configuration `file` (for roles such as up and director else ./signalbox.yaml, else ~/.signalbox/config.yaml)")
	f.BoolVar(&a.json, "json", false, "print JSON: one document, or one a line for streams")
	f.Var(newChoice(&a.color, "auto", "auto", "always", "never"), "color", "colours: auto, always or never (env NO_COLOR, TERM=dumb)")
	root.AddGroup(
		&cobra.Group{ID: groupTasks, Title: "Tasks:"},
		&cobra.Group{ID: groupQueue, Title: "Queue and agents:"},
		&cobra.Group{ID: groupTools, Title: "Tools:"},
		&cobra.Group{ID: groupAccess, Title: "Access and audit:"},
		&cobra.Group{ID: groupRoles, Title: "Roles:"},
	)
	a.addTo(root, groupTasks, a.submitCmd(), a.chatCmd(), a.statusCmd(), a.cancelCmd(), a.whyCmd(), a.logsCmd(), a.retryCmd(), a.searchCmd(), a.historyCmd(),
		a.activitiesCmd(), a.exportCmd(), a.importCmd())
	a.addTo(root, groupQueue, a.agentsCmd(), a.laneCmd(), a.sessionsCmd(), a.releaseCmd(), a.clearCmd(), a.pauseCmd(), a.resumeCmd(),
		a.schedulesCmd(), a.topCmd(), a.eventsCmd(), a.terminalCmd(), a.directorsCmd(), a.doctorCmd())
	a.addTo(root, groupTools, a.toolsCmd())
	a.addTo(root, groupAccess, a.whoamiCmd(), a.loginLinkCmd(), a.tokensCmd(), a.usersCmd(), a.auditCmd())
	a.addTo(root, groupRoles, a.demoCmd(), a.upCmd(), a.directorCmd(), a.agentCmd(), a.gatewayCmd(), a.schedulerCmd())
	a.addTo(root, groupRoles, a.trustCmd())
	man := a.manCmd(root)
	own(man)
	root.AddCommand(a.versionCmd(), man)
	a.completeFlags(root)
	return root
}

const (
	groupTasks  = "tasks"
	groupQueue  = "queue"
	groupTools  = "tools"
	groupAccess = "access"
	groupRoles  = "roles"
)

// addTo adds commands to a group.
func (a *app) addTo(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		own(c)
		root.AddCommand(c)
	}
}

// own marks what a command and those below it return as theirs. What its usage
// line names are its arguments, unless it says otherwise; where it has none, no
// file is offered for one.
func own(c *cobra.Command) {
	if c.Args == nil {
		c.Args = argsOf(c.Use)
	}
	if c.ValidArgsFunction == nil && c.Args(c, []string{""}) != nil {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	c.Args = usageArgs(c.Args)
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil {
			return commandError{err}
		}
		return nil
	}
	for _, below := range c.Commands() {
		own(below)
	}
}

// argsOf reads from a usage line which arguments a command takes: NAME is one,
// [NAME] one that may be left out. What follows the first flag is no argument.
func argsOf(use string) cobra.PositionalArgs {
	least, most := 0, 0
	for _, word := range strings.Fields(use)[1:] {
		if strings.HasPrefix(word, "-") {
			break
		}
		if most++; word[0] != '[' {
			least++
		}
	}
	return cobra.RangeArgs(least, most)
}

// usageArgs rewords the errors of cobra's checks, which do not say what the
// argument is.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil || len(args) == 1 && args[0] == "list" && lists[cmd.Name()] {
			return nil
		}
		if err := noPrompt(cmd, args); err != nil {
			return commandError{err}
		}
		if cmd.HasAvailableSubCommands() && len(args) > 0 {
			return commandError{usage("%s has no command %q%s", cmd.CommandPath(), args[0], meant(cmd, args[0])).hinted("%s --help", cmd.CommandPath())}
		}
		return commandError{usage("got %s: want %s", plural(len(args), "argument", "arguments"), cmd.UseLine()).hinted("%s", argHint(cmd, args))}
	}
}

// lists are the commands that list what they are named after. People used to
// other tools say "list" after them.
var lists = map[string]bool{"activities": true, "agents": true, "directors": true, "schedules": true, "sessions": true, "tokens": true, "tools": true, "users": true}

// meant is the command below cmd that a mistyped word may have meant.
func meant(cmd *cobra.Command, word string) string {
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		return ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

func argHint(cmd *cobra.Command, args []string) string {
	switch {
	case cmd.Name() == "submit" && len(args) > 1:
		return "put the prompt in quotes"
	case cmd.Name() == "chat" && len(args) > 2:
		return "put the message in quotes"
	}
	return cmd.CommandPath() + " --help"
}

// ask makes a command's function from one that asks the director.
func (a *app) ask(f func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return run(func(ctx context.Context, args []string) error {
		return a.with(ctx, func(c *client.Client) error { return f(ctx, c, args) })
	})
}

// query makes a command's function from what it asks the director, and how the
// answer is shown to people; with --json it is printed as it is.
func query[T any](a *app, ask func(ctx context.Context, c *client.Client, args []string) (T, error), show func(T) error) func(*cobra.Command, []string) error {
	return a.ask(func(ctx context.Context, c *client.Client, args []string) error {
		got, err := ask(ctx, c, args)
		if err != nil {
			return err
		}
		return a.print(got, func() error { return show(got) })
	})
}

// run makes a command's function from one that takes no command.
func run(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return f(cmd.Context(), args) }
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": a.version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
			return a.print(v, func() error {
				return a.say("signalbox %s (%s, %s/%s)", v["version"], v["go"], v["os"], v["arch"])
			})
		},
	}
}

func (a *app) version() string {
	if a.roles.Version == "" {
		return "dev"
	}
	return a.roles.Version
}

// The exit codes. Scripts depend on them.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitNotAllowed  = 4
	exitConflict    = 5
	exitQueueFull   = 6
	exitUnreachable = 7
	exitWarnings    = 8
	exitFailed      = 10
	exitCancelled   = 11
	exitLost        = 12
	exitWaitOver    = 124
	exitDetached    = 130
)

// exitCodes says what each code means, for the help and the documentation.
var exitCodes = []struct {
	code int
	text string
}{
	{exitOK, "done"},
	{exitError, "error"},
	{exitUsage, "usage: a command, flag, argument or configuration that is wrong"},
	{exitNotFound, "not found"},
	{exitNotAllowed, "not allowed"},
	{exitConflict, "conflict: not possible in this state"},
	{exitQueueFull, "the queue, or a tool's, is full, or the agent busy and the caller does not wait"},
	{exitUnreachable, "the director cannot be reached, or is stopping"},
	{exitWarnings, "doctor found nothing that fails, but something to be looked at"},
	{exitFailed, "the task that was waited for, or the tool that was called, failed"},
	{exitCancelled, "the task that was waited for was cancelled"},
	{exitLost, "the task that was waited for was lost or timed out, or the call of a tool timed out or lost its server"},
	{exitWaitOver, "the wait ended; the task goes on"},
	{exitDetached, "interrupted; a task that was waited for goes on"},
}
