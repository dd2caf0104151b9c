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
` + "`signalbox submit PROMPT --wait > answer`" + ` holds the answer and nothing more. In a script it asks
no question. At a terminal it asks for the password of a new user, and before it removes or stops something, unless ` + "`--yes`" + ` is given.

Flags may stand before or after arguments. Durations are written as ` + "`90s`" + `, ` + "`1h30m`" + ` or a number of seconds.

An ID is a task's whole id, or any beginning or end of it that no other task has. The short form that is shown
while waiting, such as ` + "`queue-…k2m9`" + `, works too. Where several tasks fit, the command lists them and does nothing.

With ` + "`--json`" + ` a command prints one JSON document, in the form of the HTTP API; ` + "`events`" + ` and ` + "`logs -f`" + ` print one a
line. An error is then a document on standard error: ` + "`{\"error\": code, \"message\": …, \"hint\": …, \"retryable\": …}`" + `.

## Which director

The first that is given of: ` + "`--director`" + `, ` + "`SIGNALBOX_DIRECTOR`" + `, ` + "`director`" + ` in the file that ` + "`--config`" + ` names, the director that runs on
this host (` + "`~/.signalbox/director.json`" + `). Where there is none, a command says so: no address is guessed, and no token is sent to a guessed one. The
token likewise: ` + "`--token-file`" + ` or ` + "`--token`" + `, ` + "`SIGNALBOX_TOKEN`" + ` or ` + "`SIGNALBOX_TOKEN_FILE`" + `, ` + "`token`" + ` or ` + "`token_file`" + ` in the named file, the token
file of the director of yours that runs there, which is sent to that director alone. ` + "`--token`" + ` is seen by every user of the host in the list of processes. ` + "`signalbox tokens create`" + ` makes tokens;
` + "`signalbox whoami`" + ` says who a token speaks for and what it may do.
By http a director proves that it knows the token before that is sent to it (` + "[decision](decisions/0024-connections-are-proved.md)" + `); ` + "`SIGNALBOX_PROOF=off`" + `
has none asked for, for a tunnel or proxy of your own on its host.
` + "`SIGNALBOX_HOME`" + ` puts ` + "`~/.signalbox`" + ` elsewhere.

The roles ` + "`up`, `director`, `agent`, `gateway` and `scheduler`" + ` read ` + "`./signalbox.yaml`" + `, else ` + "`~/.signalbox/config.yaml`" + `, without ` + "`--config`" + ` too. A flag is stronger
than an environment variable, and that than the file.

## Waiting

` + "`submit --wait`" + ` and ` + "`retry --wait`" + ` stay until the task has ended. At a terminal one line says how it stands,

    queue-…k2m9 · 2nd for coder · about 3–9 min · behind queue-…7qx1 (11 min)

then its log follows live. Elsewhere each change of state is a line on standard error. The wait outlives a restart of
the director. Ctrl-C leaves the task alone and says how to come back to it.

` + "`chat`" + ` waits for its turn and prints the answer; meanwhile it says its place on standard error,

    Queued at position 2 (about 3–5 min)

and outlives a restart of the director too. Within a run of an agent of ours, ` + "`chat` and `submit`" + ` call as that agent, for that
run: ` + "`SIGNALBOX_TOKEN` and `SIGNALBOX_QUEUE_ID`" + ` stand in its environment.

A submit whose answer is lost is sent again with the same idempotency key, so that it makes one task. If no answer
comes at all, the error names the key: the same command with it finds the task or submits it, never twice.

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

// TestEveryCommandAndFlagHasADescription keeps the help complete.
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
