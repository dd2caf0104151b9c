// Package browser drives a headless Chromium for the benchmarks of the pages.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience bounds every wait for a page.
const patience = 60 * time.Second

// Browser is a running Chromium.
type Browser struct {
	ctx  context.Context
	stop func()
}

// Start starts a Chromium with a profile below dir.
func Start(ctx context.Context, dir string) (*Browser, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, errors.New("chromium is not installed: run make setup")
	}
	home := filepath.Join(dir, "chromium")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(filepath.Join(home, "data")),
		chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "TZ=UTC"))
	allocator, cancel := chromedp.NewExecAllocator(ctx, options...)
	browser, end := chromedp.NewContext(allocator)
	stop := func() { end(); cancel() }
	if err := chromedp.Do(browser, chromedp.Navigate("about:blank")); err != nil {
		stop()
		return nil, fmt.Errorf("chromium: %w", err)
	}
	return &Browser{browser, stop}, nil
}

// Stop ends it.
func (b *Browser) Stop() { b.stop() }

// Look says how a page is shown.
type Look struct {
	Width, Height int64 // default 1280 × 800
	Dark          bool
	Script        string // runs before the page's scripts
}

// Page is a page in its own window, with nothing cached.
type Page struct {
	ctx   context.Context
	close func()
}

// Open makes a page; Go loads something into it.
func (b *Browser) Open(l Look) (*Page, error) {
	if l.Width == 0 {
		l.Width, l.Height = 1280, 800
	}
	scheme := map[bool]string{false: "light", true: "dark"}[l.Dark]
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	p := &Page{ctx, cancel}
	err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		if err == nil {
			_, err = cdp.Call(ctx, t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
				Width: l.Width, Height: l.Height, DeviceScaleFactor: 1, Mobile: l.Width < 640,
			})
		}
		if err == nil {
			_, err = cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
		}
		if err == nil && l.Script != "" {
			_, err = cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: l.Script})
		}
		return err
	}))
	if err != nil {
		cancel()
		return nil, err
	}
	return p, nil
}

// Close closes it.
func (p *Page) Close() { p.close() }

// Go loads an address.
func (p *Page) Go(address string) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, chromedp.Navigate(address))
}

// Ask evaluates an expression and stores its value in into.
func (p *Page) Ask(expression string, into any) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf("JSON.stringify((%s) ?? null)", expression)))
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

// Until waits for a condition in the page.
func (p *Page) Until(condition string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var met bool
		err := p.Ask("Boolean("+condition+")", &met)
		if err == nil && met {
			return nil
		}
		if time.Now().After(deadline) || p.ctx.Err() != nil {
			var shown string
			_ = p.Ask("document.body.innerText.slice(0, 2000)", &shown)
			return fmt.Errorf("not within %s: %s (%v); the page has %s", patience, condition, err, shown)
		}
	}
}

// Type types a text at the focus and presses Enter.
func (p *Page) Type(text string) error {
	return chromedp.Do(p.ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
		return err
	}), chromedp.KeyEvent(kb.Enter))
}

// Shot returns a screenshot of the visible part, as PNG.
func (p *Page) Shot() ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}

// Busy returns for how long the main thread has worked since the page was loaded.
func (p *Page) Busy() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	var busy float64
	err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, performance.Enable, performance.EnableParams{}); err != nil {
			return err
		}
		got, err := cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			return err
		}
		for _, m := range got.Metrics {
			if m.Name == "TaskDuration" {
				busy = m.Value
			}
		}
		return nil
	}))
	return time.Duration(busy * float64(time.Second)), err
}
