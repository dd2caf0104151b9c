package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// Marks in the info string of a guide's code block, after the language.
const (
	runMark      = "signalbox-transcript" // commands after "$ ", and their output
	terminalMark = "signalbox-terminal"   // one command that keeps running, and its output at the start
	fileMark     = "signalbox-file"       // a file with that name, in the folder where the commands run
	unitMark     = "signalbox-unit"       // a systemd unit with that name
	exampleMark  = "signalbox-example"    // a part of that file of Go tests, which go test runs
	notRunMark   = "not-run:"             // followed by the reason
)

// guideBlock is a fenced code block of a page.
type guideBlock struct {
	lang, mark, arg string
	text            string
	line            int // of its first line in the page
}

// hiddenTerminal starts a program that a page assumes to be running.
var hiddenTerminal = regexp.MustCompile(`^<!-- ` + terminalMark + `: (.*) -->$`)

// guideBlocks returns all code blocks of a page, in order.
func guideBlocks(page string) []guideBlock {
	var blocks []guideBlock
	inside, indent := false, ""
	for n, line := range strings.Split(page, "\n") {
		fence := strings.HasPrefix(strings.TrimLeft(line, " "), "```")
		switch {
		case !inside && fence:
			info := strings.TrimLeft(strings.TrimLeft(line, " "), "`")
			lang, rest, _ := strings.Cut(info, " ")
			mark, arg, _ := strings.Cut(strings.TrimSpace(rest), " ")
			inside, indent = true, line[:strings.Index(line, "`")]
			blocks = append(blocks, guideBlock{lang: lang, mark: mark, arg: strings.TrimSpace(arg), line: n + 2})
		case inside && fence:
			inside = false
		case inside:
			blocks[len(blocks)-1].text += strings.TrimPrefix(line, indent) + "\n"
		case hiddenTerminal.MatchString(line):
			blocks = append(blocks, guideBlock{lang: "console", mark: terminalMark, text: "$ " + hiddenTerminal.FindStringSubmatch(line)[1] + "\n", line: n + 1})
		}
	}
	return blocks
}

// fault says what is wrong with how a block is marked, "" if nothing is.
func (g guideBlock) fault() string {
	shell := slices.Contains([]string{"console", "sh", "shell", "bash"}, g.lang)
	known := map[string]bool{
		runMark: g.lang == "console", terminalMark: g.lang == "console", fileMark: g.arg != "", notRunMark: g.arg != "",
		unitMark: g.lang == "ini" && g.arg != "", exampleMark: g.lang == "go" && g.arg != "",
	}
	switch {
	case g.mark != "" && !known[g.mark]:
		return fmt.Sprintf("%q is no mark of a %q block, or lacks what must follow it", g.mark, g.lang)
	case g.mark != "":
		return ""
	case shell, slices.Contains([]string{"", "python", "javascript", "go", "ini"}, g.lang):
		return fmt.Sprintf("a %q block must be marked: as what is run, or as %s REASON", g.lang, notRunMark)
	case slices.Contains([]string{"yaml", "json", "nginx", "caddyfile", "text"}, g.lang):
		return ""
	}
	return fmt.Sprintf("nothing is known of language %q", g.lang)
}

func guidePages(t *testing.T) []string {
	t.Helper()
	var pages []string
	for _, folder := range []string{"tutorials", "how-to"} {
		found, err := filepath.Glob(filepath.Join("..", "docs", folder, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) == 0 {
		t.Fatal("docs/tutorials and docs/how-to have no page")
	}
	return pages
}

// Every command of a tutorial or how-to is run, or says why it is not. This
// test lists the ones that are not.
func TestEveryBlockOfAGuideIsRunOrSaysWhyNot(t *testing.T) {
	for _, path := range guidePages(t) {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		run := 0
		for _, g := range guideBlocks(string(page)) {
			if fault := g.fault(); fault != "" {
				t.Errorf("%s:%d: %s", path, g.line, fault)
			}
			if g.mark == notRunMark {
				t.Logf("not run: %s:%d: %s", path, g.line, g.arg)
			} else if g.mark != "" {
				run++
			}
		}
		if run == 0 {
			t.Errorf("%s: no part of it is run", path)
		}
	}
}

// A guide does what it shows: its files are written, its programs started and
// its commands run, in the order of the page, on a machine of its own.
func TestGuides(t *testing.T) {
	for _, path := range guidePages(t) {
		name := strings.TrimSuffix(filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)), ".md")
		t.Run(name, func(t *testing.T) {
			page, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			blocks := guideBlocks(string(page))
			needed(t, blocks)
			g := newGuide(t, path)
			for _, block := range blocks {
				g.follow(block)
			}
		})
	}
}

// needed skips a page whose programs this machine lacks.
func needed(t *testing.T, blocks []guideBlock) {
	t.Helper()
	for _, g := range blocks {
		if g.mark != runMark {
			continue
		}
		for _, program := range []string{"python3", "node", "sqlite3", "curl"} {
			if regexp.MustCompile(`(?m)^\$ (.*[|;(] *)?` + program + ` `).MatchString(g.text) {
				onPath(t, program)
			}
		}
	}
}

// guide is a page that is being followed.
type guide struct {
	*box
	page  string
	addr  string // of its director
	own   string // address for a program of the page
	state string // file that hands variables and the folder on to the next command
	last  string // the id that was printed last
	up    *process
}

// shownAddr is the address that pages show.
const shownAddr = "127.0.0.1:8080"

// shownPort is the port of what a page has its reader write.
const shownPort = "9017"

func newGuide(t *testing.T, page string) *guide {
	b := newBox(t)
	g := &guide{box: b, page: strings.TrimPrefix(page, "../"), addr: freePort(t), own: freePort(t), state: filepath.Join(b.root, "state.sh"), last: shownID}
	b.vars["PATH"] = filepath.Dir(binary) + ":" + b.bin + ":/usr/local/bin:/usr/bin:/bin"
	b.vars["SIGNALBOX_ADDR"] = g.addr
	return g
}

func (g *guide) follow(block guideBlock) {
	g.t.Helper()
	at := fmt.Sprintf("%s:%d", g.page, block.line)
	switch block.mark {
	case fileMark:
		mode := os.FileMode(0o600)
		if strings.HasPrefix(block.text, "#!") {
			mode = 0o700
		}
		g.file(filepath.Join(g.work, block.arg), g.here(block.text), mode)
	case terminalMark:
		g.terminal(at, block.text)
	case runMark:
		for _, steps := range transcripts(transcriptMark + "\n" + block.text + "```\n") {
			for _, s := range steps {
				g.play(fmt.Sprintf("%s:%d", g.page, block.line+s.line-2), s)
			}
		}
	case unitMark:
		g.unit(at, block)
	case exampleMark:
		source, err := os.ReadFile(filepath.Join("..", block.arg))
		if err != nil || !strings.Contains(squeezed(string(source)), squeezed(block.text)) {
			g.t.Errorf("%s: this is not in %s (%v)", at, block.arg, err)
		}
	}
	switch block.lang {
	case "yaml":
		var v any
		if err := yaml.Unmarshal([]byte(block.text), &v); err != nil {
			g.t.Errorf("%s: %v", at, err)
		}
	case "json":
		if !json.Valid([]byte(block.text)) {
			g.t.Errorf("%s: this is no JSON", at)
		}
	case "nginx", "caddyfile":
		g.proxy(at, block)
	}
}

func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }

// here replaces the addresses and the ID that pages show by the real ones.
func (g *guide) here(text string) string {
	_, port, _ := strings.Cut(g.own, ":")
	return strings.NewReplacer(shownAddr, g.addr, shownPort, port, shownID, g.last).Replace(text)
}

// terminal starts the program of a block and waits for each line that the block
// shows.
func (g *guide) terminal(at, text string) {
	g.t.Helper()
	line, shown, _ := strings.Cut(text, "\n")
	command := g.here(strings.TrimPrefix(line, "$ "))
	g.t.Logf("%s: $ %s", at, command)
	p := launchProgram(g.t, "/bin/sh", g.work, g.environ(), "-c", g.before()+"exec "+command)
	if strings.HasPrefix(command, "signalbox up") {
		g.up = p
		if strings.TrimSpace(shown) == "" {
			shown = "Submit a prompt…\n"
		}
	}
	for want := range strings.Lines(shown) {
		if want = strings.TrimSpace(strings.ReplaceAll(want, shownAddr, g.addr)); want == "" || want == "…" {
			continue
		}
		testkit.Wait(g.t, fmt.Sprintf("%s: %s prints %q", at, command, want), func() bool {
			ended := p.over()
			said := p.out.text() + p.err.text()
			found := slices.ContainsFunc(strings.Split(said, "\n"), func(line string) bool { return matches(want, strings.TrimSpace(line)) })
			if ended && !found {
				g.t.Fatalf("%s: %s ended without %q:\n%s", at, command, want, said)
			}
			return found
		})
	}
}

// before begins each command: it restores the variables and the folder of the
// previous one, because a page shows a single shell.
func (g *guide) before() string {
	return fmt.Sprintf("set -a\nif [ -f %[1]s ]; then . %[1]s; fi\n", g.state)
}

// play runs one command of a transcript and compares its output.
func (g *guide) play(at string, s step) {
	g.t.Helper()
	command := g.here(s.command)
	g.t.Logf("%s: $ %s", at, command)
	want := strings.ReplaceAll(s.want, shownAddr, g.addr)
	var shown printed
	var err error
	testkit.Within(long/3, func() bool {
		shown, err = g.shell(command)
		return !readOnly.MatchString(s.command) || shown.shows(want)
	})
	if err != nil {
		g.t.Errorf("%s: %s: %v", at, command, err)
	}
	if !shown.shows(want) {
		g.t.Fatalf("%s: %s printed\n%s\nthe page shows\n%s", at, command, shown.both.text(), s.want)
	}
	if strings.HasPrefix(command, "kill ") && g.up != nil {
		g.up.exits() // a reader sees it exit before restarting it
	}
	if ids := fullID.FindAllString(shown.both.text(), -1); len(ids) > 0 {
		g.last = ids[len(ids)-1]
	}
}

// readOnly are commands that only read. A reader is slower than a test between
// two commands, so these are repeated until they print what the page shows.
var readOnly = regexp.MustCompile(`^(signalbox (status|agents|accounts$|search|why|history|tools queues|tools tasks)\b|cat )`)

// printed is the output of a command on two pipes: the order of output and
// errors is unknown.
type printed struct{ out, errs, both *tape }

func newPrinted() printed { return printed{newTape(), newTape(), newTape()} }

// to connects a command's output.
func (p printed) to(cmd *exec.Cmd) {
	cmd.Stdout, cmd.Stderr = io.MultiWriter(p.out, p.both), io.MultiWriter(p.errs, p.both)
}

// shows reports whether a page shows what was printed: the output alone, or
// with the errors somewhere in it.
func (p printed) shows(want string) bool {
	if matches(want, p.out.text()) || matches(want, p.both.text()) {
		return true
	}
	lines := strings.SplitAfter(p.out.text(), "\n")
	for i := range len(lines) + 1 {
		if matches(want, strings.Join(lines[:i], "")+p.errs.text()+strings.Join(lines[i:], "")) {
			return true
		}
	}
	return false
}

// shell runs one command with the variables and the folder that the previous
// one left.
func (g *guide) shell(command string) (printed, error) {
	ctx, cancel := context.WithTimeout(g.t.Context(), long)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", fmt.Sprintf("%s%s\ncode=$?\n{ export -p; echo cd \"'$PWD'\"; } > %s\nexit $code\n", g.before(), command, g.state))
	cmd.Dir, cmd.Env, cmd.WaitDelay = g.work, g.environ(), time.Second
	p := newPrinted()
	p.to(cmd)
	return p, cmd.Run()
}

// unit verifies a unit with systemd, if that is available.
func (g *guide) unit(at string, block guideBlock) {
	g.t.Helper()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		g.t.Logf("%s: not verified: this machine has no systemd-analyze", at)
		return
	}
	path := g.file(filepath.Join("units", block.arg), strings.ReplaceAll(block.text, "/usr/local/bin/signalbox", binary), 0o600)
	if said, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(said), block.arg) {
		g.t.Errorf("%s: systemd-analyze verify: %v\n%s", at, err, said)
	}
}

// proxy verifies a proxy's configuration with the proxy, if that is
// available.
func (g *guide) proxy(at string, block guideBlock) {
	g.t.Helper()
	if open, shut := strings.Count(block.text, "{"), strings.Count(block.text, "}"); open != shut {
		g.t.Errorf("%s: %d { and %d }", at, open, shut)
	}
	if path, err := exec.LookPath("caddy"); err == nil && block.lang == "caddyfile" {
		file := g.file("Caddyfile", block.text, 0o600)
		if said, err := exec.Command(path, "validate", "--adapter", "caddyfile", "--config", file).CombinedOutput(); err != nil {
			g.t.Errorf("%s: caddy validate: %v\n%s", at, err, said)
		}
		return
	}
	g.t.Logf("%s: %s: its braces alone were checked", at, block.lang)
}

func TestBlocksOfGuidesAreParsedAndCompared(t *testing.T) {
	page := "<!-- signalbox-terminal: signalbox up -->\n```yaml signalbox-file a.yaml\nx: 1\n```\n```console not-run: needs systemd\n$ a\n```\n  ```sh\n  a\n  ```\n"
	blocks := guideBlocks(page)
	if len(blocks) != 4 || blocks[0].text != "$ signalbox up\n" || blocks[1].arg != "a.yaml" || blocks[1].text != "x: 1\n" || blocks[2].arg != "needs systemd" || blocks[3].text != "a\n" {
		t.Fatalf("%+v", blocks)
	}
	for n, ok := range []bool{true, true, true, false} {
		if said := blocks[n].fault(); (said == "") != ok {
			t.Errorf("%+v: %q", blocks[n], said)
		}
	}
	for _, g := range []guideBlock{{lang: "console", mark: notRunMark}, {lang: "python"}, {lang: "rust"}, {lang: "sh", mark: runMark}, {lang: "console", mark: "signalbox-trancript"}} {
		if g.fault() == "" {
			t.Errorf("%+v passes", g)
		}
	}
}

// The units and workflows of this repository are verified like those in the
// guides.
func TestGuidesVerifyTheUnitOfContrib(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "contrib", "signalbox.service"))
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{box: newBox(t)}
	g.unit("contrib/signalbox.service", guideBlock{arg: "signalbox.service", text: string(text)})
	files, err := filepath.Glob(filepath.Join("..", ".github", "*", "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no YAML below .github (%v)", err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
