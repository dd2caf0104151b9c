package e2e_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// A task that submit_task acknowledged survives the director's death, and can
// be followed by its ID with the tools of the next director.
func TestQueueToolsSurviveTheDirector(t *testing.T) {
	b := newBox(t)
	d := b.director("--addr", freePort(t))
	gate, command := b.gated()
	b.agent("worker", d.url, command...)
	b.untilState(b.client(d.url), "worker", "idle")
	c := b.over(d.url, modernEra)
	var ids []string
	prompts := []string{"gate one", "two"}
	for _, prompt := range prompts {
		said := c.says("submit_task", object{"prompt": prompt, "agent": "worker"})
		ids = append(ids, queueIDForm.FindString(said))
	}
	waiting := c.begin("chat_with_agent", object{"agent": "worker", "message": "three"}, "turn")
	c.hears("queued, position 2")
	d.kill()
	if res, err := waiting.ends(); err == nil && !res.IsError {
		t.Errorf("the chat was answered by a dead director: %s", textOf(res))
	}
	gate.arrived()
	gate.open()
	again := b.director("--addr", strings.TrimPrefix(d.url, "http://"))
	c = b.over(again.url, legacyEra)
	for i, prompt := range prompts {
		said := ""
		b.until("the end of "+prompt, func() bool {
			said = c.says("task_status", object{"task_id": ids[i], "wait_seconds": 60})
			return strings.Contains(said, "has ended")
		})
		if !strings.Contains(said, "completed") || !strings.Contains(said, "did "+prompt) {
			t.Errorf("%s", said)
		}
		if out := c.says("task_output", object{"task_id": ids[i]}); !strings.Contains(out, "did "+prompt) || !strings.Contains(out, "this is its end") {
			t.Errorf("%s", out)
		}
	}
	var third api.Task // it is not cancelled: the director died, but its caller did not disconnect
	b.until("the end of the chat", func() bool {
		page, err := b.client(again.url).History(b.ctx(), client.HistoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range page.Tasks {
			if task.Mode == "chat" {
				third = task
			}
		}
		return third.QueueID != ""
	})
	if third.State != "completed" {
		t.Errorf("%+v", third)
	}
}
