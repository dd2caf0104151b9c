package e2e_test

import "testing"

// The end of a task that was submitted here, or is watched, is reported once: by the
// browser if the page is not visible, otherwise by a note on it.
func TestTheEndOfATaskIsReported(t *testing.T) {
	s := newStage(t, "coder")
	running := s.running("coder", "sleep 10m, upgrade the service")
	p := s.open("/ui/tasks/" + running)
	p.does("a browser that notifies", `window.told = []; window.Notification = class { constructor(title, o) { told.push(title + ": " + o.body); } close() {} static permission = "default"; static async requestPermission() { return this.permission = "granted"; } }`)
	p.until("the menu of the user is there", `document.querySelector(".user > button") !== null`)
	p.does("open the menu of the user", `document.querySelector(".user > button").click()`)
	p.click("[role=menuitemcheckbox]", "Notify me when my tasks end")
	p.until("it is on", `localStorage.getItem("signalbox.notifications") === "on"`)
	p.click(".head-line button", "Watch")
	p.until("it is watched", `localStorage.getItem("signalbox.watched").includes("`+running+`")`)
	p.does("look elsewhere", `Object.defineProperty(document, "visibilityState", {value: "hidden", configurable: true})`)
	if _, err := s.c.Cancel(s.ctx(), running); err != nil {
		t.Fatal(err)
	}
	p.until("the browser notifies of the end", `told.some((t) => t === "coder was cancelled: sleep 10m, upgrade the service")`)
	p.until("and only once", `localStorage.getItem("signalbox.watched") === "" && told.filter((t) => t.startsWith("coder was")).length === 1`)
	p.does("look again", `Object.defineProperty(document, "visibilityState", {value: "visible", configurable: true})`)
	p.goTo("/ui/agents/coder/conversations/new")
	p.fill("Message to coder", "say hello")
	p.click(".message button", "Send")
	p.showsIn(".toasts", "coder is done: say hello")
}
