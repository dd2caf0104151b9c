package signalbox_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} +(.*)$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	anchor  = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	span    = regexp.MustCompile("`[^`\n]*`")
)

// TestLinksOfDocsLeadSomewhere follows each link of a page to a file of this
// repository, and to the heading that it names.
func TestLinksOfDocsLeadSomewhere(t *testing.T) {
	pages := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			text, err := os.ReadFile(path)
			pages[path] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	for path, text := range pages {
		for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(prose(text), ""), -1) {
			to, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %s: %v", path, m[1], err)
				continue
			}
			if to.Scheme != "" {
				continue // an external link
			}
			followed++
			file := path
			if to.Path != "" {
				file = filepath.Join(filepath.Dir(path), to.Path)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s leads nowhere: %v", path, m[1], err)
			} else if page, ok := pages[file]; to.Fragment != "" && (!ok || !anchors(page)[to.Fragment]) {
				t.Errorf("%s: %s names no heading of %s", path, m[1], file)
			}
		}
	}
	if followed < 100 {
		t.Errorf("%d links of %d pages: this test does not parse the pages as they are written", followed, len(pages))
	}
}

// prose returns a page without its code blocks.
func prose(text string) string {
	var kept []string
	fence := ""
	for _, l := range strings.Split(text, "\n") {
		l = strings.TrimSpace(l)
		mark := l[:len(l)-len(strings.TrimLeft(l, "`"))]
		switch {
		case fence == "" && len(mark) >= 3:
			fence = mark
		case fence != "":
			if l == fence {
				fence = ""
			}
		default:
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}

// anchors returns the link targets of a page: its headings, as GitHub names them, and its
// explicit anchors.
func anchors(page string) map[string]bool {
	all, seen := map[string]bool{}, map[string]int{}
	for _, l := range strings.Split(prose(page), "\n") {
		for _, m := range anchor.FindAllStringSubmatch(l, -1) {
			all[m[1]] = true
		}
		if m := heading.FindStringSubmatch(l); m != nil {
			name := slug(m[1])
			if n := seen[name]; n > 0 {
				all[name+"-"+strconv.Itoa(n)] = true
			}
			seen[name]++
			all[name] = true
		}
	}
	return all
}

func slug(title string) string {
	title = linked.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(title))
}

var (
	where   = regexp.MustCompile(`(?m)^- Where: (.*)$`)
	station = regexp.MustCompile(`(?m)^### (\d+)\. `)
)

// TestStationsOfTheArchitectureAreInTheSource finds each function that
// docs/architecture.md names in the file, or the folder, that it names before it.
func TestStationsOfTheArchitectureAreInTheSource(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	ways := strings.Split(string(text), "\n## ")[1:]
	if len(ways) != 2 {
		t.Errorf("%d ways, want those of a prompt and of a tool call", len(ways))
	}
	for _, way := range ways {
		title, _, _ := strings.Cut(way, "\n")
		stations := strings.Split(way, "\n### ")[1:]
		if n := len(station.FindAllString(way, -1)); n != len(stations) || n < 8 || n > 12 {
			t.Errorf("%s: %d stations, %d of them numbered, want 8 to 12", title, len(stations), n)
		}
		for i, one := range stations {
			for _, part := range []string{strconv.Itoa(i+1) + ". ", "\n- Where: ", "\n- What: ", "\n- Durable: ", " dies: "} {
				if !strings.Contains(one, part) {
					t.Errorf("%s, station %d: no %q", title, i+1, strings.TrimSpace(part))
				}
			}
		}
		for _, m := range where.FindAllStringSubmatch(way, -1) {
			source := ""
			for _, name := range span.FindAllString(m[1], -1) {
				name = strings.Trim(name, "`")
				if strings.Contains(name, "/") && !strings.Contains(name, " ") || strings.HasSuffix(name, ".go") {
					source = sourceOf(t, name)
				} else if !strings.HasPrefix(name, "POST ") && !declares(source, name) {
					t.Errorf("%s: %s is not in what is named before it: %s", title, name, m[1])
				}
			}
		}
	}
}

// sourceOf returns the content of a file, or of all files in a folder and below.
func sourceOf(t *testing.T, name string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(filepath.FromSlash(name), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return all.String()
}

// declares reports whether a source has a function or, given as Type.Method, a method.
func declares(source, name string) bool {
	receiver, method, ok := strings.Cut(name, ".")
	if !ok {
		return regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `[(\[]`).MatchString(source)
	}
	return regexp.MustCompile(`(?m)^func \(\w+ \*?` + regexp.QuoteMeta(receiver) + `(\[[^\]]*\])?\) ` + regexp.QuoteMeta(method) + `\(`).MatchString(source)
}

// TestIndexOfDocsLeadsToEveryPage finds pages that docs/index.md does not link to.
func TestIndexOfDocsLeadsToEveryPage(t *testing.T) {
	index, err := os.ReadFile(filepath.Join("docs", "index.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"docs/*.md", "docs/tutorials/*.md", "docs/how-to/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil || len(pages) == 0 {
			t.Fatalf("%s: no pages (%v)", pattern, err)
		}
		for _, path := range pages {
			name := strings.TrimPrefix(filepath.ToSlash(path), "docs/")
			if name != "index.md" && !strings.Contains(string(index), "]("+name+")") {
				t.Errorf("docs/index.md does not lead to %s", path)
			}
		}
	}
}
