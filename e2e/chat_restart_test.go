package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// The director is killed while chats run and wait: the next one takes them
// over, and their callers retry with their keys and get the answers.
func TestChatsOutliveTheDirector(t *testing.T) {
	b := newBox(t)
	addr := freePort(t)
	director := b.director("--addr", addr)
	gate, command := b.gated()
	b.agent("coder", director.url, command...)
	c := b.client(director.url)
	b.untilState(c, "coder", "idle")
	type answer struct {
		reply client.ChatReply
		err   error
	}
	chat := func(message string, req api.ChatRequest) chan answer {
		done := make(chan answer, 1)
		req.Message = message
		ctx := b.ctx()
		go func() {
			reply, err := c.Chat(ctx, "coder", req, client.ChatOptions{IdempotencyKey: "key of " + message})
			done <- answer{reply, err}
		}()
		return done
	}
	running := chat("gate one", api.ChatRequest{})
	gate.arrived()
	b.untilBusy(c, "coder")
	second := chat("two", api.ChatRequest{})
	b.untilWaiting(c, "coder", 1)
	third := chat("three", api.ChatRequest{Overflow: "persist"})
	b.untilWaiting(c, "coder", 2)
	director.kill()
	director = b.director("--addr", addr)
	gate.open()
	for i, done := range []chan answer{running, second, third} {
		got := <-done
		if got.err != nil {
			t.Fatalf("chat %d: %v", i+1, got.err)
		}
		if !strings.HasSuffix(got.reply.Response.Response, []string{"did gate one\n", "did two\n", "did three\n"}[i]) {
			t.Errorf("chat %d: %+v", i+1, got.reply.Response)
		}
		if want := []string{"running", "queued:1", "queued:2"}[i]; got.reply.Response.Execution.QueueStatus != want {
			t.Errorf("chat %d: %+v, want %s", i+1, got.reply.Response.Execution, want)
		}
		b.executedOnce(got.reply.Response.Execution.ID)
	}
	// Long after the end the same key gives the same answer.
	got, err := c.Chat(b.ctx(), "coder", api.ChatRequest{Message: "two"}, client.ChatOptions{IdempotencyKey: "key of two"})
	if err != nil || got.Response.Response != "did two\n" {
		t.Errorf("the same again: %+v, %v", got.Response, err)
	}
	b.executedOnce(got.Response.Execution.ID)
	code, said := b.ask(http.MethodPost, director.url+"/api/agents/coder/chat", `{"message": "something else"}`, "Idempotency-Key", "key of two")
	if code != http.StatusUnprocessableEntity {
		t.Errorf("the key with another message: %d %s", code, said)
	}
}

// A director that is stopped while chats wait tells the callers where their
// tasks are; the next director continues them.
func TestChatCallersAreToldWhenTheDirectorStops(t *testing.T) {
	b := newBox(t)
	addr := freePort(t)
	director := b.director("--addr", addr, "--grace", "0s")
	gate, command := b.gated()
	b.agent("coder", director.url, command...)
	c := b.client(director.url)
	b.untilState(c, "coder", "idle")
	said := make(chan string, 1)
	go func() {
		_, text := b.ask(http.MethodPost, director.url+"/api/agents/coder/chat", `{"message": "gate one"}`)
		said <- text
	}()
	gate.arrived()
	id := b.untilBusy(c, "coder")
	director.stop()
	if text := <-said; !strings.Contains(text, id) {
		t.Errorf("a caller of a director that stops is told: %s", text)
	}
	b.director("--addr", addr)
	gate.open()
	b.completed(c, id)
	b.executedOnce(id)
}
