package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCmd writes the manual pages, which are generated from the help texts.
func (a *app) manCmd(root *cobra.Command) *cobra.Command {
	var date string
	cmd := &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write the manual pages into a folder",
		Hidden: true,
		RunE: run(func(_ context.Context, args []string) error {
			for name, page := range manuals(root, a.version(), date) {
				if err := os.WriteFile(filepath.Join(args[0], name), []byte(page), 0o644); err != nil { //nolint:gosec // for everyone
					return err
				}
			}
			return nil
		}),
		ValidArgsFunction: completeFiles,
	}
	cmd.Flags().StringVar(&date, "date", "", "the `day` that the pages name")
	return cmd
}

// manuals are the pages by file name: signalbox.1, and one for each visible
// command.
func manuals(root *cobra.Command, version, date string) map[string]string {
	pages := map[string]string{}
	for _, cmd := range allCommands(root) {
		pages[manName(cmd)+".1"] = manual(cmd, version, date)
	}
	return pages
}

// allCommands lists the root and all visible commands, without the shells of
// completion.
func allCommands(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, cmd := range visibleCommands(root) {
		if all = append(all, cmd); cmd.Name() != "completion" {
			all = append(all, visibleCommands(cmd)...)
		}
	}
	return all
}

// visibleCommands are the subcommands that are not hidden.
func visibleCommands(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return c.Hidden })
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func manual(cmd *cobra.Command, version, date string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 %q %q \"Signalbox manual\"\n", roff(strings.ToUpper(manName(cmd))), date, roff("Signalbox "+version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	use := strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath())
	if !cmd.HasParent() {
		use = " COMMAND [flags]"
	}
	fmt.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fR%s\n", roff(cmd.CommandPath()), roff(use))
	text := cmd.Long
	if text == "" || cmd.Name() == "completion" {
		text = cmd.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n")
	paragraphs(&b, text)
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, ".PP\nAlso: \\fB%s\\fR.\n", roff(strings.Join(cmd.Aliases, ", ")))
	}
	if below := visibleCommands(cmd); len(below) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range below {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(c.Name()), roff(c.Short))
		}
	}
	manFlags(&b, "OPTIONS", cmd.LocalNonPersistentFlags())
	if !cmd.HasParent() {
		manFlags(&b, "OPTIONS OF EVERY COMMAND", cmd.PersistentFlags())
		b.WriteString(".SH EXIT STATUS\n")
		for _, e := range exitCodes {
			fmt.Fprintf(&b, ".TP\n\\fB%d\\fR\n%s\n", e.code, roff(e.text))
		}
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(strings.ReplaceAll("\n"+cmd.Example, "\n  ", "\n")[1:]))
	}
	b.WriteString(".SH SEE ALSO\n" + strings.Join(seeAlso(cmd), ",\n") + "\n")
	return b.String()
}

// seeAlso are the pages of the parent, the subcommands and the siblings.
func seeAlso(cmd *cobra.Command) []string {
	near := visibleCommands(cmd)
	if cmd.HasParent() {
		near = slices.Insert(near, 0, cmd.Parent())
		if cmd.Parent().HasParent() {
			near = append(near, slices.DeleteFunc(visibleCommands(cmd.Parent()), func(c *cobra.Command) bool { return c == cmd })...)
		}
	}
	var names []string
	for _, c := range near {
		if c.HasParent() && c.Parent().Name() == "completion" {
			continue
		}
		names = append(names, fmt.Sprintf("\\fB%s\\fR(1)", roff(manName(c))))
	}
	return names
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	begun := false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if !begun {
			begun = true
			fmt.Fprintf(b, ".SH %s\n", title)
		}
		value, usage := pflag.UnquoteUsage(f)
		name := `\fB` + roff("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			name = `\fB` + roff("-"+f.Shorthand) + `\fR, ` + name
		}
		if value != "" {
			name += ` \fI` + roff(value) + `\fR`
		}
		fmt.Fprintf(b, ".TP\n%s\n%s\n", name, roff(usage))
	})
}

// paragraphs writes a text as paragraphs. Indented ones keep their line breaks.
func paragraphs(b *strings.Builder, text string) {
	for i, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(p, " ") || strings.HasPrefix(p, "\t") || strings.Contains(p, "\n ") {
			p = ".nf\n" + roff(p) + "\n.fi"
		} else {
			p = roff(p)
		}
		b.WriteString(p + "\n")
	}
}

var roffSigns = strings.NewReplacer(`\`, `\(rs`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

// roff escapes a text for man: no line is taken as a request, and text copied from
// the page equals the original.
func roff(text string) string {
	lines := strings.Split(roffSigns.Replace(text), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") {
			lines[i] = `\&` + l
		}
	}
	var out strings.Builder
	for _, r := range strings.Join(lines, "\n") {
		if r < 0x80 {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, `\[u%04X]`, r)
		}
	}
	return out.String()
}
