package e2e_test

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/signalbox-ai/signalbox/internal/soak"
)

// site is the documentation website, built once for all tests.
var site struct {
	once  sync.Once
	err   error
	files map[string]string // by path
	dir   string
}

func builtSite(t *testing.T) {
	t.Helper()
	onPath(t, "node")
	packages := os.Getenv("SIGNALBOX_SITE_NPM")
	if packages == "" {
		packages = filepath.Join("..", ".cache", "site")
	}
	if _, err := os.Stat(filepath.Join(packages, ".installed")); err != nil {
		lacking(t, "what builds the website is not installed: run make setup and set SIGNALBOX_SITE_NPM to .cache/site")
	}
	site.once.Do(func() {
		site.dir, site.err = os.MkdirTemp("", "site") // removed with the folder of all tests
		if site.err != nil {
			return
		}
		site.dir = filepath.Join(site.dir, "site")
		var said bytes.Buffer
		build := exec.Command("../scripts/build-site.sh", site.dir)
		build.Stderr = &said
		if err := build.Run(); err != nil {
			t.Errorf("build-site.sh: %v\n%s", err, said.String())
			site.err = err
			return
		}
		site.files = map[string]string{}
		site.err = filepath.WalkDir(site.dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(name)
			rel, _ := filepath.Rel(site.dir, name)
			site.files[filepath.ToSlash(rel)] = string(text)
			return err
		})
	})
	if site.err != nil {
		t.Fatalf("the site is not built: %v", site.err)
	}
}

var (
	htmlLink   = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	htmlID     = regexp.MustCompile(`\bid="([^"]*)"`)
	htmlLoads  = regexp.MustCompile(`<(?:script|img|link|iframe|source|video|object|embed)\b[^>]*(?:href|src|srcset|data)="(?:[a-z]+:)?//[^>]*>`)
	mdLink     = regexp.MustCompile("`[^`\n]*`|\\]\\(([^()\\s]+)\\)")
	mdFence    = regexp.MustCompile("(?ms)^[ \t]*(`{3,})[^`\n]*\n.*?^[ \t]*`{3,}[ \t]*$")
	llmsEntry  = regexp.MustCompile(`^- \[[^\]]+\]\(([^)]+)\): \S`)
	unescapeQM = strings.NewReplacer("&amp;", "&", "&quot;", `"`)
)

// lead resolves a link in a file of the site.
func lead(from, href string) (to, fragment string, away bool, ok bool) {
	u, err := url.Parse(unescapeQM.Replace(href))
	if err != nil {
		return "", "", false, false
	}
	if u.Scheme != "" {
		return "", "", true, true
	}
	to = from
	if u.Path != "" {
		to = path.Join(path.Dir(from), u.Path)
	}
	_, ok = site.files[to]
	return to, u.Fragment, false, ok
}

// Every page of docs/ is on the site and names its Markdown twin; all links of
// pages and twins work; and nothing is loaded from elsewhere.
func TestEveryLinkOfTheSiteLeadsSomewhere(t *testing.T) {
	t.Parallel()
	builtSite(t)
	ids := map[string][]string{}
	for name, text := range site.files {
		for _, m := range htmlID.FindAllStringSubmatch(text, -1) {
			if slices.Contains(ids[name], m[1]) {
				t.Errorf("%s has %q twice: a heading and a part of the frame, or two headings", name, m[1])
			}
			ids[name] = append(ids[name], m[1])
		}
	}
	pages, links := 0, 0
	for name, text := range site.files {
		var all []string
		switch path.Ext(name) {
		case ".html":
			pages++
			twin := strings.TrimSuffix(name, ".html") + ".md"
			if _, ok := site.files[twin]; !ok {
				t.Errorf("%s has no twin", name)
			}
			if !strings.Contains(text, `<link rel="alternate" type="text/markdown" title="This page as Markdown" href="`+path.Base(twin)+`">`) {
				t.Errorf("%s does not name its twin", name)
			}
			for _, m := range htmlLoads.FindAllString(text, -1) {
				t.Errorf("%s loads from elsewhere: %s", name, m)
			}
			for _, m := range htmlLink.FindAllStringSubmatch(text, -1) {
				all = append(all, m[1])
			}
		case ".md":
			for _, m := range mdLink.FindAllStringSubmatch(mdFence.ReplaceAllString(text, ""), -1) {
				if m[1] != "" {
					all = append(all, m[1])
				}
			}
		}
		for _, href := range all {
			to, fragment, away, ok := lead(name, href)
			links++
			page := strings.TrimSuffix(to, ".md")
			switch {
			case away:
			case !ok:
				t.Errorf("%s: %s leads nowhere", name, href)
			case strings.HasSuffix(name, ".md") && strings.HasSuffix(to, ".html"):
				t.Errorf("%s: %s leads from a twin to a page", name, href)
			case fragment != "" && !slices.Contains(ids[strings.TrimSuffix(page, ".html")+".html"], fragment):
				t.Errorf("%s: %s names no heading", name, href)
			}
		}
	}
	err := filepath.WalkDir("../docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".md") {
			rel, _ := filepath.Rel("../docs", name)
			if page := strings.TrimSuffix(filepath.ToSlash(rel), ".md") + ".html"; site.files[page] == "" {
				t.Errorf("%s is not on the site", name)
			}
		}
		return err
	})
	if err != nil || pages < 60 || links < 3000 {
		t.Errorf("%d pages with %d links (%v): they are not read as they are written", pages, links, err)
	}
}

// llms.txt has the expected format, and links to every page of docs/index.md
// as Markdown.
func TestLLMsTextLeadsToEveryTwin(t *testing.T) {
	t.Parallel()
	builtSite(t)
	lines := strings.Split(strings.TrimSpace(site.files["llms.txt"]), "\n")
	if len(lines) < 5 || lines[0] != "# Signalbox" || lines[1] != "" || !strings.HasPrefix(lines[2], "> ") {
		t.Fatalf("llms.txt begins with %q", lines[:min(4, len(lines))])
	}
	named := map[string]bool{}
	sections := 0
	for _, line := range lines[4:] {
		if strings.HasPrefix(line, "## ") {
			sections++
		} else if line != "" && sections > 0 {
			m := llmsEntry.FindStringSubmatch(line)
			if m == nil {
				t.Errorf("llms.txt: %q is not a link with a description", line)
				continue
			}
			if to, _, away, ok := lead("llms.txt", m[1]); away || !ok || !strings.HasSuffix(to, ".md") {
				t.Errorf("llms.txt: %s leads to no Markdown of the site", m[1])
			} else {
				named[to] = true
			}
		}
	}
	if sections < 5 || !strings.Contains(site.files["llms.txt"], "\n## Optional\n") {
		t.Errorf("llms.txt has %d sections", sections)
	}
	for name := range site.files {
		if strings.HasSuffix(name, ".md") && name != "index.md" && !named[name] && (!strings.HasPrefix(name, "decisions/") || name == "decisions/index.md") {
			t.Errorf("llms.txt does not lead to %s", name)
		}
	}
}

// servedSite serves the site below a path, and records the requests.
func servedSite(t *testing.T) (address string, asked func() []string) {
	t.Helper()
	builtSite(t)
	var mu sync.Mutex
	var all []string
	files := http.StripPrefix("/some/where", http.FileServer(http.Dir(site.dir)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all = append(all, r.URL.Path)
		mu.Unlock()
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/some/where/", func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) }
}

// findOnSite searches with the keyboard and follows the first result.
func (p *tab) findOnSite(words, page string) {
	p.t.Helper()
	p.keyUntil("/", "the search is open", `document.querySelector("dialog").open`)
	p.types(words)
	p.showsIn("#site-search-state", "result")
	p.until("the best result is of "+page, `document.querySelector("#site-search-results a").pathname.endsWith(`+jsText(page)+`)`)
	p.keys(kb.Enter)
	p.until("it is open", `location.pathname.endsWith(`+jsText(page)+`) && !document.querySelector("dialog").open`)
}

// The search needs only a static file server, in any folder, and loads
// nothing before the first search.
func TestTheSiteIsSearchedInTheBrowser(t *testing.T) {
	b := newBox(t)
	address, asked := servedSite(t)
	p := b.window(address).tab("index.html")
	p.showsIn("h1", "Signalbox documentation")
	if text := site.files["cli.html"]; !strings.Contains(text, "<pre><code>signalbox submit PROMPT [flags]") || !strings.Contains(text, "<table>") {
		t.Error("cli.html has no block or no table")
	}
	if slices.Contains(asked(), "/some/where/search.js") {
		t.Error("the index is loaded before someone searches")
	}
	p.findOnSite("exit codes", "/cli.html")
	p.findOnSite("session lease", "/tools.html")
	p.findOnSite("reverse proxy caddy", "/how-to/reverse-proxy.html")
	p.keyUntil("/", "the search is open", `document.querySelector("dialog").open`)
	p.types("xyzzyplugh")
	p.showsIn("#site-search-state", "Nothing has")
	p.keys(kb.Escape)
	p.until("the search is closed", `!document.querySelector("dialog").open`)
	p.tabTo("a page in the list of pages", `el.closest(".pages") && el.innerText === "Concepts"`)
	p.keys(kb.Enter)
	p.showsIn("h1", "Concepts")
	p.click("#site-theme", "Theme: auto")
	p.click("#site-theme", "Theme: light")
	p.goTo("glossary.html")
	p.showsIn("#site-theme", "Theme: dark")
	if got := has[string](p, "getComputedStyle(document.body).backgroundColor"); got != "rgb(15, 18, 22)" {
		t.Errorf("the dark ground is %s", got)
	}
}

// A copy of the site on disk can be read and searched without a server.
func TestTheSiteIsReadFromADisk(t *testing.T) {
	b := newBox(t)
	builtSite(t)
	p := b.window("file://" + site.dir + "/").tab("how-to/backup.html")
	p.showsIn("h1", "Back up")
	p.findOnSite("stalled run", "/concepts.html")
}

// The site is accessible: no violation of WCAG A and AA, in light and dark and
// on a phone, and nothing scrolls sideways.
func TestEverybodyCanUseTheSite(t *testing.T) {
	b := newBox(t)
	tool := axe(t)
	address, _ := servedSite(t)
	w := b.window(address)
	for n, look := range []tabOptions{{tool: tool}, {tool: tool, colours: "dark"}, {tool: tool, width: 390, height: 844}} {
		p := w.tabWith("index.html", look)
		axed := func(view int) []string { // in make test one view per look, and the search in the last
			if !soak.On() && view != n && (view < 3 || n < 2) {
				return nil
			}
			return p.violations(wcagRules)
		}
		for view, page := range []string{"index.html", "concepts.html", "how-to/backup.html"} {
			p.goTo(page)
			p.until("the page has started", `!document.querySelector(".tools").hidden`)
			for _, v := range axed(view) {
				t.Errorf("%s (%s, width %d): %s", page, look.colours, look.width, v)
			}
			if over := has[int](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
				t.Errorf("%s is %d wider than a window of %d", page, over, look.width)
			}
		}
		p.keyUntil("/", "the search is open", `document.querySelector("dialog").open`)
		p.types("lease")
		p.until("there are results", `document.querySelectorAll("#site-search-results a").length > 0`)
		for _, v := range axed(3) {
			t.Errorf("the search (%s, width %d): %s", look.colours, look.width, v)
		}
	}
}
