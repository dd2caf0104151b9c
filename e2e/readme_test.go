package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// transcriptMark is the info string of a block in the README that is run:
// lines that begin with "$ " are commands, the lines after them their output.
const transcriptMark = "```console signalbox-transcript"

// step is a command of a transcript and what it prints.
type step struct {
	command string
	want    string
	line    int
}

// transcripts reads the marked blocks of a document.
func transcripts(doc string) [][]step {
	var blocks [][]step
	inside := false
	for n, line := range strings.Split(doc, "\n") {
		switch {
		case !inside && strings.TrimRight(line, " ") == transcriptMark:
			inside, blocks = true, append(blocks, nil)
		case inside && strings.HasPrefix(line, "```"):
			inside = false
		case inside:
			last := &blocks[len(blocks)-1]
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				*last = append(*last, step{command: command, line: n + 1})
			} else if len(*last) > 0 {
				(*last)[len(*last)-1].want += line + "\n"
			}
		}
	}
	return blocks
}

// matches compares output with a transcript, in which … stands for anything
// on a line, and a separate line … for any lines.
func matches(want, got string) bool {
	form := regexp.QuoteMeta(strings.TrimRight(want, "\n"))
	form = regexp.MustCompile(`(^|\n)…(\n|$)`).ReplaceAllString(form, `(?s:.*)`)
	form = strings.ReplaceAll(form, "…", ".*")
	return regexp.MustCompile(`^` + form + `$`).MatchString(strings.TrimRight(got, "\n"))
}

// The README's transcripts are true: they are run with the binary, in a new
// home next to a new signalbox up with the demo agent, each block after the
// one before. A block may show only standard output, or standard error too.
func TestREADME(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := transcripts(string(doc))
	if len(blocks) == 0 {
		t.Fatalf("README.md has no block marked %q: no part of it is tested", transcriptMark)
	}
	b := newBox(t)
	b.vars["PATH"] = filepath.Dir(binary) + ":/usr/local/bin:/usr/bin:/bin"
	b.up("--agents", "demo")
	last := shownID
	for _, steps := range blocks {
		for _, s := range steps {
			s.command = strings.ReplaceAll(s.command, shownID, last)
			if ids := fullID.FindAllString(b.play(s), -1); len(ids) > 0 {
				last = ids[len(ids)-1]
			}
		}
	}
}

// shownID in a command stands for the last printed ID.
const shownID = "queue-…"

var fullID = regexp.MustCompile(`queue-[0-9a-z]{26}`)

// play runs one command of a transcript and returns what it printed.
func (b *box) play(s step) string {
	b.t.Helper()
	b.t.Logf("README.md:%d: $ %s", s.line, s.command)
	cmd := exec.CommandContext(b.ctx(), "/bin/sh", "-c", s.command)
	cmd.Dir, cmd.Env = b.work, b.environ()
	p := newPrinted()
	p.to(cmd)
	if err := cmd.Run(); err != nil {
		b.t.Errorf("README.md:%d: %s: %v", s.line, s.command, err)
	}
	if !p.shows(s.want) {
		b.t.Errorf("README.md:%d: %s printed\n%s\nthe README shows\n%s", s.line, s.command, p.both.text(), s.want)
	}
	return p.out.text()
}

func TestTranscriptsAreReadAndCompared(t *testing.T) {
	doc := "text\n" + transcriptMark + "\n$ one\nout 1\nout …\n$ two\n```\n```console\n$ not this\n```\n"
	blocks := transcripts(doc)
	if len(blocks) != 1 || len(blocks[0]) != 2 || blocks[0][0].command != "one" || blocks[0][0].want != "out 1\nout …\n" || blocks[0][1].want != "" {
		t.Fatalf("%+v", blocks)
	}
	for want, cases := range map[string]map[string]bool{
		"a … c\n":    {"a b c": true, "a b c\nd": false, "a c": false, "x a b c": false},
		"a\n…\nc\n":  {"a\nb\nb\nc": true, "a\nc": true, "a\nb": false},
		"":           {"": true, "noise": false},
		"(x) [y]*\n": {"(x) [y]*\n": true, "x y": false},
	} {
		for got, ok := range cases {
			if matches(want, got) != ok {
				t.Errorf("%q against %q: %t", want, got, !ok)
			}
		}
	}
}
