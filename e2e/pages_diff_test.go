package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// changed makes an ended task of the agent coder with these changes.
func (s *stage) changed(c signalbox.Changes) string {
	s.t.Helper()
	return s.left(len(c.Patch), func(r *signalbox.Result) { r.Changes = &c })
}

// left makes an ended task of the agent coder, with edit applied to its result; its ID contains
// the number. It is imported, so that it may have values that Signalbox's own agents never
// report.
func (s *stage) left(number int, edit func(*signalbox.Result)) string {
	s.t.Helper()
	done := s.completed(s.c, s.task("coder", "sleep 1ms, change the files"))
	for after := ""; ; {
		page, err := s.c.Export(s.ctx(), 1000, after)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, task := range page.Tasks {
			if task.QueueID != done.QueueID {
				continue
			}
			var r signalbox.Result
			if err := json.Unmarshal(task.Result, &r); err != nil {
				s.t.Fatal(err)
			}
			edit(&r)
			if task.Result, err = json.Marshal(r); err != nil {
				s.t.Fatal(err)
			}
			task.QueueID = fmt.Sprintf("%s%026d", signalbox.IDPrefix, number) // another task
			task.Key, task.KeyHash = "", ""
			got, err := s.c.Import(s.ctx(), api.ImportRequest{Tasks: []api.ExportedTask{task}})
			if err != nil || got.Imported != 1 {
				s.t.Fatalf("import: %+v, %v", got, err)
			}
			return task.QueueID
		}
		if after = page.Next; after == "" {
			s.t.Fatalf("%s is not exported", done.QueueID)
		}
	}
}

// someChanges has every kind of content of a patch: code, markup, hidden characters, a
// line of 100,000 characters, a long file, a binary file and a renamed one.
func someChanges() signalbox.Changes {
	var long strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&long, "+row %d\n", i+1)
	}
	patch := "diff --git a/main.go b/main.go\n--- a/main.go\n+++ b/main.go\n@@ -1,4 +1,5 @@ package main\n one // a remark\n-two <b>was</b>\n+two <img src=x onerror=alert(1)>\n+two and a half \u2066\n three\n four\n" +
		"diff --git a/min.js b/min.js\n--- a/min.js\n+++ b/min.js\n@@ -1 +1 @@\n-x\n+" + strings.Repeat("y", 100_000) + "\n" +
		"diff --git a/logo.png b/logo.png\nindex 1..2 100644\nGIT binary patch\nliteral 3\nabc\n\n" +
		"diff --git a/old.txt b/new.txt\nsimilarity index 100%\nrename from old.txt\nrename to new.txt\n" +
		"diff --git a/rows b/rows\nnew file mode 100644\n--- /dev/null\n+++ b/rows\n@@ -0,0 +1,1000 @@\n" + long.String()
	return signalbox.Changes{
		Workspace: "worktree", Dir: "/var/lib/signalbox/worktrees/06h1y1/tree", Branch: "signalbox/06h1y1", Base: strings.Repeat("a", 40), Head: strings.Repeat("b", 40), Commits: 2, FilesChanged: 5, Insertions: 1003, Deletions: 2,
		Files: []signalbox.ChangedFile{
			{Path: "main.go", Status: signalbox.FileModified, Insertions: 2, Deletions: 1}, {Path: "min.js", Status: signalbox.FileModified, Insertions: 1, Deletions: 1},
			{Path: "logo.png", Status: signalbox.FileModified, Binary: true}, {Path: "new.txt", From: "old.txt", Status: signalbox.FileRenamed}, {Path: "rows", Status: signalbox.FileAdded, Insertions: 1000},
		},
		Patch: patch, PatchBytes: int64(len(patch)),
	}
}

// The page shows what a task changed, in one column or two, whatever the content; a comment
// on its lines goes to the agent with the next turn.
func TestTheChangesOfATask(t *testing.T) {
	s := newStage(t, "coder")
	changes := someChanges()
	id := s.changed(changes)
	p := s.open("/ui/tasks/" + id)
	p.showsIn(".diff .card-head", "5 files +1,003 −2")
	p.showsIn(".diff", "branch signalbox/06h1y1")
	p.showsIn(".diff", "aaaaaaaaa…bbbbbbbbb")
	p.showsIn(".diff-files", "old.txt → new.txt")
	p.until("binary and renamed files are named", `(() => { const all = [...document.querySelectorAll(".diff-files li")].map((li) => li.textContent); return all.length === 5 && all[2].includes("binary") && all[3].includes("renamed"); })()`)
	p.until("markup is text, and hidden characters are named", `(() => {
		const text = document.querySelector(".diff-file").textContent;
		return text.includes("+two <img src=x onerror=alert(1)>") && text.includes("-two <b>was</b>") && text.includes("⟨U+2066⟩") && !document.querySelector(".diff img, .diff b");
	})()`)
	p.until("code has the colours of its language", `[...document.querySelectorAll(".diff-file .code-comment")].some((e) => e.textContent === "// a remark")`)
	p.until("long files wait until they are asked for", `document.querySelectorAll(".diff-file")[4].open === false && !document.querySelectorAll(".diff-file")[4].querySelector("table")`)
	p.until("a long line is cut and scrolls inside", `(() => { const box = document.querySelectorAll(".diff-scroll")[1]; return box.textContent.length < 10_000 && box.scrollWidth > box.clientWidth && document.documentElement.scrollWidth <= innerWidth; })()`)
	p.click(".diff-files a", "rows")
	p.until("the file is unfolded, with its first lines", `document.querySelectorAll(".diff-file")[4].querySelectorAll(".is-add").length === 300 && document.activeElement.textContent.includes("rows")`)
	p.click(".diff-file button", "Show more lines (700)")
	p.until("more are there", `document.querySelectorAll(".diff-file")[4].querySelectorAll(".is-add").length === 600`)

	p.click(".diff .output-tools button", "Split")
	p.until("old and new stand side by side", `(() => { const row = document.querySelector(".is-split .is-del").closest("tr"); return row.querySelector(".is-add").textContent.includes("onerror"); })()`)
	p.goTo("/ui/tasks/" + id)
	p.until("the choice is kept", `document.querySelector(".diff-table.is-split")`)
	p.does("comment on its first line", `document.querySelector(".diff-n button").click()`)
	p.until("one row is marked", `document.querySelectorAll("tr.is-marked").length === 1 && document.querySelector("dialog[open]")`)
	p.click("dialog button", "Discard")
	p.until("none is marked", `!document.querySelector("dialog[open], tr.is-marked")`)
	p.click(".diff .output-tools button", "Unified")
	p.until("one column", `document.querySelector(".diff-table") && !document.querySelector(".is-split")`)

	p.does("stand on the first line", `document.querySelector(".diff-n button[tabindex='0']").focus()`)
	p.keys(kb.ArrowDown, kb.ArrowDown)
	p.until("the keys went to the line that was added", `document.activeElement.ariaLabel === "Comment on line 2"`)
	p.does("mark the next line, too", `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", shiftKey: true, bubbles: true, cancelable: true }))`)
	p.until("both are marked", `document.querySelectorAll("tr.is-marked").length === 2`)
	p.does("press with Shift", `document.activeElement.dispatchEvent(new MouseEvent("click", { shiftKey: true, bubbles: true, cancelable: true }))`)
	p.showsIn("dialog label", "main.go:2-3")
	p.fill("main.go:2-3", "why not one line?")
	p.click("dialog button", "Add, and comment more")
	p.until("it is marked no more", `!document.querySelector("dialog[open], tr.is-marked")`)
	p.does("press on a removed line", `document.querySelector(".is-del").closest("tr").querySelector("button").click()`)
	p.fill("main.go:2 (removed)", "keep it")
	p.click("dialog button", "Continue with coder")
	p.until("the message has both", `document.querySelector("#message")?.value === "main.go:2-3 why not one line?\nmain.go:2 (removed) keep it"`)
	p.click(".message button", "Send")
	p.until("it is a turn", `[...document.querySelectorAll(".turn-asked")].some((e) => e.textContent.includes("why not one line?"))`)

	p.goTo("/ui/tasks/" + id)
	p.until("the changes are there", `document.querySelector(".diff-table")`)
	p.does("catch the file", `window.saved = [], URL.createObjectURL = (blob) => (blob.text().then((text) => saved.push(text)), "data:,")`)
	p.click(".diff .output-tools button", "Download")
	p.until("the file is the patch", fmt.Sprintf(`saved[0]?.length === %s.length && saved[0].startsWith("diff --git a/main.go")`, jsText(changes.Patch)))
}

// If the director keeps only a part of the patch, the page says so, and still
// lists all files.
func TestChangesThatAreCut(t *testing.T) {
	s := newStage(t, "coder")
	changes := someChanges()
	changes.Patch = changes.Patch[:strings.Index(changes.Patch, "diff --git a/min.js")]
	id := s.changed(changes)
	p := s.open("/ui/tasks/" + id)
	p.showsIn(".diff", "This is not the whole patch: the director keeps")
	p.until("files whose patch is missing are not links", `document.querySelectorAll(".diff-files a").length === 1 && document.querySelectorAll(".diff-files li").length === 5`)
	p.click(".diff .output-tools button", "Download")
	p.showsIn("main, [role=status], .toasts", "This is not the whole patch")
	nothing := signalbox.Changes{Workspace: "folder", Dir: "/work", Head: strings.Repeat("c", 40)}
	p.goTo("/ui/tasks/" + s.changed(nothing))
	p.showsIn(".diff .card-head", "no files")
}
