package e2e_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// The list of tasks on one long page: what stays in view, and what a row offers when.
func TestTheListOfTasks(t *testing.T) {
	s := newStage(t, "coder")
	done := s.completed(s.c, s.task("coder", "sleep 1ms, draft")).QueueID
	s.running("coder", "sleep 10m, hold")
	s.crowd(44)
	formula := s.submit(s.c, api.SubmitRequest{Prompt: `=HYPERLINK("http://x", "y")`, Kind: "nobody"})
	w := s.ownWindow(s.d.url)
	p := w.tabWith("/ui/tasks", tabOptions{width: 1280, height: 700})
	p.showsIn(".page-head", "47 tasks")

	// The search, the bar and the head of the table stay while the list scrolls.
	p.does("scroll", `scrollTo(0, 700)`)
	for _, part := range []string{"#search", ".bulk", ".table-head [role=columnheader].col-what"} {
		p.until(part+" is in sight", fmt.Sprintf(`((el) => { const b = el.getBoundingClientRect(); return b.top > 40 && b.top < 260 && el.contains(document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2)); })(document.querySelector(%q))`, part))
	}
	p.does("scroll to the top", `scrollTo(0, 0)`)
	p.keyUntil("j", "the keys stand at a row", `document.querySelector(".row-cursor")`)
	for range 30 {
		p.keys("j")
	}
	p.until("far down", `scrollY > 300`)
	for range 25 {
		p.keys("k")
	}
	p.until("the row at the keys is below the head", `(() => {
		const row = document.querySelector(".row-cursor")?.getBoundingClientRect(), head = document.querySelector(".table-head").getBoundingClientRect();
		return row && row.top >= head.bottom - 1 && row.bottom <= innerHeight; })()`)

	// Without a pointing device, as in this browser, a row's actions are always
	// visible; otherwise when the row is pointed at or has the focus.
	action := fmt.Sprintf(`document.querySelector('[aria-label="Retry %s"]')`, short(done))
	p.goTo("/ui/tasks") // the focus in the list kept its rows
	p.click(".searches a", "done")
	p.at("/ui/tasks?q=state:completed")
	p.showsIn(".page-head", "1 task")
	p.until("it is seen", action+` && getComputedStyle(`+action+`.parentElement).opacity === "1"`)
	p.does("have a mouse", `for (const sheet of document.styleSheets) for (const rule of sheet.cssRules) if (rule.media?.mediaText.includes("(hover: hover)")) rule.media.mediaText = "all"`)
	p.point(".brand")
	p.until("it is not seen", action+` && getComputedStyle(`+action+`.parentElement).opacity === "0"`)
	p.point(".row .col-time")
	p.until("it is seen under the pointer", `getComputedStyle(`+action+`.parentElement).opacity === "1"`)
	p.point(".brand")
	p.until("it is not seen any more", `getComputedStyle(`+action+`.parentElement).opacity === "0"`)
	p.does("focus it", action+`.focus()`)
	p.until("it is seen with the focus", `getComputedStyle(`+action+`.parentElement).opacity === "1"`)

	// Durations, and the selection of columns, also after a reload.
	p.until("it has a duration", `/^\d+(ms|s)$/.test(e2e.text(".row .col-took"))`)
	p.click(".list-bar button", "Columns")
	p.click("[role=menuitemcheckbox]", "Duration")
	p.until("the column is gone", `!document.querySelector(".col-took") && document.querySelector(".row .col-time")`)
	p.goTo("/ui/tasks?q=state:working")
	p.until("and stays so", `document.querySelector(".row .col-time") && !document.querySelector(".col-took")`)
	p.click(".list-bar button", "Columns")
	p.until("it is not ticked", `e2e.find("[role=menuitemcheckbox]", "Duration")?.ariaChecked === "false"`)
	p.click("[role=menuitemcheckbox]", "Duration")
	p.until("a running task has a duration so far", `/^\d+m? ?\d*s$/.test(e2e.text(".row .col-took"))`)

	// All results of a search as a file, page by page.
	p.goTo("/ui/tasks?q=state:pending")
	p.showsIn(".page-head", "45 tasks")
	p.does("keep what is saved, and make the pages short", `
		const blob = URL.createObjectURL, real = fetch;
		window.saved = [];
		URL.createObjectURL = (file) => { file.text().then((text) => saved.push(text)); return blob.call(URL, file); };
		window.fetch = (path, options) => {
			if (!window.hold || !path.includes("/api/search")) return real(path.replace("limit=200", "limit=20"), options);
			return new Promise((_, no) => options.signal.addEventListener("abort", () => { window.ended = true; no(new DOMException("ended", "AbortError")); }));
		}`)
	file := func(format string, n int) string {
		p.click(".list-bar button", "Export")
		p.click("[role=menuitem]", format)
		p.until("the file is saved", fmt.Sprintf("saved.length === %d", n))
		p.showsIn(".toasts", "45 tasks were exported")
		p.noDialog()
		return has[string](p, "saved.at(-1)")
	}
	rows, err := csv.NewReader(strings.NewReader(file("CSV", 1))).ReadAll()
	if err != nil || len(rows) != 46 {
		t.Fatalf("the file has %d rows, %v", len(rows), err)
	}
	at := slices.Index(rows[0], "prompt_preview")
	if i := slices.IndexFunc(rows, func(row []string) bool { return row[0] == formula }); i < 0 || rows[i][at] != `'=HYPERLINK("http://x", "y")` {
		t.Errorf("row %d is not the formula as text: %q", i, rows)
	}
	var tasks []api.Task
	if err := json.Unmarshal([]byte(file("JSON", 2)), &tasks); err != nil || len(tasks) != 45 {
		t.Errorf("the file has %d tasks, %v", len(tasks), err)
	}
	p.does("let no answer come", `window.hold = true`)
	p.click(".list-bar button", "Export")
	p.click("[role=menuitem]", "CSV")
	p.click("dialog button", "Cancel")
	p.until("the export has ended", "window.ended === true")
	p.noDialog()
	if n := has[int](p, "saved.length"); n != 2 {
		t.Errorf("%d files are saved", n)
	}
}
