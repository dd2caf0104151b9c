package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// browser is one browser for all sessions: the Playwright MCP server with
// Debian's Chromium, in a queue of capacity 1.
type browser struct {
	*box
	director *process
	pages    string // URL of the visited pages
}

// pageForm is a page with a name and a field.
const pageForm = `<!doctype html><title>page of %[1]s</title><h1>%[1]s</h1><input id="field" aria-label="Field">`

func (b *box) browser(queue object) *browser {
	b.t.Helper()
	node := onPath(b.t, "node")
	b.withSystemPath()
	tmp, err := os.MkdirTemp("", "b") // short: it is part of a socket's path
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { os.RemoveAll(tmp) })
	server := object{
		"command": node, "cwd": b.work, "queue": "browser",
		"args": []string{
			fromNPM(b.t, "@playwright/mcp/cli.js"), "--headless", "--isolated", "--no-sandbox", "--browser", "chromium",
			"--executable-path", chromium(b.t), "--snapshot-mode", "none", "--timeout-settle", "50",
		},
		// The test recognizes its processes by this HOME.
		"env": object{"HOME": b.home, "TMPDIR": tmp, "XDG_CONFIG_HOME": b.home + "/.config", "XDG_CACHE_HOME": b.home + "/.cache"},
	}
	file := b.toolFile("tools.json", object{
		"queues": object{"default": object{"concurrent": 64}, "browser": queue}, "mcpServers": object{"playwright": server},
	})
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, pageForm, r.URL.Path[1:])
	}))
	b.t.Cleanup(pages.Close)
	d := b.director("--tools", file)
	b.toolsReady(d.url, "playwright")
	return &browser{box: b, director: d, pages: pages.URL}
}

// visitor is a session that uses the browser.
type visitor struct {
	*caller
	name string
	url  string
}

func (b *browser) visitor(name, era string) *visitor {
	b.t.Helper()
	return &visitor{b.over(b.director.url, era), name, b.pages + "/" + name}
}

func (v *visitor) open() *pending {
	return v.begin("playwright__browser_navigate", object{"url": v.url}, v.name)
}

func (v *visitor) write(text string) {
	v.b.t.Helper()
	v.says("playwright__browser_type", object{"element": "the field", "target": "#field", "text": text})
}

// sees returns what the session's current page shows: its owner, and the
// content of its field.
func (v *visitor) sees() [2]string {
	v.b.t.Helper()
	said := v.says("playwright__browser_evaluate", object{"function": "() => [document.title, document.querySelector('#field').value].join('|')"})
	for line := range strings.Lines(said) {
		var text string
		if json.Unmarshal([]byte(line), &text) == nil {
			if title, field, ok := strings.Cut(text, "|"); ok {
				return [2]string{title, field}
			}
		}
	}
	v.b.t.Fatalf("no result in %q", said)
	return [2]string{}
}

func (v *visitor) own(text string) [2]string { return [2]string{"page of " + v.name, text} }

func ended(t *testing.T, p *pending) {
	t.Helper()
	if res, err := p.ends(); err != nil || res.IsError {
		t.Fatalf("%s: %s, %v", p.tool, textOf(res), err)
	}
}

// Two sessions use one browser under a session lease: from a session's first
// call to its end the page belongs to it, while the other waits in the queue.
func TestTwoSessionsInOneBrowser(t *testing.T) {
	b := newBox(t).browser(object{"concurrent": 1, "session": object{"idle": "60s", "max_hold": "10m"}})
	ada, ben := b.visitor("ada", legacyEra), b.visitor("ben", legacyEra)
	ended(t, ada.open())
	waiting := ben.open()
	ben.hears("queued, position 1")
	ada.write("words of ada")
	if q := b.toolQueue(b.director.url, "browser"); q.InUse != 1 || q.Depth != 1 || !q.Holders[0].Leased {
		t.Errorf("%+v", q)
	}
	if got := ada.sees(); got != ada.own("words of ada") {
		t.Errorf("ada sees %q", got)
	}
	ada.Close() // the lease ends with the session
	ended(t, waiting)
	late := b.visitor("cleo", legacyEra).open()
	ben.write("words of ben")
	if got := ben.sees(); got != ben.own("words of ben") {
		t.Errorf("ben sees %q", got)
	}
	ben.Close()
	ended(t, late)
}

// The same without a lease, as a control: one call at a time does not prevent
// two sessions from disturbing each other. And the browser ends with
// Signalbox.
func TestTwoSessionsInOneBrowserWithoutALease(t *testing.T) {
	b := newBox(t).browser(object{"concurrent": 1})
	ada, ben := b.visitor("ada", legacyEra), b.visitor("ben", legacyEra)
	ended(t, ada.open())
	ended(t, ben.open())
	ben.write("words of ben")
	if got := ada.sees(); got != ben.own("words of ben") {
		t.Errorf("ada sees %q: then the lease is not what keeps them apart", got)
	}
	pids := b.toolServer(b.director.url, "playwright").PIDs
	if len(pids) < 3 {
		t.Errorf("node, a browser and its helpers are %v", pids)
	}
	b.director.signal(syscall.SIGKILL)
	b.director.exits()
	b.until("the browser is gone", func() bool {
		left := b.living()
		return !slices.ContainsFunc(pids, func(pid int) bool { return slices.Contains(left, pid) })
	})
}
