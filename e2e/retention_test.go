package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// A caller with only the scope submit submits and cancels as much as it can:
// only a limited amount of that is kept, and other callers' tasks stay.
func TestAttackOneCallerFillsTheStore(t *testing.T) {
	const bound, size, tasks = 2 << 20, 200 << 10, 30
	b := newBox(t)
	config := b.file("signalbox.yaml", fmt.Sprintf("queue: {caller_retention_bytes: %d, submit_bytes: 0}\n", bound), 0o600)
	director := b.director("--config", config)
	c := b.client(director.url)
	b.agent("a1", director.url)
	others := b.submit(c, api.SubmitRequest{Prompt: "sleep 1ms"})
	b.completed(c, others)
	made, err := c.CreateToken(b.ctx(), api.NewToken{Name: "ci", Scopes: []string{"submit"}})
	if err != nil {
		t.Fatal(err)
	}
	var flood []string
	for range 2 { // the second time the space of the first is reused
		b.vars["SIGNALBOX_TOKEN"] = made.Secret
		ci := b.client(director.url)
		later := time.Now().Add(time.Hour)
		for range tasks {
			id := b.submit(ci, api.SubmitRequest{Prompt: strings.Repeat("x", size), NotBefore: &later})
			if _, err := ci.Cancel(b.ctx(), id); err != nil {
				t.Fatal(err)
			}
			flood = append(flood, id)
		}
		delete(b.vars, "SIGNALBOX_TOKEN")
		director.stop()
		director = b.director("--config", config) // it prunes at its start, then every minute
		director.says("caller_retention_bytes")
		c = b.client(director.url)
		b.until("the caller's oldest tasks are gone", func() bool {
			past, err := c.History(b.ctx(), client.HistoryOptions{State: "cancelled", Limit: 100})
			return err == nil && len(past.Tasks) == bound/size
		})
	}
	for i, id := range flood {
		_, err := c.Task(b.ctx(), id)
		if kept := i >= len(flood)-bound/size; kept != (err == nil) {
			t.Errorf("task %d of %d: %v", i, len(flood), err)
		}
	}
	b.completed(c, others)
	b.want(0, "status", others)
}
