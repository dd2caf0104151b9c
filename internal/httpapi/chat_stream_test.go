package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
)

var asStream = header("Accept", "text/event-stream")

func (e sse) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.data), v); err != nil {
		t.Fatalf("%+v: %v", e, err)
	}
}

func TestChatStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		b.ask("POST", chatPath, `{"message":"one"}`)
		synctest.Wait()
		one := b.accept(a)
		b.ask("POST", chatPath, `{"message":"two"}`)
		synctest.Wait()
		s := b.ask("POST", chatPath, `{"message":"three"}`, asStream)
		synctest.Wait()
		var accepted api.ChatAccepted
		s.events()[0].into(t, &accepted)
		if accepted.Position != 2 || accepted.Execution.QueueStatus != "queued:2" || accepted.URL != "/api/queue/"+accepted.Execution.ID || accepted.State != "pending" {
			t.Errorf("%+v", accepted)
		}
		time.Sleep(time.Second)
		b.complete(one, "")
		two := b.accept(a)
		time.Sleep(time.Second)
		b.complete(two, "")
		b.runs.print(accepted.Execution.ID, "") // from its claim on there is a log
		three := b.accept(a)
		synctest.Wait()
		b.runs.print(three.ID, "Reading …\n")
		synctest.Wait()
		b.runs.print(three.ID, "Writing …\n")
		time.Sleep(time.Minute) // heartbeats are no events
		b.runs.end(three.ID)
		b.finish(three, signalbox.ReasonCompleted, signalbox.Result{Output: "Done.", Tail: "Reading …\nWriting …\nDone.\n"})
		got := s.answer().want(t, 200, nil)
		got.wantCall(t, three.ID)
		list := s.events()
		if got := names(list); got != "accepted position position started output output output result" {
			t.Fatalf("%s: %v", got, list)
		}
		for i, want := range []int{1, 0} {
			var p api.ChatPosition
			if list[1+i].into(t, &p); p.ID != three.ID || p.Position != want {
				t.Errorf("%+v", p)
			}
		}
		for i, want := range []string{`{"after":0,"text":"Reading …\n"}`, `{"after":12,"text":"Writing …\n"}`, `{"after":24,"text":"Done.\n"}`} {
			if list[4+i].data != want {
				t.Errorf("%s, want %s", list[4+i].data, want)
			}
		}
		var end api.ChatResponse
		if list[7].into(t, &end); end.Response != "Done." || end.Execution.ID != three.ID || end.SessionID != three.SessionID {
			t.Errorf("%+v", end)
		}
		if !strings.Contains(string(got.body), ": alive") {
			t.Errorf("no sign of life in a minute: %s", got.body)
		}
	})
}

// One for whom a slot is free is not told of a place in line.
func TestChatStreamAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		s := b.ask("POST", chatPath, `{"message":"one"}`, asStream)
		time.Sleep(time.Second)
		b.complete(b.accept(a), "An agent that keeps no log")
		s.answer().want(t, 200, nil)
		if got := names(s.events()); got != "accepted started result" {
			t.Errorf("%s", got)
		}
	})
}

func TestChatStreamEndsWithTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		running := b.ask("POST", chatPath, `{"message":"m"}`, asStream)
		synctest.Wait()
		task := b.accept(a)
		waiting := b.ask("POST", chatPath, `{"message":"m"}`, asStream)
		synctest.Wait()
		b.do("POST", "/api/agents/coder/queue/clear", "").want(t, 200, nil)
		b.do("POST", "/api/agents/coder/queue/release", "").want(t, 200, nil)
		for want, s := range map[string]*asking{"released": running, "cancelled": waiting} {
			s.answer().want(t, 200, nil)
			list := s.events()
			last := list[len(list)-1]
			var e api.ChatError
			if last.into(t, &e); last.name != "error" || e.Code != want || e.Message == "" || e.Execution == nil || e.RequestID == "" {
				t.Errorf("%s: %+v", want, last)
			}
		}
		if got := names(waiting.events()); strings.Contains(got, "started") {
			t.Errorf("%s", got)
		}
		_ = task
	})
}

// Places that change all the time are told five times a second at most, and
// the last one always.
func TestChatStreamPositionsAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, func(o *options) { o.engine.MaxSize = 1000 })
		a := b.talker("coder", 1)
		const before = 400
		for range before {
			b.submit(`{"prompt":"p","agent":"coder"}`)
		}
		s := b.ask("POST", chatPath, `{"message":"m"}`, asStream)
		synctest.Wait()
		for range before - 1 {
			b.complete(b.work(a), "")
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Second)
		list := s.events()
		var last api.ChatPosition
		list[len(list)-1].into(t, &last)
		if seconds := before * 5 / 1000; len(list) > 5*seconds+4 || len(list) < 3 || last.Position != 2 {
			t.Errorf("%d events, the last %+v", len(list), last)
		}
		s.leave()
		s.answer()
	})
}

// A chat that is sent back waits again, and is told so.
func TestChatStreamOfARequeuedTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		s := b.ask("POST", chatPath, `{"message":"m","on_lost":"requeue"}`, asStream)
		synctest.Wait()
		task := b.accept(a)
		synctest.Wait()
		if _, err := b.engine.Lose(t.Context(), task, signalbox.ReasonLost, "gone", false, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, _, err := b.engine.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.complete(b.accept(a), "at last")
		s.answer()
		if got := names(s.events()); got != "accepted started position position started result" {
			t.Errorf("%s", got)
		}
	})
}

func TestStreamsAreCountedBeforeAChatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		b.talker("coder", 1)
		for range httpapi.MaxStreams {
			b.dir.AddStream()
		}
		e := b.do("POST", chatPath, `{"message":"m"}`, asStream).wantError(t, 503, signalbox.CodeUnavailable)
		if c, err := b.store.Counts(t.Context()); err != nil || c.Pending != 0 || e.RetryAfter == 0 {
			t.Errorf("%+v %+v %v", e, c, err)
		}
	})
}

const taskPath = "/api/agents/coder/task"

func TestBypass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		chat := b.ask("POST", chatPath, `{"message":"m"}`)
		synctest.Wait()
		turn := b.accept(a)
		one := b.ask("POST", taskPath, `{"message":"m","allowed_tools":["Read"],"system_prompt":"Be brief."}`)
		synctest.Wait()
		first := b.acceptIsolated(a)
		two := b.ask("POST", taskPath, `{"prompt":"p","timeout_seconds":60}`, asStream)
		synctest.Wait()
		second := b.acceptIsolated(a)
		req, err := b.store.Request(t.Context(), first.ID)
		if err != nil || req.TimeoutSeconds != 300 || req.SystemPrompt != "Be brief." || len(req.AllowedTools) != 1 || first.SessionID != "" || !signalbox.Isolated(first.Slot) {
			t.Errorf("%+v %+v %v", first, req, err)
		}
		if req, err = b.store.Request(t.Context(), second.ID); err != nil || req.TimeoutSeconds != 60 {
			t.Errorf("%+v %v", req, err)
		}
		full := b.do("POST", taskPath, `{"message":"m"}`)
		if e := full.wantChatError(t, 429, signalbox.CodeAgentBusy); e.Error != "Bypass is full" || !strings.Contains(e.Message, "2 of its isolated executions") || full.Header.Get("Retry-After") == "" {
			t.Errorf("%+v", e)
		}
		var agents api.Agents
		b.do("GET", "/api/agents", "").want(t, 200, &agents)
		if v := agents.Agents[0]; v.InUse != 1 || len(v.Running) != 1 || len(v.Isolated) != 2 || v.Isolated[1].Slot != 1 || v.IsolatedSlots != 2 {
			t.Errorf("%+v", v)
		}
		var lane api.Lane
		b.do("GET", "/api/agents/coder/queue", "").want(t, 200, &lane)
		if len(lane.Bypass) != 2 || len(lane.Executions) != 1 || lane.CurrentExecution.ID != turn.ID || lane.QueueLength != 0 {
			t.Errorf("%+v", lane)
		}
		b.finish(first, signalbox.ReasonCompleted, signalbox.Result{Output: "Yes.", Tail: "thinking\nYes.\n"})
		var out api.ChatResponse
		one.answer().want(t, 200, &out).wantCall(t, first.ID)
		if out.Response != "Yes." || out.ExecutionLog != "thinking\nYes.\n" || out.Execution.QueueStatus != "running" {
			t.Errorf("%+v", out)
		}
		two.leave()
		b.do("POST", "/api/queue/"+second.ID+"/cancel", "")
		var v api.Task
		b.do("GET", "/api/queue/"+second.ID, "").want(t, 200, &v)
		if v.Mode != "bypass" || v.State != "cancelling" {
			t.Errorf("%+v", v)
		}
		b.complete(turn, "")
		chat.answer()
	})
}

func TestBypassIsNotForEveryAgent(t *testing.T) {
	b := newBox(t)
	b.agent("plain", 1)
	b.sleeper("asleep")
	b.do("POST", "/api/agents/plain/task", `{"message":"m"}`).wantChatError(t, 501, signalbox.CodeUnsupported)
	b.do("POST", "/api/agents/asleep/task", `{"message":"m"}`).wantChatError(t, 503, signalbox.CodeAgentDown)
	b.do("POST", "/api/agents/nobody/task", `{"message":"m"}`).wantError(t, 404, signalbox.CodeNotFound)
	b.do("POST", taskPath, `{"message":"m","session_id":"s"}`).wantError(t, 400, signalbox.CodeValidation)
	b.do("POST", taskPath, `{"message":"m","on_disconnect":"s"}`).wantError(t, 400, signalbox.CodeValidation)
}

func TestBypassRespondsAsync(t *testing.T) {
	b := newBox(t)
	a := b.talker("coder", 1)
	var out api.ChatAccepted
	b.do("POST", taskPath, `{"message":"m"}`, header("Prefer", "respond-async"), asStream).want(t, 202, &out)
	task := b.acceptIsolated(a)
	if out.Execution.ID != task.ID || out.SessionID != "" {
		t.Errorf("%+v", out)
	}
	if _, err := b.engine.Finish(t.Context(), task, engine.Outcome{Reason: signalbox.ReasonCompleted}); err != nil {
		t.Fatal(err)
	}
}
