package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/client"
)

// A command is a *cobra.Command with its texts and flags. One of three
// constructors sets what it does: query reads something and prints it, action
// changes something and prints the outcome, follow prints a stream until it ends.

type (
	runFunc    = func(*cobra.Command, []string) error
	clientFunc = func(ctx context.Context, c *client.Client, args []string) error
)

// callFunc is a command's request to the director.
type callFunc[T any] func(ctx context.Context, c *client.Client, args []string) (T, error)

// query makes a command that reads something and prints it with show, or unchanged
// with --json.
func query[T any](a *app, cmd *cobra.Command, read callFunc[T], show func(T)) *cobra.Command {
	cmd.RunE = a.ask(func(ctx context.Context, c *client.Client, args []string) error {
		return printed(a, show)(read(ctx, c, args))
	})
	return cmd
}

// action makes a command that changes something and prints the outcome. At a
// terminal it first asks the question, whose %s is the argument; "" asks nothing.
func action[T any](a *app, cmd *cobra.Command, question string, do callFunc[T], say func(T)) *cobra.Command {
	yes := question == ""
	if !yes {
		cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation at a terminal")
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

// done is the JSON output of an action whose route returns no body.
type done struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// removal makes an action that removes the thing named by its argument.
func removal(a *app, cmd *cobra.Command, question, status string, do func(*client.Client, context.Context, string) error) *cobra.Command {
	return action(a, cmd, question, func(ctx context.Context, c *client.Client, args []string) (done, error) {
		return done{args[0], status}, do(c, ctx, args[0])
	}, func(d done) { a.say("%s: %s", capitalize(d.Status), clean(d.ID)) })
}

// follow makes a command that prints a stream until it ends, across restarts of
// the director. If cmd is a query already, it streams only if on is set.
func (a *app) follow(cmd *cobra.Command, on *bool, stream clientFunc) *cobra.Command {
	once := cmd.RunE
	long := a.askRetrying(func(ctx context.Context, c *client.Client, args []string) error {
		if _, err := c.Health(ctx); client.IsUnreachable(err) {
			return err // outages are waited out only after the stream has begun
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

// printed prints the result of a call, or returns its error.
func printed[T any](a *app, show func(T)) func(T, error) error {
	return func(got T, err error) error {
		if err != nil {
			return err
		}
		return a.print(got, func() { show(got) })
	}
}

// noArg calls a method of the client without arguments.
func noArg[T any](f func(*client.Client, context.Context) (T, error)) callFunc[T] {
	return func(ctx context.Context, c *client.Client, _ []string) (T, error) { return f(c, ctx) }
}

// oneArg calls a method of the client with the first argument.
func oneArg[T any](f func(*client.Client, context.Context, string) (T, error)) callFunc[T] {
	return func(ctx context.Context, c *client.Client, args []string) (T, error) { return f(c, ctx, args[0]) }
}

// taskArg is oneArg for a task's ID. The argument may be a part of the ID.
func taskArg[T any](f func(*client.Client, context.Context, string) (T, error)) callFunc[T] {
	return func(ctx context.Context, c *client.Client, args []string) (none T, err error) {
		id, err := resolve(ctx, c, args[0])
		if err != nil {
			return none, err
		}
		return f(c, ctx, id)
	}
}

// ask makes a RunE function from a function that needs a client.
func (a *app) ask(f clientFunc) runFunc {
	return asking(func() (*client.Client, error) { return a.client(client.Options{}) }, f)
}

// askRetrying is ask with a client that retries while the director is gone, and
// prints a note.
func (a *app) askRetrying(f clientFunc) runFunc {
	return asking(a.retryingClient, f)
}

func asking(connect func() (*client.Client, error), f clientFunc) runFunc {
	return func(cmd *cobra.Command, args []string) error {
		c, err := connect()
		if err != nil {
			return err
		}
		return f(cmd.Context(), c, args)
	}
}

// run makes a RunE function from a function that needs no command.
func run(f func(ctx context.Context, args []string) error) runFunc {
	return func(cmd *cobra.Command, args []string) error { return f(cmd.Context(), args) }
}

// prepare sets the defaults of a command and its subcommands: the number of
// arguments comes from the usage line, and completion offers no files.
func prepare(c *cobra.Command) {
	if c.Args == nil {
		c.Args = argsOf(c.Use)
	}
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	c.Args, c.PreRunE, c.RunE = usageArgs(c.Args), ownErrors(c.PreRunE), ownErrors(c.RunE)
	for _, below := range c.Commands() {
		prepare(below)
	}
}

// ownErrors marks the errors that the command itself returns.
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

// argsOf derives the number of arguments from a usage line: NAME is required,
// [NAME] optional. Words after the first flag do not count.
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

// usageArgs replaces the errors of cobra's checks, which do not name the argument.
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

// lists are the commands that list things and also accept the word "list", which
// other tools require.
var lists = map[string]bool{"activities": true, "agents": true, "directors": true, "schedules": true, "sessions": true, "tokens": true, "tools": true, "users": true, "workspaces": true}

// meant suggests subcommands for a misspelt word.
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
