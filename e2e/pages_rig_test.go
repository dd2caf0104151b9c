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

// chrome is the one browser for all tests of the pages. Each test has a
// separate context in it, like a private window: cookies, storage and workers.
var chrome struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

// unseen are parts of a window that the tests do not use: the list below the
// address bar, which each window prepares as a page in a process of its own (a
// second of CPU time), and a spare process for a page that is never opened.
const unseen = "Translate,WebUIOmniboxPopup,WebUIOmniboxAimPopup,PreloadTopChromeWebUI,SpareRendererForSitePerProcess"

func startChrome(path string) {
	home, err := os.MkdirTemp("", "chrome") // the reaper recognizes it by this
	if err != nil {
		chrome.err = err
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 900), chromedp.Flag("disable-features", unseen+",BackForwardCache"), chromedp.Flag("disable-back-forward-cache", true), chromedp.UserDataDir(filepath.Join(home, "data")),
		chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home+"/.config", "XDG_CACHE_HOME="+home+"/.cache", "TZ=UTC"))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	browser, end := chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // errors are also returned
	chrome.ctx, chrome.stop = browser, func() { end(); cancel() }
	chrome.err = chromedp.Do(browser, chromedp.Navigate("about:blank"))
}

// stopChrome ends the browser, if a test has used it.
func stopChrome() {
	if chrome.stop != nil {
		chrome.stop()
	}
}

// window is the browser window of one user: its tabs share cookies and
// workers.
type window struct {
	t     *testing.T
	url   string // of the director
	first context.Context
	tabs  int
	link  string // with which the first tab logs in; "": it does not
}

// window opens a window. Without Chromium it skips the test with the reason.
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

// ownWindow is a window in which the owner is logged in.
func (b *box) ownWindow(url string) *window {
	b.t.Helper()
	w := b.window(url)
	w.link = b.loginLink(url)
	return w
}

// tab is a page of the dashboard in its own tab. An error in its console fails
// the test, and so does a violation of the pages' content security policy.
type tab struct {
	t   *testing.T
	w   *window
	ctx context.Context

	mu      sync.Mutex
	wrong   []string
	allowed []string // errors that the test causes
}

// tabOptions configure a tab before it opens the page.
type tabOptions struct {
	width, height int64
	colours       string // light (default), dark or forced
	tool          string // an additional script in each page, exempt from the policy
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

// set prepares the tab: its size, its colours, and the functions of
// tabScript.
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
		if err == nil { // every tab behaves as if it were visible and focused
			_, err = cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		}
		return err
	}))
	p.seenAs(look{o.width, o.height, o.colours})
}

// seenAs sets the size of the tab and the preferred colours.
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

// hear records errors in the page.
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

// allow names errors that the test itself causes.
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

// run runs an action in the tab.
func (p *tab) run(what string, action chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, long)
	defer cancel()
	if err := chromedp.Do(ctx, action); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// goTo opens a path of the director and waits until the page is loaded.
func (p *tab) goTo(path string) {
	p.t.Helper()
	p.run("open "+path, chromedp.Navigate(p.w.url+path))
}

// ask evaluates an expression. If it has no value yet, or the page is being
// left, it returns an error.
func (p *tab) ask(expression string, into any) error {
	ctx, cancel := context.WithTimeout(p.ctx, long)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf("JSON.stringify((%s) ?? null)", expression)))
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

// has returns the current value of an expression.
func has[T any](p *tab, expression string) (value T) {
	p.t.Helper()
	if err := p.ask(expression, &value); err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// watch becomes true as soon as a condition is met, and false after two
// seconds. The page itself polls: polling from outside costs the browser ten
// times as much.
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
