package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// foreign are flags of other programs, the coding CLIs and bubblewrap, that pages
// mention without their command.
var foreign = []string{"--max-budget-usd", "--effort", "--variant", "--session-id", "--resume", "--allowedTools", "--append-system-prompt", "--seccomp", "--mcp-config", "--settings"}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	// call is a signalbox command in a page, up to where the shell ends it or
	// another program begins.
	call     = regexp.MustCompile(`^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:(?:\./)?(?:bin/)?signalbox|go run \./cmd/signalbox) ([a-z-].*)`)
	callEnds = regexp.MustCompile(`\s(?:--|#.*|\||&&|&|;|>|<)(?:\s|$)`)
	quoted   = regexp.MustCompile(`"[^"]*"|'[^']*'`)
)

// TestDocsUseExistingCommandsAndFlags checks every signalbox command in the pages, and
// every flag that stands by itself.
func TestDocsUseExistingCommandsAndFlags(t *testing.T) {
	var pages []string
	for _, where := range []string{"*.md", "docs/*.md", "docs/decisions/*.md"} {
		some, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(where)))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, some...)
	}
	all, calls, flags := commands(), 0, 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range codeOf(string(text)) {
			if m := call.FindStringSubmatch(code); m != nil {
				calls++
				flags += checkCall(t, page, all[0], m[1])
			} else if strings.HasPrefix(code, "--") && code != "--" {
				flags++
				name, _, _ := strings.Cut(strings.Fields(code)[0], "=")
				if !slices.Contains(foreign, name) && !slices.ContainsFunc(all, func(c *cobra.Command) bool { return takes(c, name) }) {
					t.Errorf("%s: no command takes %s", page, code)
				}
			}
		}
	}
	if calls < 250 || flags < 300 {
		t.Errorf("%d commands and %d flags of %d pages: the pages are not read as they are written", calls, flags, len(pages))
	}
}

// checkCall checks a command line without the program name, and counts its flags.
func checkCall(t *testing.T, page string, root *cobra.Command, text string) (flags int) {
	t.Helper()
	line := quoted.ReplaceAllString(text, "TEXT")
	if end := callEnds.FindStringIndex(line); end != nil {
		line = line[:end[0]]
	}
	words := strings.Fields(line)
	c, rest, err := root.Find(words)
	if err == nil && c.HasSubCommands() && len(rest) > 0 && !strings.ContainsAny(rest[0][:1], "-[") {
		err = cobra.NoArgs(c, rest) // a remaining word is not a subcommand
	}
	if err != nil {
		t.Errorf("%s: there is no such command: signalbox %s", page, text)
		return 0
	}
	for _, word := range rest {
		name, _, _ := strings.Cut(word, "=")
		if !strings.HasPrefix(name, "-") || name == "-" {
			continue
		}
		if flags++; !takes(c, name) {
			t.Errorf("%s: %s takes no %s: signalbox %s", page, c.CommandPath(), name, text)
		}
	}
	return flags
}

// takes reports whether a command takes a flag, such as -f or --follow.
func takes(c *cobra.Command, flag string) bool {
	c.InitDefaultHelpFlag()
	if name, long := strings.CutPrefix(flag, "--"); long {
		return c.Flag(name) != nil
	}
	short := strings.TrimPrefix(flag, "-")
	return len(short) == 1 && (c.Flags().ShorthandLookup(short) != nil || c.InheritedFlags().ShorthandLookup(short) != nil)
}

// codeOf returns the code in a page: the lines of its code blocks, with continued lines
// joined, and the text between backquotes.
func codeOf(page string) (code []string) {
	var prose strings.Builder
	block, begun := false, ""
	for _, l := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			block = !block
		case block && strings.HasSuffix(trimmed, `\`):
			begun += strings.TrimSuffix(trimmed, `\`)
		case block || strings.HasPrefix(l, "    "):
			code = append(code, begun+trimmed)
			begun = ""
		default:
			prose.WriteString(l + "\n")
		}
	}
	for _, paragraph := range strings.Split(prose.String(), "\n\n") {
		for _, m := range codeSpan.FindAllStringSubmatch(paragraph, -1) {
			code = append(code, strings.Join(strings.Fields(m[1]), " "))
		}
	}
	return code
}
