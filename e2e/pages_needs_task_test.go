package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

// What did it print: output as text while it arrives, follow and pause, and
// the line with the reason of a failure first.
func TestNeedWhatDidItSay(t *testing.T) {
	s := newStage(t)
	gate := s.newGate()
	s.speaker("builder", `
i=0
while [ $i -lt 3000 ]; do i=$((i+1)); printf '\033[32mline %d of the build\033[0m\n' $i; done
read line <`+gate.fifo+`
printf 'one more line\nand another\n'
# The first pass may still hold the gate: then there is nothing to read.
until read line <`+gate.fifo+`; do :; done
echo 'error: the disk is full'
echo 'bye'
exit 3`)
	id := s.task("builder", "build it")
	p := s.open("/ui/tasks/" + id)
	gate.arrived()
	p.showsIn(".output-box", "line 3000 of the build")
	p.showsIn(".output-left", "earlier lines are not shown")
	if n := has[int](p, `document.querySelector(".output-box").childElementCount`); n > 2002 {
		t.Errorf("%d lines are in the document", n)
	}
	if text := p.text(".output-box"); strings.Contains(text, "[32m") || strings.Contains(text, "\x1b") {
		t.Error("the colours are shown as characters")
	}
	p.showsIn(".output-state", "following")
	p.click(".output button", "Pause")
	p.showsIn(".output-state", "paused")
	gate.open()
	p.showsIn(".output button", "Follow (")
	p.hides(".output-box", "and another")
	p.click(".output button", "Follow")
	p.showsIn(".output-box", "and another")
	gate.arrived()
	gate.open()
	s.becomes(id, "failed")
	p.showsIn(".output-failure", "Most likely cause: error: the disk is full")
	p.showsIn(".note.is-bad", "The command failed.")
	p.click(".output-failure button", "Show it")
	out, err := s.c.Output(s.ctx(), id, 0)
	if err != nil || !strings.HasSuffix(out.Text, "bye\n") {
		t.Errorf("the API has %q at its end, %v", out.Text[max(0, len(out.Text)-40):], err)
	}
}

// Cancel: a waiting task leaves its queue; a running one shows for how long the
// agent has not confirmed, and offers the remedy.
func TestNeedCancel(t *testing.T) {
	s := newStage(t, "coder")
	running := s.running("coder", "sleep 10m, first")
	waiting := s.task("coder", "sleep 10m, second")
	p := s.open("/ui/")
	p.click("button", "Cancel "+short(waiting))
	s.becomes(waiting, "cancelled")
	p.showsIn(".card-queue", "Nothing waits.")
	defer s.wedge("coder")()
	p.goTo("/ui/tasks/" + running)
	p.click(".task-actions button", "Cancel…")
	p.showsIn("dialog", "What it has done so far is not undone")
	p.click("dialog button", "Cancel it")
	p.until("it says how long it has not been confirmed", `/Cancelling for \d+s( at least)?: coder has not confirmed/.test(e2e.text(".note"))`)
	s.becomes(running, "cancelling")
	p.click(".note button", "Force release…")
	p.fill("Type coder to go on", "coder")
	p.click("dialog button", "Take the slot away")
	s.becomes(running, "cancelled")
	p.showsIn(".page-head .state", "cancelled")
}

// Retry: unchanged or edited; the attempts side by side.
func TestNeedRetry(t *testing.T) {
	s := newStage(t, "coder", "writer")
	first := s.end(s.c, s.task("coder", "sleep 1ms, fail")).QueueID
	p := s.open("/ui/tasks/" + first)
	p.showsIn(".page-head .state", "failed")
	p.click(".task-actions button", "Retry…")
	p.click("dialog button", "Retry as it was")
	p.until("the new task is shown", fmt.Sprintf(`location.pathname.startsWith("/ui/tasks/queue-") && !location.pathname.endsWith(%s)`, jsText(first)))
	second := strings.TrimPrefix(p.path(), "/ui/tasks/")
	if task := s.end(s.c, second); task.RetryOf != first || task.Prompt != "sleep 1ms, fail" {
		t.Errorf("the retry is of %q with %q", task.RetryOf, task.Prompt)
	}
	p.showsIn(".page-head .state", "failed")
	p.keyUntil("r", "it asks", `document.querySelector("dialog[open]")`)
	p.fill("Prompt", "sleep 1ms, and succeed")
	p.choose("Who may take it", "writer")
	p.click("dialog button", "Retry with the changes")
	p.until("the third is shown", fmt.Sprintf(`location.pathname.startsWith("/ui/tasks/queue-") && !location.pathname.endsWith(%s)`, jsText(second)))
	third := strings.TrimPrefix(p.path(), "/ui/tasks/")
	if task := s.completed(s.c, third); task.RetryOf != second || task.Prompt != "sleep 1ms, and succeed" || task.Agent != "writer" {
		t.Errorf("the edited retry is of %q with %q", task.RetryOf, task.Prompt)
	}
	p.showsIn(".tries", "1 "+short(first)+" failed")
	p.showsIn(".tries", "2 "+short(second)+" failed")
	p.showsIn(".tries", "3 "+short(third)+" completed")
	p.showsIn(".tries", "Edited prompt")
}
