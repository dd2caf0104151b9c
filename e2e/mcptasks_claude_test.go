package e2e_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/e2e/model"
)

// A real Claude Code, run for one prompt, uses the newer protocol and does not
// declare tasks: its model gets the task's ID as text, and follows and cancels
// the task with the plain tools.
func TestClaudeCodeFollowsAnAsyncTool(t *testing.T) {
	b := newBox(t)
	j := b.jobs(nil)
	const prefix = "mcp__signalbox__"
	c := b.claudeCode(object{"type": "http", "url": j.director.url + "/mcp", "headers": object{"Authorization": "Bearer " + b.token()}})
	id := regexp.MustCompile(`queue-[0-9a-z]{26}`)
	var task string
	c.model.Use(func(r model.Request) model.Reply {
		switch r.Turn {
		case 0:
			return model.Reply{Tool: &model.Tool{Name: prefix + "job", Input: object{"name": "of-claude"}}}
		case 1:
			task = id.FindString(r.Text)
			return model.Reply{Tool: &model.Tool{Name: prefix + "task_status", Input: object{"task_id": task}}}
		case 2:
			return model.Reply{Tool: &model.Tool{Name: prefix + "cancel_task", Input: object{"task_id": task}}}
		}
		return model.Reply{Text: "It is done."}
	})
	p := launchProgram(t, c.program, c.work, c.environ(), "-p", "use your tools", "--mcp-config", c.config, "--strict-mcp-config",
		"--allowedTools", prefix+"job,"+prefix+"task_status,"+prefix+"cancel_task", "--output-format", "stream-json", "--verbose")
	if code := p.exits(); code != 0 || !strings.Contains(p.out.text(), "It is done.") {
		t.Fatalf("exit code %d: %s", code, tail(p.out.text()))
	}
	var told []string
	for _, r := range c.model.Requests() {
		if !r.Side {
			told = append(told, r.Text)
		}
	}
	if len(told) != 4 {
		t.Fatalf("%d turns", len(told))
	}
	for i, want := range []string{"Task 'job' queued with id " + task, `"queue_id":"` + task + `"`, `"state":"cancelled"`} {
		if got := strings.ReplaceAll(told[i+1], `": "`, `":"`); task == "" || !strings.Contains(got, want) {
			t.Errorf("after turn %d the model was told %s, want %s", i, tail(got), want)
		}
	}
	j.says("", ask("task cancelled cancelled by", "get", task))
	j.director.stop()
	if left := j.living(); len(left) > 0 {
		t.Errorf("processes live on: %v", left)
	}
}
