package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// chrome is the one browser of all tests of the pages. Each test has a context
// of its own in it, as a private window has: cookies, storage and workers.
var chrome struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

// unseen are parts of a window that nobody sees here: the list below the address
// bar, which each window prepares as a page in a process of its own (a second
// of work), and a process kept ready for a page that does not come.
const unseen = "Translate,WebUIOmniboxPopup,WebUIOmniboxAimPopup,PreloadTopChromeWebUI,SpareRendererForSitePerProcess"

func startChrome(path string) {
	home, err := os.MkdirTemp("", "chrome") // by which the reaper knows it
	if err != nil {
		chrome.err = err
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 900), chromedp.Flag("disable-features", unseen+",BackForwardCache"), chromedp.Flag("disable-back-forward-cache", true), chromedp.UserDataDir(filepath.Join(home, "data")),
		chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home+"/.config", "XDG_CACHE_HOME="+home+"/.cache", "TZ=UTC"))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	browser, end := chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // what is wrong comes as an error too
	chrome.ctx, chrome.stop = browser, func() { end(); cancel() }
	chrome.err = chromedp.Do(browser, chromedp.Navigate("about:blank"))
}

// stopChrome ends the browser, if a test has used it.
func stopChrome() {
	if chrome.stop != nil {
		chrome.stop()
	}
}

// window is what one person has open: tabs that share cookies and workers.
type window struct {
	t     *testing.T
	url   string // of the director
	first context.Context
	tabs  int
	link  string // by which the first tab logs in; "": it does not
}

// window opens one. Without Chromium the test is skipped with the reason.
func (b *box) window(url string) *window {
	b.t.Helper()
	path := chromium(b.t)
	chrome.once.Do(func() { startChrome(path) })
	if chrome.err != nil {
		b.t.Fatalf("Chromium: %v", chrome.err)
	}
	ctx, cancel := chromedp.NewContext(chrome.ctx, chromedp.WithNewBrowserContext())
	b.t.Cleanup(cancel)
	return &window{t: b.t, url: url, first: ctx}
}

// ownWindow is a window in which the owner has logged in.
func (b *box) ownWindow(url string) *window {
	b.t.Helper()
	w := b.window(url)
	w.link = b.loginLink(url)
	return w
}

// tab is a page of the dashboard in a tab of its own. What a person would find
// in its console as an error fails the test, and so does what the policy of the
// pages had to stop.
type tab struct {
	t   *testing.T
	w   *window
	ctx context.Context

	mu      sync.Mutex
	wrong   []string
	allowed []string // errors that the test brings about
}

// tabOptions change what a tab is before it opens the page.
type tabOptions struct {
	width, height int64
	colours       string // light (default), dark or forced
	tool          string // a script that each page has besides, past the policy
}

func (w *window) tab(path string) *tab { w.t.Helper(); return w.tabWith(path, tabOptions{}) }

func (w *window) tabWith(path string, o tabOptions) *tab {
	w.t.Helper()
	ctx := w.first
	if w.tabs++; w.tabs > 1 {
		var cancel context.CancelFunc
		ctx, cancel = chromedp.NewContext(w.first)
		w.t.Cleanup(cancel)
	}
	p := &tab{t: w.t, w: w, ctx: ctx}
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		w.t.Fatalf("a tab: %v", err)
	}
	p.set(o)
	w.t.Cleanup(p.finish)
	if w.tabs == 1 && w.link != "" {
		p.goTo(w.link)
		p.until("the owner is logged in", `localStorage.getItem("signalbox-login") && location.pathname.startsWith("/ui")`)
	}
	p.goTo(path)
	return p
}

// set prepares the tab: its size, its colours, and the words of tabScript.
func (p *tab) set(o tabOptions) {
	p.t.Helper()
	if o.width == 0 {
		o.width, o.height = 1280, 900
	}
	p.run("prepare the tab", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: tabScript})
		if err == nil && o.tool != "" {
			_, err = cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: o.tool})
		}
		if err == nil {
			_, err = cdp.Call(ctx, t, cdplog.Enable, cdp.Empty{})
		}
		if err == nil {
			_, err = cdp.Call(ctx, t, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: o.tool != ""})
		}
		if err == nil { // every tab believes that somebody looks at it
			_, err = cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		}
		return err
	}))
	p.seenAs(look{o.width, o.height, o.colours})
}

// seenAs sets the size of the tab, and which colours its person prefers.
func (p *tab) seenAs(l look) {
	p.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}, {Name: "prefers-reduced-motion", Value: "reduce"}, {Name: "forced-colors", Value: "none"}}
	switch l.colours {
	case "dark":
		features[0].Value = "dark"
	case "forced":
		features[2].Value = "active"
	}
	p.run("look at it "+l.String(), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		if err == nil {
			_, err = cdp.Call(ctx, t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
				Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.width < 640,
			})
		}
		return err
	}))
}

// hear keeps what goes wrong in the page.
func (p *tab) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.note(saidBy(e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			p.note(saidBy("", e.Args...))
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError {
			p.note(e.Entry.Text + " " + e.Entry.URL)
		}
	}
}

func saidBy(text string, all ...*runtime.RemoteObject) string {
	for _, one := range all {
		if one != nil {
			text += " " + string(one.Value) + one.Description
		}
	}
	return text
}

func (p *tab) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, text)
}

// allow names errors that are the test's own doing.
func (p *tab) allow(texts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, texts...)
}

func (p *tab) finish() {
	if p.t.Failed() {
		var said string
		ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
		defer cancel()
		said, _ = chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
		p.t.Logf("the page, at the end: %s", tail(said))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.wrong {
		if !p.allows(text) {
			p.t.Errorf("the console says: %s", text)
		}
	}
}

func (p *tab) allows(text string) bool {
	for _, allowed := range p.allowed {
		if strings.Contains(text, allowed) {
			return true
		}
	}
	return false
}

// run does something in the tab.
func (p *tab) run(what string, action chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, long)
	defer cancel()
	if err := chromedp.Do(ctx, action); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// goTo opens a path of the director and waits until the page is there.
func (p *tab) goTo(path string) {
	p.t.Helper()
	p.run("open "+path, chromedp.Navigate(p.w.url+path))
}

// ask evaluates an expression; what has no value yet, and a page that is being
// left, are told by ok.
func (p *tab) ask(expression string, into any) error {
	ctx, cancel := context.WithTimeout(p.ctx, long)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf("JSON.stringify((%s) ?? null)", expression)))
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

// has is the value of an expression now.
func has[T any](p *tab, expression string) (value T) {
	p.t.Helper()
	if err := p.ask(expression, &value); err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// watch is true at once where a condition is met, else as soon as it is, and
// false after two seconds. The page itself looks: a question from outside each
// time costs the browser ten times as much.
const watch = `((met) => met() || new Promise((answer) => {
	const end = performance.now() + 2000;
	(function look() {
		const is = met();
		is || performance.now() > end ? answer(is) : setTimeout(look, 20);
	})();
}))(() => { try { return Boolean(%s); } catch { return false; } })`

// until waits for a condition in the page.
func (p *tab) until(what, condition string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, long)
	defer cancel()
	var met bool
	var err error
	testkit.Within(long, func() bool {
		met, err = chromedp.Run(ctx, chromedp.Evaluate[bool](fmt.Sprintf(watch, condition), chromedp.EvalAwaitPromise))
		return err == nil && met || ctx.Err() != nil
	})
	if err != nil || !met {
		p.t.Fatalf("not within %s: %s (%v)", long, what, err)
	}
}
