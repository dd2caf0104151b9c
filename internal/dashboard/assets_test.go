package dashboard_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// own calls f with each file below assets, except vendor, that has one of the
// endings.
func own(t *testing.T, f func(name, text string), endings ...string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir("assets", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "vendor":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		for _, ending := range endings {
			if strings.HasSuffix(name, ending) {
				b, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				n++
				f(name, string(b))
			}
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Fatalf("no files: %v", err)
	}
}

// No module contains a function that turns text into markup or code. The policy
// blocks most of them in the browser; this test finds them earlier.
func TestNothingBecomesMarkup(t *testing.T) {
	forbidden := regexp.MustCompile(`\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment|srcdoc|javascript:`)
	own(t, func(name, text string) {
		for i, line := range strings.Split(text, "\n") {
			if found := forbidden.FindString(line); found != "" {
				t.Errorf("%s:%d has %s: text from agents and people is shown only as text nodes", name, i+1, found)
			}
		}
	}, ".js", ".html")
}

// The policy refuses style attributes and inline handlers. style={{…}} is set by a
// script and is allowed.
func TestNothingInline(t *testing.T) {
	style := regexp.MustCompile(`\sstyle=(["'][^"']|\$\{[^{])`)
	handler := regexp.MustCompile(`\son[a-z]+=["']`)
	own(t, func(name, text string) {
		for i, line := range strings.Split(text, "\n") {
			if style.MatchString(line) || handler.MatchString(line) {
				t.Errorf("%s:%d has something inline: %s", name, i+1, strings.TrimSpace(line))
			}
		}
	}, ".js", ".html")
}

// Each named page has its module and its style, and no file refers to other hosts.
func TestPagesAreWhole(t *testing.T) {
	b, err := os.ReadFile("assets/shell/pages.js")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`import\("\.\./pages/([a-z]+)\.js"\)`).FindAllStringSubmatch(string(b), -1)
	if len(named) < 8 {
		t.Fatalf("only %d pages are named", len(named))
	}
	for _, m := range named {
		for _, ending := range []string{".js", ".css"} {
			if _, err := os.Stat("assets/pages/" + m[1] + ending); err != nil {
				t.Errorf("the page %s lacks a file: %v", m[1], err)
			}
		}
	}
	elsewhere := regexp.MustCompile(`https?://[^\s"'` + "`" + `]+`)
	own(t, func(name, text string) {
		for _, found := range elsewhere.FindAllString(text, -1) {
			if !strings.HasPrefix(found, "http://www.w3.org/") {
				t.Errorf("%s names %s: the pages need no other host", name, found)
			}
		}
	}, ".js", ".css", ".html")
}

// Every relative import leads to a file: there is no build step that would check
// it.
func TestImportsLeadSomewhere(t *testing.T) {
	from := regexp.MustCompile(`(?m)(?:^(?:import|export)\b[^;"']*?|\bimport\(|new URL\()["'](\.[^"']+)["']`)
	own(t, func(name, text string) {
		for _, m := range from.FindAllStringSubmatch(text, -1) {
			target := filepath.Join(filepath.Dir(name), m[1])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s imports %s, which is not there", name, m[1])
			}
		}
	}, ".js")
}

// Pages work in right-to-left layouts: no style names left or right.
func TestSidesAreLogical(t *testing.T) {
	physical := regexp.MustCompile(`(?:margin|padding|border)-(?:left|right)\b|[{;\s](?:left|right):|(?:text-align|float|clear): *(?:left|right)\b`)
	own(t, func(name, text string) {
		for i, line := range strings.Split(text, "\n") {
			if found := physical.FindString(line); found != "" {
				t.Errorf("%s:%d names a side, %q: say inline-start, inline-end, start or end", name, i+1, strings.TrimSpace(found))
			}
		}
	}, ".css")
}

func TestFilesAreShort(t *testing.T) {
	own(t, func(name, text string) {
		if n := strings.Count(text, "\n"); n > 300 {
			t.Errorf("%s has %d lines; at most 300 is the rule", name, n)
		}
	}, ".js", ".css")
}
