package e2e_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// A terminal in a page: only the user who requested it can open it, it works
// in both directions under the pages' policy, and shows how it ended.
func TestTerminalInThePage(t *testing.T) {
	chromium(t)
	b := newBox(t)
	b.vars["SHELL"] = "/bin/sh"
	up := b.up("--agents", "demo", "--terminal")
	p := b.ownWindow(up.url).tab("/ui/agents/demo")
	p.showsIn("h1", "demo")
	if has[bool](p, `Boolean(document.querySelector(".terminal"))`) {
		t.Error("the address alone opened a terminal")
	}
	p.click(".page-head button", "Actions for demo")
	p.click("[role=menuitem]", "Terminal")
	p.showsIn(".terminal", "open")
	p.until("the terminal has the focus", `document.activeElement.closest(".xterm")`)
	p.types("echo it is $((6*7))")
	p.keys(kb.Enter)
	p.showsIn(".xterm-rows", "it is 42")
	agents, err := b.client(up.url).Agents(b.ctx())
	if err != nil || len(agents) != 1 || len(agents[0].Terminals) != 1 || agents[0].State != "idle" {
		t.Errorf("the agent while a terminal is open: %+v, %v", agents, err)
	}
	p.types("exit 3")
	p.keys(kb.Enter)
	p.showsIn(".terminal .card-head", "the program ended")
	p.click(".terminal button", "Close terminal")
	p.until("it is gone", `!document.querySelector(".terminal")`)
}
