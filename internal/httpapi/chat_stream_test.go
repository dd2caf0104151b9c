package httpapi_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

var asStream = apitest.Header("Accept", "text/event-stream")

// The stream of a waiting chat says what the chat waits for, even if it is the first in line.
func TestChatStreamAtALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		b.AddChatAgent("coder", 1)
		a := b.ReportAccount("coder", nil)
		s := b.Start("POST", chatPath, `{"message":"one"}`, asStream)
		synctest.Wait()
		one := b.Accept(a)
		synctest.Wait()
		b.Park(one, time.Hour)
		synctest.Wait()
		list := s.Events()
		if got := apitest.EventNames(list); got != "accepted started position" {
			t.Fatalf("%s: %v", got, list)
		}
		var p api.ChatPosition
		if list[2].Into(t, &p); p.Position != 1 || p.WaitingFor == nil || p.WaitingFor.Name != "coder" || p.WaitingFor.Until == nil {
			t.Errorf("%+v", p)
		}
		other := b.Start("POST", chatPath, `{"message":"two"}`, apitest.Header("Prefer", "respond-async"))
		synctest.Wait()
		var accepted api.ChatAccepted
		other.Reply().Want(t, 202, &accepted)
		if accepted.State != "pending" || accepted.Position != 2 || accepted.WaitingFor == nil || !strings.HasPrefix(accepted.WaitingFor.Text, "account coder is closed until ") {
			t.Errorf("%+v", accepted)
		}
		b.Do("POST", "/api/queue/"+p.ID+"/cancel", "").Want(t, 200, nil)
		synctest.Wait()
		if got := apitest.EventNames(s.Events()); got != "accepted started position error" && got != "accepted started position position error" {
			t.Errorf("%s", got)
		}
	})
}

func TestChatStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		b.Start("POST", chatPath, `{"message":"one"}`)
		synctest.Wait()
		one := b.Accept(a)
		b.Start("POST", chatPath, `{"message":"two"}`)
		synctest.Wait()
		s := b.Start("POST", chatPath, `{"message":"three"}`, asStream)
		synctest.Wait()
		var accepted api.ChatAccepted
		s.Events()[0].Into(t, &accepted)
		if accepted.Position != 2 || accepted.Execution.QueueStatus != "queued:2" || accepted.URL != "/api/queue/"+accepted.Execution.ID || accepted.State != "pending" {
			t.Errorf("%+v", accepted)
		}
		time.Sleep(time.Second)
		b.Complete(one, "")
		two := b.Accept(a)
		time.Sleep(time.Second)
		b.Complete(two, "")
		b.Runs.Print(accepted.Execution.ID, "") // the log exists from the claim on
		three := b.Accept(a)
		synctest.Wait()
		b.Runs.Print(three.ID, "Reading …\n")
		synctest.Wait()
		b.Runs.Print(three.ID, "Writing …\n")
		time.Sleep(time.Minute) // heartbeats are not events
		b.Runs.End(three.ID)
		b.FinishTask(three, signalbox.ReasonCompleted, signalbox.Result{Output: "Done.", Tail: "Reading …\nWriting …\nDone.\n"})
		got := s.Reply().Want(t, 200, nil)
		wantCall(got, t, three.ID)
		list := s.Events()
		if got := apitest.EventNames(list); got != "accepted position position started output output output result" {
			t.Fatalf("%s: %v", got, list)
		}
		for i, want := range []int{1, 0} {
			var p api.ChatPosition
			if list[1+i].Into(t, &p); p.ID != three.ID || p.Position != want {
				t.Errorf("%+v", p)
			}
		}
		for i, want := range []string{`{"after":0,"text":"Reading …\n"}`, `{"after":12,"text":"Writing …\n"}`, `{"after":24,"text":"Done.\n"}`} {
			if list[4+i].Data != want {
				t.Errorf("%s, want %s", list[4+i].Data, want)
			}
		}
		var end api.ChatResponse
		if list[7].Into(t, &end); end.Response != "Done." || end.Execution.ID != three.ID || end.SessionID != three.SessionID {
			t.Errorf("%+v", end)
		}
		if !strings.Contains(string(got.Body), ": alive") {
			t.Errorf("no sign of life in a minute: %s", got.Body)
		}
	})
}

// A chat that gets a free slot gets no position in line.
func TestChatStreamAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		s := b.Start("POST", chatPath, `{"message":"one"}`, asStream)
		time.Sleep(time.Second)
		b.Complete(b.Accept(a), "An agent that keeps no log")
		s.Reply().Want(t, 200, nil)
		if got := apitest.EventNames(s.Events()); got != "accepted started result" {
			t.Errorf("%s", got)
		}
	})
}

func TestChatStreamEndsWithTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		running := b.Start("POST", chatPath, `{"message":"m"}`, asStream)
		synctest.Wait()
		task := b.Accept(a)
		waiting := b.Start("POST", chatPath, `{"message":"m"}`, asStream)
		synctest.Wait()
		b.Do("POST", "/api/agents/coder/queue/clear", "").Want(t, 200, nil)
		b.Do("POST", "/api/agents/coder/queue/release", "").Want(t, 200, nil)
		for want, s := range map[string]*apitest.Pending{"released": running, "cancelled": waiting} {
			s.Reply().Want(t, 200, nil)
			list := s.Events()
			last := list[len(list)-1]
			var e api.ChatError
			if last.Into(t, &e); last.Name != "error" || e.Code != want || e.Message == "" || e.Execution == nil || e.RequestID == "" {
				t.Errorf("%s: %+v", want, last)
			}
		}
		if got := apitest.EventNames(waiting.Events()); strings.Contains(got, "started") {
			t.Errorf("%s", got)
		}
		_ = task
	})
}

// Positions that change constantly are sent at most five times a second, and the last one
// always.
func TestChatStreamPositionsAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t, func(o *apitest.Options) { o.Engine.MaxSize = 1000 })
		a := b.AddChatAgent("coder", 1)
		const before = 400
		for range before {
			b.Submit(`{"prompt":"p","agent":"coder"}`)
		}
		s := b.Start("POST", chatPath, `{"message":"m"}`, asStream)
		synctest.Wait()
		for range before - 1 {
			b.Complete(b.Run(a), "")
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Second)
		list := s.Events()
		var last api.ChatPosition
		list[len(list)-1].Into(t, &last)
		if seconds := before * 5 / 1000; len(list) > 5*seconds+4 || len(list) < 3 || last.Position != 2 {
			t.Errorf("%d events, the last %+v", len(list), last)
		}
		s.Cancel()
		s.Reply()
	})
}

// A requeued chat waits again, and its stream says so.
func TestChatStreamOfARequeuedTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		s := b.Start("POST", chatPath, `{"message":"m","on_lost":"requeue"}`, asStream)
		synctest.Wait()
		task := b.Accept(a)
		synctest.Wait()
		if _, err := b.Engine.Lose(t.Context(), task, signalbox.ReasonLost, "gone", false, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, _, err := b.Engine.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Complete(b.Accept(a), "at last")
		s.Reply()
		if got := apitest.EventNames(s.Events()); got != "accepted started position position started result" {
			t.Errorf("%s", got)
		}
	})
}

func TestStreamsAreCountedBeforeAChatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		b.AddChatAgent("coder", 1)
		for range httpapi.MaxStreams {
			b.Server.AddStream()
		}
		e := b.Do("POST", chatPath, `{"message":"m"}`, asStream).WantError(t, 503, signalbox.CodeUnavailable)
		if c, err := b.Store.Counts(t.Context()); err != nil || c.Pending != 0 || e.RetryAfter == 0 {
			t.Errorf("%+v %+v %v", e, c, err)
		}
	})
}

const taskPath = "/api/agents/coder/task"

func TestBypass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		chat := b.Start("POST", chatPath, `{"message":"m"}`)
		synctest.Wait()
		turn := b.Accept(a)
		one := b.Start("POST", taskPath, `{"message":"m","allowed_tools":["Read"],"system_prompt":"Be brief."}`)
		synctest.Wait()
		first := b.AcceptIsolated(a)
		two := b.Start("POST", taskPath, `{"prompt":"p","timeout_seconds":60}`, asStream)
		synctest.Wait()
		second := b.AcceptIsolated(a)
		req, err := b.Store.Request(t.Context(), first.ID)
		if err != nil || req.TimeoutSeconds != 300 || req.SystemPrompt != "Be brief." || len(req.AllowedTools) != 1 || first.SessionID != "" || !signalbox.Isolated(first.Slot) {
			t.Errorf("%+v %+v %v", first, req, err)
		}
		if req, err = b.Store.Request(t.Context(), second.ID); err != nil || req.TimeoutSeconds != 60 {
			t.Errorf("%+v %v", req, err)
		}
		full := b.Do("POST", taskPath, `{"message":"m"}`)
		if e := wantChatError(full, t, 429, signalbox.CodeAgentBusy); e.Error != "Bypass is full" || !strings.Contains(e.Message, "2 of its isolated executions") || full.Header.Get("Retry-After") == "" {
			t.Errorf("%+v", e)
		}
		var agents api.Agents
		b.Do("GET", "/api/agents", "").Want(t, 200, &agents)
		if v := agents.Agents[0]; v.InUse != 1 || len(v.Running) != 1 || len(v.Isolated) != 2 || v.Isolated[1].Slot != 1 || v.IsolatedSlots != 2 {
			t.Errorf("%+v", v)
		}
		var lane api.Lane
		b.Do("GET", "/api/agents/coder/queue", "").Want(t, 200, &lane)
		if len(lane.Bypass) != 2 || len(lane.Executions) != 1 || lane.CurrentExecution.ID != turn.ID || lane.QueueLength != 0 {
			t.Errorf("%+v", lane)
		}
		b.FinishTask(first, signalbox.ReasonCompleted, signalbox.Result{Output: "Yes.", Tail: "thinking\nYes.\n"})
		var out api.ChatResponse
		wantCall(one.Reply().Want(t, 200, &out), t, first.ID)
		if out.Response != "Yes." || out.ExecutionLog != "thinking\nYes.\n" || out.Execution.QueueStatus != "running" {
			t.Errorf("%+v", out)
		}
		two.Cancel()
		b.Do("POST", "/api/queue/"+second.ID+"/cancel", "")
		var v api.Task
		b.Do("GET", "/api/queue/"+second.ID, "").Want(t, 200, &v)
		if v.Mode != "bypass" || v.State != "cancelling" {
			t.Errorf("%+v", v)
		}
		b.Complete(turn, "")
		chat.Reply()
	})
}

func TestBypassIsNotForEveryAgent(t *testing.T) {
	b := apitest.New(t)
	b.AddAgent("plain", 1)
	b.AddDownAgent("asleep")
	wantChatError(b.Do("POST", "/api/agents/plain/task", `{"message":"m"}`), t, 501, signalbox.CodeUnsupported)
	wantChatError(b.Do("POST", "/api/agents/asleep/task", `{"message":"m"}`), t, 503, signalbox.CodeAgentDown)
	b.Do("POST", "/api/agents/nobody/task", `{"message":"m"}`).WantError(t, 404, signalbox.CodeNotFound)
	b.Do("POST", taskPath, `{"message":"m","session_id":"s"}`).WantError(t, 400, signalbox.CodeValidation)
	b.Do("POST", taskPath, `{"message":"m","on_disconnect":"s"}`).WantError(t, 400, signalbox.CodeValidation)
}

func TestBypassRespondsAsync(t *testing.T) {
	b := apitest.New(t)
	a := b.AddChatAgent("coder", 1)
	var out api.ChatAccepted
	b.Do("POST", taskPath, `{"message":"m"}`, apitest.Header("Prefer", "respond-async"), asStream).Want(t, 202, &out)
	task := b.AcceptIsolated(a)
	if out.Execution.ID != task.ID || out.SessionID != "" {
		t.Errorf("%+v", out)
	}
	if _, err := b.Engine.Finish(t.Context(), task, engine.Outcome{Reason: signalbox.ReasonCompleted}); err != nil {
		t.Fatal(err)
	}
}
