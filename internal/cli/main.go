// Package cli is the command line that people and scripts call. Each command
// talks to the director through the client package. cmd/signalbox passes in the
// roles, such as up and director.
//
// Its output is a contract. Results go to standard output, everything else to
// standard error. --json prints one document, or one per line for streams. It asks
// for input only at a terminal: for the password of a new user, and for
// confirmation before it removes or stops something. docs/cli.md is generated
// from the commands.
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

	"github.com/signalbox-ai/signalbox/internal/roles"
)

// IO is the environment of a command.
type IO struct {
	In  io.Reader
	Out io.Writer // results
	Err io.Writer // everything else
	// Env looks up an environment variable, Dir is the working folder.
	Env func(string) (string, bool)
	Dir string
	// InTTY, OutTTY and ErrTTY report whether the stream is a terminal. Columns is
	// its width, 0 if unknown.
	InTTY          bool
	OutTTY, ErrTTY bool
	Columns        int
	Now            func() time.Time
	// After is time.After, which tests replace.
	After func(time.Duration) <-chan time.Time
	// TTY is the terminal behind In and Out, nil if they are not a terminal.
	TTY TTY
}

// System is the IO of the process.
func System() IO {
	columns, _, _ := term.GetSize(int(os.Stderr.Fd()))
	dir, _ := os.Getwd() // commands that need it report the error
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

// Main runs a command and returns the exit code. args are without the program's
// name. The end of ctx is an interrupt: it stops a role, and detaches a command from
// the task that it waits for.
func Main(ctx context.Context, args []string, io IO, r roles.Roles) int {
	setDefaults(&io)
	a := &app{io: io, roles: r, line: &progress{w: io.Err}}
	root := a.root()
	root.SetArgs(append([]string{}, args...))
	root.SetIn(io.In)
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	err := root.ExecuteContext(ctx)
	if err == nil && a.unwritten != nil {
		err = commandError{a.unwritten}
	}
	return report(io.Err, a.json || wantsJSON(args), asFault(ctx, err))
}

func setDefaults(io *IO) {
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

// wantsJSON looks for --json if the flags could not be parsed.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}

// commandError is an error that a command returned; all others are errors of
// parsing the command line.
type commandError struct{ err error }

func (e commandError) Error() string { return e.err.Error() }
func (e commandError) Unwrap() error { return e.err }

func asFault(ctx context.Context, err error) error {
	var own commandError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &own):
		plain, _, _ := strings.Cut(err.Error(), ": strconv.") // drop the details of strconv
		return usage("%s", plain).withHint("signalbox help, or a command with --help")
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return &fault{exit: exitDetached, code: "interrupted", message: "interrupted"}
	}
	return own.err
}

// app is one run of the command line.
type app struct {
	io    IO
	roles roles.Roles

	line *progress // the last line of standard error, while it is redrawn

	unwritten error // the first error of printing the result

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
		Long: "Signalbox is one durable queue in front of every AI agent: each slot of an agent runs one task at a time,\n" +
			"the others wait in line, and each of them knows how long.",
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !version {
				return cmd.Help()
			}
			a.say("signalbox %s", a.version())
			return nil
		},
	}
	// Not cobra's own version flag: its template disables dead code elimination (19 MB).
	root.Flags().BoolVarP(&version, "version", "v", false, "version for signalbox")
	root.CompletionOptions.HiddenDefaultCmd = false
	f := root.PersistentFlags()
	f.StringVar(&a.director, "director", "", "the director's `URL` (env SIGNALBOX_DIRECTOR; else your director on this host)")
	f.StringVar(&a.token, "token", "", "the director's `token`, which every user of this host sees in the list of processes (better: --token-file, env SIGNALBOX_TOKEN)")
	f.StringVar(&a.tokenFile, "token-file", "", "`file`, mode 0600, with the director's token (env SIGNALBOX_TOKEN_FILE; else that of your director on this host)")
	f.StringVar(&a.config, "config", "", "configuration `file` (default for roles such as up and director: ./signalbox.yaml, else ~/.signalbox/config.yaml)")
	f.BoolVar(&a.json, "json", false, "print JSON: one document, or one per line for streams")
	f.Var(newChoice(&a.color, "auto", "auto", "always", "never"), "color", "colours: auto, always or never (env NO_COLOR, TERM=dumb)")
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"tasks", "Tasks:", []*cobra.Command{a.submitCmd(), a.chatCmd(), a.statusCmd(), a.editCmd(), a.cancelCmd(), a.unparkCmd(), a.whyCmd(), a.logsCmd(), a.diffCmd(), a.retryCmd(), a.landCmd(), a.landingsCmd(), a.searchCmd(),
			a.historyCmd(), a.activitiesCmd(), a.usageCmd(), a.exportCmd(), a.importCmd()}},
		{"queue", "Queue and agents:", []*cobra.Command{a.agentsCmd(), a.gatesCmd(), a.accountsCmd(), a.budgetsCmd(), a.resourcesCmd(), a.workspacesCmd(), a.laneCmd(), a.sessionsCmd(), a.releaseCmd(), a.clearCmd(), a.pauseCmd(), a.resumeCmd(),
			a.schedulesCmd(), a.topCmd(), a.eventsCmd(), a.terminalCmd(), a.directorsCmd(), a.doctorCmd()}},
		{"tools", "Tools:", []*cobra.Command{a.toolsCmd()}},
		{"access", "Access and audit:", []*cobra.Command{a.whoamiCmd(), a.loginLinkCmd(), a.tokensCmd(), a.usersCmd(), a.auditCmd()}},
		{"roles", "Roles:", []*cobra.Command{a.demoCmd(), a.upCmd(), a.directorCmd(), a.agentCmd(), a.gatewayCmd(), a.schedulerCmd(), a.trustCmd()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.id
			prepare(c)
			root.AddCommand(c)
		}
	}
	for _, c := range []*cobra.Command{a.versionCmd(), a.manCmd(root)} {
		prepare(c)
		root.AddCommand(c)
	}
	a.completeFlags(root)
	return root
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": a.version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
			return a.print(v, func() { a.say("signalbox %s (%s, %s/%s)", v["version"], v["go"], v["os"], v["arch"]) })
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

// exitCodes documents the codes.
var exitCodes = []struct {
	code int
	text string
}{
	{exitOK, "done"},
	{exitError, "error"},
	{exitUsage, "usage: a wrong command, flag, argument or configuration"},
	{exitNotFound, "not found"},
	{exitNotAllowed, "not allowed"},
	{exitConflict, "conflict: not possible in this state"},
	{exitQueueFull, "the queue or a tool queue is full, or the agent is busy and the caller does not wait"},
	{exitUnreachable, "the director cannot be reached, or is stopping"},
	{exitWarnings, "doctor found warnings, but no failure"},
	{exitFailed, "the task that was waited for, or the tool that was called, failed"},
	{exitCancelled, "the task that was waited for was cancelled"},
	{exitLost, "the task that was waited for was lost or timed out, or the tool call timed out or lost its server"},
	{exitWaitOver, "the wait ended; the task goes on"},
	{exitDetached, "interrupted; a task that was waited for goes on"},
}
