package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// TestDigestDoesNotDependOnTheConfiguration: a repeated body finds its task, even if the director was
// restarted with another configuration, or another director gets it.
func TestDigestDoesNotDependOnTheConfiguration(t *testing.T) {
	yes := true
	asks := map[string]engine.NewTask{
		"task":   {Prompt: "p"},
		"fail":   {Prompt: "p", OnLost: signalbox.LostFail},
		"chat":   {Prompt: "p", Mode: signalbox.ModeChat, Agent: "one"},
		"reject": {Prompt: "p", Mode: signalbox.ModeChat, Agent: "one", Overflow: signalbox.OverflowReject, Thinking: &yes},
		"tool": {Mode: signalbox.ModeTool, Tool: "build", Arguments: json.RawMessage(`{"branch":"main","key":"s3cret"}`),
			OnLost: signalbox.LostFail},
	}
	for name, n := range asks {
		t.Run(name, func(t *testing.T) {
			s := memory.New(memory.Options{})
			first := newFixtureOver(t, s, func(o *engine.Options) { o.WaitTimeout = 120 * time.Second })
			first.talker("one", 1)
			n.IdempotencyKey = "k"
			was, err := first.Submit(t.Context(), n)
			first.must(err)
			second := newFixtureOver(t, s, func(o *engine.Options) {
				o.WaitTimeout, o.OnLost = 90*time.Second, signalbox.LostRequeue
				o.SourcePriority = map[signalbox.Source]int{signalbox.SourceAPI: 7}
			})
			if n.Mode == signalbox.ModeTool { // now the tool marks it as secret, and may be run again
				n.Arguments, n.Secrets, n.OnLost = json.RawMessage(`{"branch":"main"}`), map[string]string{"key": `"s3cret"`}, signalbox.LostRequeue
			}
			again, err := second.Submit(t.Context(), n)
			second.must(err)
			if again.Task.ID != was.Task.ID || !again.Replayed {
				t.Errorf("the key finds %s, want %s", again.Task.ID, was.Task.ID)
			}
			if n.Mode == signalbox.ModeTool {
				n.Secrets = map[string]string{"key": `"other"`}
			} else {
				n.Prompt = "another"
			}
			_, err = second.Submit(t.Context(), n)
			wantCode(t, err, signalbox.CodeIdempotency, "")
		})
	}
}

// TestDigestOfThePreviousRelease: tasks stored by the release of 2026-11-22 are found by their digest, which
// included defaults from the configuration.
func TestDigestOfThePreviousRelease(t *testing.T) {
	const body = `{"Prompt":"p","Model":"","Tier":"","TimeoutSeconds":0,"SessionID":"","Session":"","Project":null,"Env":null,"Thinking":null,` +
		`"Source":"api","SourceJob":"","Agent":"one","Kind":"","Priority":3,"NotBefore":"0001-01-01T00:00:00Z","WaitTimeout":120000000000,` +
		`"OnLost":"fail","RetryOf":"","Mode":"chat","Overflow":"wait"}`
	b := newFixture(t, func(o *engine.Options) {
		o.SourcePriority, o.OnLost = map[signalbox.Source]int{signalbox.SourceAPI: 3}, signalbox.LostRequeue
	})
	b.talker("one", 1)
	var row signalbox.Task
	row.ID, row.State, row.Queue, row.Mode = "queue-0123456789abcdef0123", signalbox.Pending, "agent:one", signalbox.ModeChat
	row.Priority, row.CreatedAt, row.OnLost = 3, b.clock(), signalbox.LostFail
	row.IdempotencyKey, row.IdempotencyHash = "k", newSealer(t).Digest([]byte(body))
	b.storeRow(row)
	n := engine.NewTask{Prompt: "p", Mode: signalbox.ModeChat, Agent: "one", IdempotencyKey: "k"}
	if again := b.submit(n); again.ID != row.ID {
		t.Errorf("the key finds %s, want %s", again.ID, row.ID)
	}
	n.Prompt = "another"
	_, err := b.Submit(t.Context(), n)
	wantCode(t, err, signalbox.CodeIdempotency, "")
}

// storeRow stores a task like a director of another release.
func (b *fixture) storeRow(row signalbox.Task) {
	b.t.Helper()
	_, err := b.store.Submit(b.t.Context(), submissionOf(row, b.clock()))
	b.must(err)
}

func submissionOf(row signalbox.Task, now time.Time) store.Submission {
	return store.Submission{Task: row, Request: signalbox.Request{Prompt: "p", Queue: row.Queue}, Now: now}
}
