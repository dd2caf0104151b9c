package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/failpoint"
)

// A director is killed between its claim and the offer. The next one makes the
// agent promise to refuse that claim, puts the task back, and is killed at the
// same point. All that the agent has seen is the promise.
func TestKilledBeforeItsOfferTheClaimIsVoid(t *testing.T) {
	program, err := pointed()
	if err != nil {
		t.Fatal(err)
	}
	b := newBox(t)
	line := b.server("director", []string{"--addr", freePort(t)})
	first := b.serve(line...)
	agent := b.agent("coder", first.url)
	c := b.client(first.url)
	first.kill()
	dying := &role{b: b, name: "director", args: line, program: program, env: []string{failpoint.EnvPoints + "=agent.offer.before=kill"}, died: deaths{}}
	dying.start()
	dying.p.prints("http://")
	answered := make(chan string, 1) // possibly by a later director: the first may die before it answers
	go func() {
		got, err := c.Submit(b.ctx(), api.SubmitRequest{Prompt: "sleep 1ms", Agent: "coder"}, client.SubmitOptions{IdempotencyKey: client.NewIdempotencyKey()})
		if err != nil {
			t.Error(err)
		}
		answered <- got.QueueID
	}()
	<-dying.p.done
	if seen := fenceAt(t, agent.url); seen != 0 {
		t.Fatalf("the agent has seen fence %d of an offer that was never sent", seen)
	}
	dying.start()
	<-dying.p.done
	if seen := fenceAt(t, agent.url); seen != 1 {
		t.Errorf("the agent has seen fence %d, the claim under fence 1 was to be void", seen)
	}
	b.serve(line...)
	id := <-answered
	if task := b.completed(c, id); task.Attempts != 0 || fenceAt(t, agent.url) != 3 {
		t.Errorf("it ended after %d attempts; the agent has seen fence %d", task.Attempts, fenceAt(t, agent.url))
	}
	b.executedOnce(id)
}

// fenceAt is the highest fence that an agent has seen.
func fenceAt(t *testing.T, url string) int64 {
	t.Helper()
	resp, err := http.Get(strings.TrimSuffix(url, "/") + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var s api.AgentStatus
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s.HighestFence
}
