package cli

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-ai/signalbox/internal/roles"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

const docsIntro = `# The command line

<!-- Made from the commands by: go test ./internal/cli -run TestDocs -update -->

One binary, ` + "`signalbox`" + `. Results go to standard output, everything else to standard error, so that
` + "`signalbox submit PROMPT --wait > answer`" + ` holds only the answer. In scripts commands never ask
for input. At a terminal they ask for the password of a new user, and for confirmation before they remove or stop something, unless ` + "`--yes`" + ` is given.

Flags may stand before or after arguments. Durations are written as ` + "`90s`, `1h30m`" + ` or a number of seconds.

An ID is a task's whole id, or any beginning or end of it that no other task has. The short form that is shown
while waiting, such as ` + "`queue-…k2m9`" + `, works too. If several tasks match, the command lists them and does nothing.

With ` + "`--json`" + ` a command prints one JSON document, in the form of the HTTP API; ` + "`events` and `logs -f`" + ` print one
per line. An error is then a document on standard error: ` + "`{\"error\": code, \"message\": …, \"hint\": …, \"retryable\": …}`" + `.

## Which director

A command takes the director from the first of these that is given: ` + "`--director`, `SIGNALBOX_DIRECTOR`, `director`" + ` in the file that ` + "`--config`" + ` names,
the director that runs on this host (` + "`~/.signalbox/director.json`" + `). If there is none, the command says so: it never guesses an address or sends a token to one.
The token comes from ` + "`--token-file`" + ` or ` + "`--token`, `SIGNALBOX_TOKEN`" + ` or ` + "`SIGNALBOX_TOKEN_FILE`, `token`" + ` or ` + "`token_file`" + ` in the named file, or the token
file of your director on this host, which is sent to that director alone. Every user of the host sees ` + "`--token`" + ` in the list of processes.
` + "`signalbox tokens create`" + ` makes tokens; ` + "`signalbox whoami`" + ` shows who a token stands for and what it may do.
Over http a director proves that it knows the token before the command sends it ([decision](decisions/0024-connections-are-proved.md)); ` + "`SIGNALBOX_PROOF=off`" + `
turns this proof off, for a tunnel or proxy of your own on the director's host.
` + "`SIGNALBOX_HOME`" + ` replaces ` + "`~/.signalbox`" + `.

The roles ` + "`up`, `director`, `agent`, `gateway` and `scheduler`" + ` read ` + "`./signalbox.yaml`" + `, else ` + "`~/.signalbox/config.yaml`" + `, also without ` + "`--config`" + `. A flag overrides
an environment variable, which overrides the file.

## Waiting

` + "`submit --wait` and `retry --wait`" + ` wait until the task has ended. At a terminal one line shows its progress,

    queue-…k2m9 · 2nd for coder · about 3–9 min · behind queue-…7qx1 (11 min)

then its log follows live. Elsewhere each change of state is a line on standard error. The wait survives a restart of
the director. Ctrl-C leaves the task alone and says how to come back to it.

` + "`chat`" + ` waits in the agent's line and prints the answer; meanwhile it prints its place on standard error,

    Queued at position 2 (about 3–5 min)

and survives a restart of the director too. Inside a run of a Signalbox agent, ` + "`chat` and `submit`" + ` call as that agent, for that
run: ` + "`SIGNALBOX_TOKEN` and `SIGNALBOX_QUEUE_ID`" + ` are in its environment.

A submit whose answer is lost is sent again with the same idempotency key, so that it makes only one task. If no answer
comes at all, the error names the key: the same command with that key finds the task or submits it, never twice.

`

// TestDocs keeps docs/cli.md equal to the commands.
func TestDocs(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "cli.md")
	want := docs()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Fatal("docs/cli.md is not what the commands are: go test ./internal/cli -run TestDocs -update")
	}
}

// TestEveryCommandAndFlagHasADescription checks that the help is complete.
func TestEveryCommandAndFlagHasADescription(t *testing.T) {
	for _, cmd := range commands() {
		if cmd.Short == "" {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no description", cmd.CommandPath(), f.Name)
			}
		})
	}
}

// commands lists the root and all its commands as people see them.
func commands() []*cobra.Command {
	a := &app{roles: roles.Roles{Version: "x"}}
	root := a.root()
	root.SetArgs([]string{"--help"})
	root.SetOut(new(strings.Builder))
	root.ExecuteContext(context.Background()) // cobra adds its own commands and flags when it runs
	return allCommands(root)
}

func docs() string {
	var b strings.Builder
	b.WriteString(docsIntro)
	b.WriteString("## Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "| %d | %s |\n", e.code, e.text)
	}
	all := commands()
	b.WriteString("\n## Flags of every command\n\n")
	flagTable(&b, all[0].PersistentFlags())
	for _, cmd := range all[1:] {
		section(&b, cmd)
	}
	return b.String()
}

func section(b *strings.Builder, cmd *cobra.Command) {
	name := strings.TrimPrefix(cmd.CommandPath(), "signalbox ")
	fmt.Fprintf(b, "\n%s %s\n\n", strings.Repeat("#", 2+strings.Count(name, " ")), name)
	text := cmd.Long
	if text == "" || cmd.Name() == "completion" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(b, "    %s\n\n%s\n", cmd.UseLine(), strings.TrimSpace(text))
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso: `%s`.\n", strings.Join(cmd.Aliases, "`, `"))
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.ReplaceAll("\n"+cmd.Example, "\n  ", "\n")[1:])
	}
	if subs := visibleCommands(cmd); len(subs) > 0 {
		b.WriteString("\n")
		for _, sub := range subs {
			fmt.Fprintf(b, "- `%s`: %s\n", sub.CommandPath(), sub.Short)
		}
	}
	if cmd.LocalNonPersistentFlags().HasAvailableFlags() {
		b.WriteString("\n")
		flagTable(b, cmd.LocalNonPersistentFlags())
	}
}

func flagTable(b *strings.Builder, flags *pflag.FlagSet) {
	var rows strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		flag := "--" + f.Name
		if f.Shorthand != "" {
			flag = "-" + f.Shorthand + ", " + flag
		}
		if name != "" {
			flag += " " + name
		}
		fmt.Fprintf(&rows, "| `%s` | %s |\n", flag, strings.ReplaceAll(usage, "|", `\|`))
	})
	if rows.Len() > 0 {
		b.WriteString("| flag | meaning |\n|---|---|\n" + rows.String())
	}
}
