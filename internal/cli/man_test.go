package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestManPagesMatchHelp checks that every visible command has a page with each of
// its flags.
func TestManPagesMatchHelp(t *testing.T) {
	all := commands()
	pages := manuals(all[0], "1.2.3", "2026-11-27")
	if len(pages) != len(all) || len(all) < 40 {
		t.Errorf("%d pages of %d commands", len(pages), len(all))
	}
	for _, cmd := range all {
		page := pages[manName(cmd)+".1"]
		if !strings.HasPrefix(page, ".TH \"SIGNALBOX") || !strings.Contains(page, roff(cmd.Short)) {
			t.Errorf("%s: %.80q", cmd.CommandPath(), page)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if want := roff("--" + f.Name); !f.Hidden && f.Name != "help" && !strings.Contains(page, `\fB`+want+`\fR`) {
				t.Errorf("%s: no --%s", cmd.CommandPath(), f.Name)
			}
		})
	}
	if _, found := pages["signalbox-man.1"]; found {
		t.Error("the hidden command man has a page")
	}
}

func TestRoffEscapesRequests(t *testing.T) {
	for text, want := range map[string]string{
		".so /etc/passwd": `\&.so /etc/passwd`,
		"a\n.b":           "a\n" + `\&.b`,
		"'ex":             `\(aqex`,
		`a\fB`:            `a\(rsfB`,
		"--flag":          `\-\-flag`,
		"wait…":           `wait\[u2026]`,
	} {
		if got := roff(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestGroffAcceptsManPages runs groff over the pages with all warnings on.
func TestGroffAcceptsManPages(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("groff is not installed: run make setup")
		}
		t.Skip("groff is not installed: run make setup")
	}
	dir := t.TempDir()
	root := commands()[0]
	root.SetArgs([]string{"man", dir, "--date", "2026-11-27"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "*.1"))
	if len(pages) < 40 {
		t.Fatalf("%d pages", len(pages))
	}
	if output, err := exec.Command(groff, append([]string{"-man", "-ww", "-z", "-Tutf8"}, pages...)...).CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("%v\n%s", err, output)
	}
	text, err := exec.Command(groff, "-man", "-Tascii", "-P-cbou", filepath.Join(dir, "signalbox-submit.1")).Output()
	if err != nil || !strings.Contains(string(text), "signalbox submit PROMPT") || !strings.Contains(string(text), "--wait") {
		t.Errorf("%v\n%s", err, text)
	}
}
