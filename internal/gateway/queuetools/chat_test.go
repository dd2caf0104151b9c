package queuetools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/testkit"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/gateway/queuetools"
)

// chatSaid is the answer of chat_with_agent.
type chatSaid struct {
	Status      string           `json:"status"`
	Agent       string           `json:"agent"`
	Response    string           `json:"response"`
	QueueID     string           `json:"queue_id"`
	Execution   api.ExecutionRef `json:"execution"`
	Metadata    api.ChatMetadata `json:"metadata"`
	SessionID   string           `json:"session_id"`
	Position    int              `json:"position"`
	QueueStatus string           `json:"queue_status"`
	RetryAfter  int              `json:"retry_after_seconds"`
	Message     string           `json:"message"`
	Details     json.RawMessage  `json:"details"`
	Next        string           `json:"next"`
}

// hello returns the arguments of a turn with the agent coder.
func hello(more ...args) args {
	all := args{"agent": "coder", "message": "Hello"}
	for _, m := range more {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// Turns of one agent run one after the other. A waiting caller gets its
// position as progress.
func TestChatToolTakesTurns(t *testing.T) {
	inEras(t, func(t *testing.T, era string) {
		y := newFixture(t, options{})
		agent := y.agents["coder"]
		c, other := y.connect(era), y.connect(era)
		first := other.begin(t.Context(), "chat_with_agent", hello())
		one := agent.AwaitStart(1)
		second := c.begin(t.Context(), "chat_with_agent", hello(args{"message": "And I?"}))
		var news []string
		next := func() string {
			p := testkit.Receive(t, "progress", c.progress)
			if p.ProgressToken != "turn" || (len(news) > 0 && p.Progress <= 0) {
				t.Errorf("%+v", p)
			}
			news = append(news, p.Message)
			return p.Message
		}
		if m := next(); m != "queued, position 1" {
			t.Error(m)
		}
		agent.Finish(one.QueueID, agenttest.End{Output: "Hi."})
		var a, b chatSaid
		got := testkit.Receive(t, "the first answer", first)(&a)
		if a.Status != "completed" || a.Response != "Hi." || a.QueueID != one.QueueID || a.Execution.ID != one.QueueID || a.Execution.WasQueued || a.SessionID == "" || !strings.HasPrefix(got.text, "Hi.\n") {
			t.Errorf("%+v %s", a, got.text)
		}
		two := agent.AwaitStart(2)
		for next() != "agent coder is at work" {
		}
		agent.Finish(two.QueueID, agenttest.End{Output: "You too."})
		testkit.Receive(t, "the second answer", second)(&b)
		if b.Response != "You too." || b.SessionID != a.SessionID || b.Execution.QueueStatus != "queued:1" || !b.Execution.WasQueued {
			t.Errorf("%+v", b)
		}
		if row := y.task(two.QueueID); row.Mode != signalbox.ModeChat {
			t.Errorf("%+v", row)
		}
		if found := agent.Overlaps(); len(found) > 0 {
			t.Error(found)
		}
	})
}

// If all waiting places are taken, the answer has exactly the seed's fields
// in the seed's order. It is not an error, because a model should plan with
// it.
func TestChatToolReportsABusyAgent(t *testing.T) {
	inEras(t, func(t *testing.T, era string) {
		y := newFixture(t, options{engine: engine.Options{MaxChats: 1}})
		c := y.connect(era)
		var runs, waits, busy chatSaid
		c.call("chat_with_agent", hello(args{"wait_seconds": 0}), &runs)
		y.agents["coder"].AwaitStart(1)
		c.call("chat_with_agent", hello(args{"wait_seconds": 0}), &waits)
		if waits.Status != "queued" || waits.Position != 1 || waits.Execution.QueueStatus != "queued:1" {
			t.Errorf("%+v", waits)
		}
		text := c.call("chat_with_agent", hello(), &busy).text
		want := `{
  "status": "agent_busy",
  "agent": "coder",
  "queue_status": "queue_full",
  "retry_after_seconds": 30,
  "message": "Agent 'coder' is currently busy. The execution queue is full. Please wait 30 seconds before retrying, or try a different agent.",
  "details": {
    "error": "Agent queue is full",
    "code": "queue_full",
    "agent": "coder",`
		if !strings.HasPrefix(text, want) || busy.Status != "agent_busy" || busy.RetryAfter != 30 {
			t.Errorf("%s", text)
		}
		var details api.ChatError
		if err := json.Unmarshal(busy.Details, &details); err != nil || details.QueueLen == nil || *details.QueueLen != 1 || details.RetryAfter != 30 {
			t.Errorf("%+v %v", details, err)
		}
		c.call("chat_with_agent", hello(args{"overflow": "reject"}), &busy)
		if busy.QueueStatus != "busy" || busy.Message != "Agent 'coder' is currently busy. Please wait 30 seconds before retrying, or try a different agent." {
			t.Errorf("%+v", busy)
		}
	})
}

// With parallel a turn runs at once beside the others, isolated. If the bypass
// is full as well, the caller is told so.
func TestChatToolInParallel(t *testing.T) {
	y := newFixture(t, options{})
	agent := y.agents["coder"]
	c := y.connect(modernEra)
	c.call("chat_with_agent", hello(args{"wait_seconds": 0}), nil)
	turn := agent.AwaitStart(1)
	beside := c.begin(t.Context(), "chat_with_agent", hello(args{"parallel": true}))
	run := agent.AwaitStart(2)
	if !run.Isolated || y.task(run.QueueID).Mode != signalbox.ModeBypass {
		t.Errorf("%+v", run)
	}
	var busy, done chatSaid
	c.call("chat_with_agent", hello(args{"parallel": true}), &busy)
	if busy.Status != "agent_busy" || busy.QueueStatus != "bypass_full" || busy.RetryAfter != 30 {
		t.Errorf("%+v", busy)
	}
	agent.Print(run.QueueID, "thinking\n")
	agent.Finish(run.QueueID, agenttest.End{Output: "Done beside."})
	got := testkit.Receive(t, "the answer", beside)(&done)
	if done.Response != "Done beside." || strings.Contains(got.text, "thinking") {
		t.Errorf("%+v %s", done, got.text)
	}
	agent.Finish(turn.QueueID, agenttest.End{})
	for name, value := range map[string]any{"session_id": "s-1", "new_session": true, "overflow": "wait"} {
		if text := c.fails("chat_with_agent", hello(args{"parallel": true, name: value}), signalbox.CodeValidation); !strings.Contains(text, name+" does not go with parallel") {
			t.Error(text)
		}
	}
}

// A turn that takes longer than its caller waits continues and can be
// followed by its ID, which the caller got before its client gave up.
func TestChatToolTurnContinuesAfterWait(t *testing.T) {
	inEras(t, func(t *testing.T, era string) {
		y := newFixture(t, options{})
		agent := y.agents["coder"]
		c := y.connect(era)
		var runs, waits chatSaid
		got := c.call("chat_with_agent", hello(args{"wait_seconds": 1}), &runs)
		if runs.Status != "running" || runs.Next == "" || !strings.Contains(got.text, runs.QueueID) {
			t.Errorf("%+v %s", runs, got.text)
		}
		c.call("chat_with_agent", hello(args{"wait_seconds": 1, "overflow": "persist"}), &waits)
		if waits.Status != "queued" || waits.Position != 1 {
			t.Errorf("%+v", waits)
		}
		for i, id := range []string{runs.QueueID, waits.QueueID} {
			if run := agent.AwaitStart(i + 1); run.QueueID != id {
				t.Fatalf("%+v", run)
			}
			agent.Finish(id, agenttest.End{Output: fmt.Sprint(i)})
			var end taskSaid
			c.call("task_status", args{"task_id": id, "wait_seconds": 60}, &end)
			if end.State != "completed" || *end.Result != fmt.Sprint(i) {
				t.Errorf("%+v", end)
			}
		}
	})
}

// If a client gives up, or its user ends the call, the turn is cancelled
// unless the call says otherwise: nobody has the ID, and a repeated call would
// do the work twice.
func TestIncidentMCPClientGivesUpWithNoId(t *testing.T) {
	inEras(t, func(t *testing.T, era string) {
		y := newFixture(t, options{})
		agent := y.agents["coder"]
		c := y.connect(era)
		for i, way := range []string{"cancel", "continue"} {
			ctx, leave := context.WithCancel(t.Context())
			calls := hello(args{"on_disconnect": way})
			if way == "cancel" {
				delete(calls, "on_disconnect") // so that the default applies
			}
			done := c.begin(ctx, "chat_with_agent", calls)
			id := agent.AwaitStart(i + 1).QueueID
			testkit.Wait(y.t, "it runs", func() bool { return y.task(id).State == signalbox.Working })
			leave()
			if way == "cancel" {
				testkit.Wait(y.t, "the turn is cancelled", func() bool { return y.task(id).State == signalbox.Cancelled })
				if m := y.task(id).Message; !strings.Contains(m, "its caller, who went away") {
					t.Error(m)
				}
			} else {
				agent.Finish(id, agenttest.End{Output: "all the same"})
				testkit.Wait(y.t, "the turn ends", func() bool { return y.task(id).State == signalbox.Completed })
			}
			<-done
		}
	})
}

// A stopping director lets turns continue, even if callers wait for them.
func TestChatToolWhileTheDirectorStops(t *testing.T) {
	y := newFixture(t, options{})
	c := y.connect(modernEra)
	done := c.begin(t.Context(), "chat_with_agent", hello())
	id := y.agents["coder"].AwaitStart(1).QueueID
	testkit.Wait(y.t, "it runs", func() bool { return y.task(id).State == signalbox.Working })
	y.dir.Stop()
	<-done
	if row := y.task(id); row.State != signalbox.Working || row.CancelRequested {
		t.Errorf("%+v", row)
	}
	y.agents["coder"].Finish(id, agenttest.End{})
	testkit.Wait(y.t, "the turn ends", func() bool { return y.task(id).State == signalbox.Completed })
}

// A second call with the same key waits for the first turn and gets its
// answer.
func TestChatToolWithAKey(t *testing.T) {
	y := newFixture(t, options{})
	c := y.connect(legacyEra)
	var first, again chatSaid
	calls := hello(args{"idempotency_key": "turn-7", "wait_seconds": 1})
	c.call("chat_with_agent", calls, &first)
	y.agents["coder"].Finish(first.QueueID, agenttest.End{Output: "once"})
	c.call("chat_with_agent", calls, &again)
	if again.Response != "once" || again.QueueID != first.QueueID || len(y.agents["coder"].Executions()) != 1 {
		t.Errorf("%+v", again)
	}
}

// A call continues a conversation or begins a new one.
func TestChatToolNamesTheConversation(t *testing.T) {
	y := newFixture(t, options{agents: []agenttest.Options{{Name: "coder", Auto: true}}})
	c := y.connect(modernEra)
	var one, two, three, four chatSaid
	c.call("chat_with_agent", hello(), &one)
	c.call("chat_with_agent", hello(args{"new_session": true}), &two)
	c.call("chat_with_agent", hello(), &three)
	c.call("chat_with_agent", hello(args{"session_id": one.SessionID}), &four)
	if one.SessionID == two.SessionID || three.SessionID != two.SessionID || four.SessionID != one.SessionID {
		t.Errorf("%s %s %s %s", one.SessionID, two.SessionID, three.SessionID, four.SessionID)
	}
}

// A turn that does not complete is an error with its reason and a text that
// is never empty.
func TestChatToolThatFails(t *testing.T) {
	y := newFixture(t, options{agents: []agenttest.Options{{Name: "coder"}, {Name: "gone"}}})
	c := y.connect(modernEra)
	agent := y.agents["coder"]
	fails := c.begin(t.Context(), "chat_with_agent", hello())
	id := agent.AwaitStart(1).QueueID
	agent.Finish(id, agenttest.End{State: "failed", Error: &api.AgentError{Type: "max_turns", Message: "it had no turns left"}})
	if got := testkit.Receive(t, "the failure", fails)(nil); !got.IsError || !strings.Contains(got.text, "it had no turns left") || !strings.Contains(got.text, id) {
		t.Errorf("%s", got.text)
	}
	ends := c.begin(t.Context(), "chat_with_agent", hello())
	id = agent.AwaitStart(2).QueueID
	c.call("cancel_task", args{"task_id": id}, nil)
	if got := testkit.Receive(t, "the cancel", ends)(nil); !got.IsError || !strings.HasPrefix(got.text, "cancelled: ") {
		t.Errorf("%s", got.text)
	}
	if text := c.fails("chat_with_agent", args{"agent": "nobody", "message": "m"}, signalbox.CodeNotFound); !strings.Contains(text, "nobody") {
		t.Error(text)
	}
	y.agents["gone"].Down()
	testkit.Wait(y.t, "it is down", func() bool {
		var fleet struct{ Agents []map[string]any }
		c.call("list_agents", nil, &fleet)
		return fleet.Agents[1]["state"] == "down"
	})
	if text := c.fails("chat_with_agent", args{"agent": "gone", "message": "m"}, signalbox.CodeAgentDown); !strings.Contains(text, "list_agents") || !strings.Contains(text, "Try again in 30 seconds.") {
		t.Error(text)
	}
	// The seed's name for the agent is accepted.
	if got := c.call("chat_with_agent", args{"agent_name": "coder", "message": "m", "wait_seconds": 0}, nil); got.IsError {
		t.Error(got.text)
	}
}

// A long turn reports progress at every keep-alive of its stream, because
// clients give up on silent calls. Events that do not concern the caller are
// left out.
func TestChatToolReportsProgressOfLongTurns(t *testing.T) {
	got := queuetools.ChatProgress("coder", time.Now().Add(-45*time.Second),
		"retry: 1000\n\n",
		"event: accepted\ndata: {\"execution\":{\"id\":\"queue-1\"},\"state\":\"pending\",\"position\":2}\n\n",
		": alive\n\n",
		"event: position\ndata: {\"id\":\"queue-1\",\"pos", "ition\":1}\n\n",
		"event: position\ndata: {\"id\":\"queue-1\",\"position\":0}\n\n",
		"event: started\ndata: {\"execution\":{\"id\":\"queue-1\"},\"state\":\"working\"}\n\n",
		"event: output\ndata: {\"text\":\"thinking\"}\n\n",
		": alive\n\n",
		"event: result\ndata: {}\n\n",
	)
	want := []string{"queued, position 2", "queued, position 2", "queued, position 1", "agent coder is about to start", "agent coder is at work (45s)", "agent coder is at work (45s)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
