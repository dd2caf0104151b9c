package e2e_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// tabScript has functions with which a test inspects a page. They find what a
// user would: visible elements, by their text.
const tabScript = `
addEventListener("securitypolicyviolation", (e) => console.error("policy: " + e.violatedDirective + " " + e.blockedURI + " " + e.sample));
window.e2e = {
  plain: (text) => (text ?? "").replace(/\s+/g, " ").trim(),
  shown: (el) => el.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: false }) && el.getClientRects().length > 0,
  name: (el) => e2e.plain(el.getAttribute("aria-label") || el.innerText || el.labels?.[0]?.innerText),
  all: (selector, words = "") => [...document.querySelectorAll(selector)].filter((el) => e2e.shown(el) && e2e.name(el).includes(words)),
  find: (selector, words = "") => { const all = e2e.all(selector, words); return all.find((el) => e2e.name(el) === words) ?? all[0]; },
  text: (selector = "body") => e2e.plain([...document.querySelectorAll(selector)].filter(e2e.shown).map((el) => el.innerText).join(" ")),
  // click presses what can be seen, is not covered, and is not off.
  click(selector, words) {
    const el = e2e.find(selector, words);
    if (!el) return "is not there";
    if (el.disabled || el.getAttribute("aria-disabled") === "true") return "is off: " + el.title;
    el.scrollIntoView({ block: "center" });
    const box = el.getClientRects()[0];
    const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    if (!top || !(el.contains(top) || top.contains(el))) return "is covered by " + top?.outerHTML.slice(0, 80);
    el.click();
    return "";
  },
  field(label, root = document) {
    const of = [...root.querySelectorAll("label")].find((l) => e2e.shown(l) && e2e.plain(l.innerText).startsWith(label));
    return of?.control ?? e2e.find("input, textarea, select", label);
  },
};
`

func quoted(text string) string { return strconv.Quote(text) }

// showsIn waits until a text is somewhere in what a selector matches.
func (p *tab) showsIn(selector, text string) {
	p.t.Helper()
	p.until(selector+" shows "+text, fmt.Sprintf("e2e.text(%s).includes(%s)", jsText(selector), jsText(text)))
}

// hides waits until a text is nowhere in what a selector matches.
func (p *tab) hides(selector, text string) {
	p.t.Helper()
	p.until(selector+" does not show "+text, fmt.Sprintf("!e2e.text(%s).includes(%s)", jsText(selector), jsText(text)))
}

// text is the visible text of what a selector matches.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return has[string](p, fmt.Sprintf("e2e.text(%s)", jsText(selector)))
}

// click clicks what has these words, once it is enabled.
func (p *tab) click(selector, words string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%s %q can be pressed", selector, words),
		fmt.Sprintf(`(window.e2eLast = e2e.click(%s, %s)) === ""`, jsText(selector), jsText(words)))
}

// fill types a text into the field with a label, replacing its content.
func (p *tab) fill(label, text string) {
	p.t.Helper()
	p.until("the field "+label, fmt.Sprintf(`(() => { const el = e2e.field(%s, document.querySelector("dialog[open]") ?? document); el?.focus(); el?.select?.(); return document.activeElement === el; })()`, jsText(label)))
	p.types(text)
	p.until("the field has the text", fmt.Sprintf("document.activeElement.value === %s", jsText(text)))
}

// types inserts a text at the focus, all at once.
func (p *tab) types(text string) {
	p.t.Helper()
	p.run("type", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
		return err
	}))
}

// does runs a script in the page.
func (p *tab) does(what, script string) {
	p.t.Helper()
	if err := p.ask("(() => { "+script+"; return true; })()", new(bool)); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// choose selects an entry of a list by its words.
func (p *tab) choose(label, words string) {
	p.t.Helper()
	p.until("the list "+label+" has "+words, fmt.Sprintf(`(() => {
		const el = e2e.field(%s, document.querySelector("dialog[open]") ?? document), one = [...(el?.options ?? [])].find((o) => o.text.includes(%s));
		if (!one) return false;
		el.value = one.value;
		el.dispatchEvent(new Event("change", { bubbles: true }));
		return true; })()`, jsText(label), jsText(words)))
}

// keys presses keys one by one, like a user.
func (p *tab) keys(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.run("press "+key, chromedp.KeyEvent(key))
	}
}

// keyUntil presses a key, repeatedly in case the page had not bound it yet.
func (p *tab) keyUntil(key, what, condition string) {
	p.t.Helper()
	testkit.Wait(p.t, what, func() bool {
		p.keys(key)
		return testkit.Within(2*time.Second, func() (met bool) { return p.ask("Boolean("+condition+")", &met) == nil && met })
	})
}

// tabTo presses Tab until the wanted element has the focus, and expects a
// visible focus at each step.
func (p *tab) tabTo(what, condition string) {
	p.t.Helper()
	for range 120 {
		if has[bool](p, fmt.Sprintf("Boolean(((el) => %s)(document.activeElement))", condition)) {
			return
		}
		p.keys(kb.Tab)
		unseen := has[string](p, `((el) => {
			if (el === document.body || el === document.documentElement || el.tagName === "DIALOG" || el.id === "main") return "";
			const css = getComputedStyle(el);
			const ring = css.outlineStyle !== "none" && parseFloat(css.outlineWidth) >= 1;
			return ring || css.boxShadow !== "none" ? "" : el.outerHTML.slice(0, 120);
		})(document.activeElement)`)
		if unseen != "" {
			p.t.Errorf("the focus is not seen on %s", unseen)
		}
	}
	p.t.Fatalf("%s is not reached with Tab; the focus is on %s", what, has[string](p, "document.activeElement.outerHTML.slice(0, 200)"))
}

// drag drags the mouse over part of an element.
func (p *tab) drag(selector string, from, to float64) {
	p.t.Helper()
	box := has[[]float64](p, fmt.Sprintf(`((el) => { el.scrollIntoView({ block: "center" }); const b = el.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })(document.querySelector(%s))`, jsText(selector)))
	y := box[1] + box[3]/2
	at := func(share float64) float64 { return box[0] + box[2]*share }
	send := func(kind input.DispatchMouseEventType, x float64, down int64) chromedp.Action[chromedp.Void] {
		button := input.MouseButtonLeft
		if kind == input.DispatchMouseEventTypeMouseMoved && down == 0 {
			button = input.MouseButtonNone
		}
		return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: button, Buttons: down, ClickCount: 1})
			return err
		})
	}
	moved, pressed, released := input.DispatchMouseEventTypeMouseMoved, input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased
	p.run("drag", chromedp.Steps(
		send(moved, at(from), 0), send(pressed, at(from), 1), send(moved, at((from+to)/2), 1), send(moved, at(to), 1), send(released, at(to), 0)))
}

// path is the tab's path, with its query decoded.
func (p *tab) path() string {
	p.t.Helper()
	return has[string](p, `location.pathname + decodeURIComponent(location.search.replaceAll("+", " "))`)
}

// at waits until the tab's path begins with path.
func (p *tab) at(path string) {
	p.t.Helper()
	p.until("the tab is at "+path, fmt.Sprintf(`(location.pathname + decodeURIComponent(location.search.replaceAll("+", " "))).startsWith(%s)`, jsText(path)))
}

// live waits until the page shows the stream's data.
func (p *tab) live() { p.t.Helper(); p.showsIn(".pill", "live") }

// short is an ID as the pages show it.
func short(id string) string { return "…" + id[len(id)-4:] }

// jsText is a JavaScript literal of a text.
func jsText(text string) string {
	return strings.ReplaceAll(quoted(text), `\a`, "") // Go's quoting is that of JavaScript except for the bell
}

// point moves the mouse over an element.
func (p *tab) point(selector string) {
	p.t.Helper()
	box := has[[]float64](p, fmt.Sprintf(`((b) => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector(%s).getBoundingClientRect())`, jsText(selector)))
	p.run("point at "+selector, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, box[0], box[1]))
}

// noDialog waits until no dialog is open.
func (p *tab) noDialog() {
	p.t.Helper()
	p.until("no dialog is open", `!document.querySelector("dialog[open]")`)
}
