package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/client"
)

// A command is a *cobra.Command with its words and flags, and one of three
// functions that makes it run: query prints what it reads, action changes
// something and says what came of it, follow prints a stream until it ends.

type runFunc = func(*cobra.Command, []string) error

// callFunc is what a command asks of the director.
type callFunc[T any] func(ctx context.Context, c *client.Client, args []string) (T, error)

// query makes a command that reads something and shows it to people; with
// --json it is printed as it is.
func query[T any](a *app, cmd *cobra.Command, read callFunc[T], show func(T)) *cobra.Command {
	cmd.RunE = a.ask(func(ctx context.Context, c *client.Client, args []string) error {
		return printed(a, show)(read(ctx, c, args))
	})
	return cmd
}

// action makes a command that changes something and says what came of it. A
// person at a terminal is asked the question first, in which %s is the argument;
// without a question it is done at once.
func action[T any](a *app, cmd *cobra.Command, question string, do callFunc[T], say func(T)) *cobra.Command {
	yes := question == ""
	if !yes {
		cmd.Flags().BoolVar(&yes, "yes", false, "do not ask, at a terminal, before it is done")
	}
	return query(a, cmd, func(ctx context.Context, c *client.Client, args []string) (got T, err error) {
		if !yes {
			err = a.confirmAtTerminal(ctx, yes, fmt.Sprintf(question, args[0]))
		}
		if err == nil {
			got, err = do(ctx, c, args)
		}
		return got, err
	}, say)
}

// done is what an action prints whose route answers with nothing.
type done struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// removal makes an action that does away with what its argument names.
func removal(a *app, cmd *cobra.Command, question, status string, do func(*client.Client, context.Context, string) error) *cobra.Command {
	return action(a, cmd, question, func(ctx context.Context, c *client.Client, args []string) (done, error) {
		return done{args[0], status}, do(c, ctx, args[0])
	}, func(d done) { a.say("%s: %s", capitalize(d.Status), clean(d.ID)) })
}

// follow makes a command that prints a stream until it ends, also over a restart
// of the director. Where the command is a query already, it is one until on.
func (a *app) follow(cmd *cobra.Command, on *bool, stream func(ctx context.Context, c *client.Client, args []string) error) *cobra.Command {
	once := cmd.RunE
	long := a.askRetrying(func(ctx context.Context, c *client.Client, args []string) error {
		if _, err := c.Health(ctx); client.IsUnreachable(err) {
			return err // at the beginning a director that is not there is no outage to sit out
		}
		return stream(ctx, c, args)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if once != nil && !*on {
			return once(cmd, args)
		}
		return long(cmd, args)
	}
	return cmd
}

// printed prints what a call returned, unless that is an error.
func printed[T any](a *app, show func(T)) func(T, error) error {
	return func(got T, err error) error {
		if err != nil {
			return err
		}
		return a.print(got, func() { show(got) })
	}
}

// noArg is a method of the client as a call.
func noArg[T any](f func(*client.Client, context.Context) (T, error)) callFunc[T] {
	return func(ctx context.Context, c *client.Client, _ []string) (T, error) { return f(c, ctx) }
}

// oneArg is a method of the client that takes the first argument.
func oneArg[T any](f func(*client.Client, context.Context, string) (T, error)) callFunc[T] {
	return func(ctx context.Context, c *client.Client, args []string) (T, error) { return f(c, ctx, args[0]) }
}

// taskArg is oneArg for the id of a task, of which a part was typed.
func taskArg[T any](f func(*client.Client, context.Context, string) (T, error)) callFunc[T] {
	return func(ctx context.Context, c *client.Client, args []string) (none T, err error) {
		id, err := resolve(ctx, c, args[0])
		if err != nil {
			return none, err
		}
		return f(c, ctx, id)
	}
}

// ask makes a command's function from one that asks the director.
func (a *app) ask(f func(ctx context.Context, c *client.Client, args []string) error) runFunc {
	return asking(func() (*client.Client, error) { return a.client(client.Options{}) }, f)
}

// askRetrying is ask for a call that outlives the director: it says when that is
// gone, and tries again.
func (a *app) askRetrying(f func(ctx context.Context, c *client.Client, args []string) error) runFunc {
	return asking(a.retryingClient, f)
}

func asking(connect func() (*client.Client, error), f func(ctx context.Context, c *client.Client, args []string) error) runFunc {
	return func(cmd *cobra.Command, args []string) error {
		c, err := connect()
		if err != nil {
			return err
		}
		return f(cmd.Context(), c, args)
	}
}

// run makes a command's function from one that takes no command.
func run(f func(ctx context.Context, args []string) error) runFunc {
	return func(cmd *cobra.Command, args []string) error { return f(cmd.Context(), args) }
}

// finish completes a command and those below it. What its usage line names are
// its arguments, unless it says otherwise; where it does not say what completes
// them, no file is offered.
func finish(c *cobra.Command) {
	if c.Args == nil {
		c.Args = argsOf(c.Use)
	}
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	c.Args, c.PreRunE, c.RunE = usageArgs(c.Args), ownErrors(c.PreRunE), ownErrors(c.RunE)
	for _, below := range c.Commands() {
		finish(below)
	}
}

// ownErrors marks the errors of a command's function as its own.
func ownErrors(f runFunc) runFunc {
	if f == nil {
		return nil
	}
	return func(cmd *cobra.Command, args []string) error {
		if err := f(cmd, args); err != nil {
			return commandError{err}
		}
		return nil
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
		if err := rejectQueueVerb(cmd, args); err != nil {
			return commandError{err}
		}
		if cmd.HasAvailableSubCommands() && len(args) > 0 {
			return commandError{usage("%s has no command %q%s", cmd.CommandPath(), args[0], meant(cmd, args[0])).withHint("%s --help", cmd.CommandPath())}
		}
		return commandError{usage("got %s: want %s", plural(len(args), "argument", "arguments"), cmd.UseLine()).withHint("%s", argHint(cmd, args))}
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
