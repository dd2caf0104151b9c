package forward_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// The log of a running task is at the director that follows it. All others show it live and
// completely.
func TestOutputOfATaskThatAnotherDirectorFollows(t *testing.T) {
	r := apitest.NewCluster(t, 2)
	alfa, bravo := r.Members[0], r.Members[1]
	task := r.RunTask(alfa, bravo, r.Hold(bravo, "coder"))
	path := "/api/queue/" + task.ID + "/output"
	var out api.Output
	if alfa.Request("GET", path, "").Want(t, 200, &out); out.Text != "" || out.Message != "" || out.State != "working" {
		t.Errorf("before it prints: %+v", out)
	}
	bravo.Runs.Print(task.ID, "Reading …\n")
	if alfa.Request("GET", path, "").Want(t, 200, &out); out.Text != "Reading …\n" || out.Next != 12 || out.Done {
		t.Errorf("%+v", out)
	}
	s := alfa.OpenStream(path + "?after=12")
	for _, text := range []string{"Writing …\n", "Still writing …\n"} {
		bravo.Runs.Print(task.ID, text)
		if got := apitest.Decode[api.Output](t, s.Next().Data); got.Text != text || got.QueueID != task.ID {
			t.Errorf("%+v", got)
		}
	}
	bravo.Runs.End(task.ID)
	bravo.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Output: "Done.", Tail: "Reading …\nWriting …\nStill writing …\nDone.\n"})
	last, done := "", false
	for !done {
		e := apitest.Decode[api.Output](t, s.Next().Data)
		last, done = last+e.Text, e.Done
	}
	if last != "Done.\n" {
		t.Errorf("at the end %q", last)
	}
	if alfa.Request("GET", path, "").Want(t, 200, &out); !out.Done || !strings.HasSuffix(out.Text, "Done.\n") {
		t.Errorf("%+v", out)
	}
}

// A waiting reader is answered when something is printed, at any director.
func TestWaitingForOutputAtAnotherDirector(t *testing.T) {
	r := apitest.NewCluster(t, 2)
	alfa, bravo := r.Members[0], r.Members[1]
	task := r.RunTask(alfa, bravo, r.Hold(bravo, "coder"))
	time.AfterFunc(300*time.Millisecond, func() { bravo.Runs.Print(task.ID, "late\n") })
	begin := time.Now()
	var out api.Output
	alfa.Request("GET", "/api/queue/"+task.ID+"/output?wait=60s", "").Want(t, 200, &out)
	if took := time.Since(begin); out.Text != "late\n" || took > 20*time.Second {
		t.Errorf("after %s: %+v", took, out)
	}
}

// Output at another director is sent as transient events, starting at its end when the reader
// connects.
func TestEventsWithOutputOfAnotherDirector(t *testing.T) {
	r := apitest.NewCluster(t, 2)
	alfa, bravo := r.Members[0], r.Members[1]
	task := r.RunTask(alfa, bravo, r.Hold(bravo, "coder"))
	bravo.Runs.Print(task.ID, "before\n")
	s := alfa.OpenStream("/api/events?include=output")
	text, printed := "", false
	printing := time.AfterFunc(time.Second, func() { bravo.Runs.Print(task.ID, "after\n") })
	defer printing.Stop()
	for !printed {
		e := s.Next()
		if e.Name != "output" {
			continue
		}
		text += apitest.Decode[api.Event](t, e.Data).Text
		printed = strings.HasSuffix(text, "\n")
	}
	if text != "after\n" {
		t.Errorf("told %q", text)
	}
	bravo.Runs.End(task.ID)
	bravo.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Tail: "before\nafter\nthe end\n"})
	for text = ""; !strings.HasSuffix(text, "the end\n"); {
		if e := s.Next(); e.Name == "output" {
			text += apitest.Decode[api.Event](t, e.Data).Text
		}
	}
	if text != "the end\n" {
		t.Errorf("at the end told %q", text)
	}
}

// Two directors that take each other for the holder answer at once.
func TestDirectorsDoNotAskEachOtherForEver(t *testing.T) {
	r := apitest.NewCluster(t, 2)
	alfa, bravo := r.Members[0], r.Members[1]
	a := r.Hold(alfa, "coder")
	task := r.RunTask(alfa, alfa, a)
	bravo.Beat() // the store says alfa, but alfa is made to assume bravo
	alfa.Peers.Store = redirected{alfa.View, "bravo"}
	alfa.Runs.End(task.ID)
	begin := time.Now()
	var out api.Output
	alfa.Request("GET", "/api/queue/"+task.ID+"/output", "").Want(t, 200, &out)
	if took := time.Since(begin); took > 20*time.Second || out.Text != "" {
		t.Errorf("after %s: %+v", took, out)
	}
}

// redirected names one director as the holder of all agents.
type redirected struct {
	store.Store
	holder string
}

func (r redirected) Holders(context.Context) (map[string]string, error) {
	return map[string]string{"coder": r.holder}, nil
}

// A director that does not answer is named, and the stored data is shown. A dead director is not
// asked.
func TestOutputOfADirectorThatDoesNotAnswer(t *testing.T) {
	r := apitest.NewCluster(t, 2)
	alfa, bravo := r.Members[0], r.Members[1]
	task := r.RunTask(alfa, bravo, r.Hold(bravo, "coder"))
	path := "/api/queue/" + task.ID + "/output"
	bravo.Kill()
	var out api.Output
	alfa.Request("GET", path, "").Want(t, 200, &out)
	if !strings.Contains(out.Message, "director bravo ("+bravo.HTTP.URL+")") || !strings.Contains(out.Message, "it does not answer;") || out.Text != "" {
		t.Errorf("%+v", out)
	}
	s := alfa.OpenStream(path)
	if e := apitest.Decode[api.Output](t, s.Next().Data); !strings.Contains(e.Message, "director bravo") {
		t.Errorf("the stream says %+v", e)
	}
	bravo.ExpireLease()
	out = api.Output{}
	if alfa.Request("GET", path, "").Want(t, 200, &out); out.Message != "" || out.State != "working" {
		t.Errorf("after its death: %+v", out)
	}
	alfa.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Tail: "from the agent\n"})
	for {
		if e := apitest.Decode[api.Output](t, s.Next().Data); e.Done {
			if e.Text != "from the agent\n" {
				t.Errorf("%+v", e)
			}
			break
		}
	}
}

// Another director decides only by the caller's own credentials.
func TestAnotherDirectorIsAskedWithTheCallersOwnRight(t *testing.T) {
	r := apitest.NewCluster(t, 1, func(o *apitest.Options) { o.Config.Token = "the-token-of-alfa-0123456789abcdef" })
	alfa := r.Members[0]
	bravo := r.Add("bravo", func(o *apitest.Options) { o.Config.Token = "the-token-of-bravo-0123456789abcdef" })
	a := r.Hold(bravo, "coder")
	show := apitest.Bearer("the-token-of-alfa-0123456789abcdef")
	alfa.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, show).Want(t, 201, nil)
	task := bravo.Run(a)
	bravo.Runs.Print(task.ID, "secret of bravo\n")
	path := "/api/queue/" + task.ID + "/output"
	var out api.Output
	alfa.Request("GET", path, "", show).Want(t, 200, &out)
	if out.Text != "" || !strings.Contains(out.Message, "unauthorized") {
		t.Errorf("%+v", out)
	}
	// A stored token is valid at both.
	reader := apitest.Bearer(alfa.AddToken(identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}}))
	if alfa.Request("GET", path, "", reader).Want(t, 200, &out); out.Text != "secret of bravo\n" {
		t.Errorf("%+v", out)
	}
	// So is a login. Its cookie is the only one that is forwarded.
	alfa.AddUser(identity.PutUser{ID: "kim", Password: apitest.Password, Role: signalbox.RoleAdmin})
	login := alfa.Login("kim")
	if alfa.Request("GET", path, "", login).Want(t, 200, &out); out.Text != "secret of bravo\n" {
		t.Errorf("%+v", out)
	}
	for range 3 { // also if it is sent to the other one first
		bravo.Request("GET", path, "", login).Want(t, 200, nil)
	}
}

func TestWaitsAndCancelsAcrossDirectors(t *testing.T) {
	r := apitest.NewCluster(t, 2)
	alfa, bravo := r.Members[0], r.Members[1]
	a := r.Hold(bravo, "coder")
	one := r.RunTask(alfa, bravo, a)
	time.AfterFunc(300*time.Millisecond, func() { bravo.FinishTask(one, signalbox.ReasonCompleted, signalbox.Result{Output: "42"}) })
	begin := time.Now()
	var v api.Task
	alfa.Request("GET", "/api/queue/"+one.ID+"?wait=60s", "").Want(t, 200, &v)
	if took := time.Since(begin); v.State != "completed" || v.Result.Output != "42" || took > 20*time.Second {
		t.Errorf("after %s: %+v", took, v)
	}

	two := r.RunTask(alfa, bravo, a)
	signs, stop := bravo.Engine.WatchTask(two.ID)
	defer stop()
	go func() { // as the dispatcher does after the cancel
		for range signs {
			if now, err := bravo.Engine.Read().Task(t.Context(), two.ID); err == nil && now.State == signalbox.Cancelling {
				_, _ = bravo.Engine.Finish(t.Context(), now, engine.Outcome{Reason: signalbox.ReasonCancelled})
				return
			}
		}
	}()
	begin = time.Now()
	var c api.Cancelled
	alfa.Request("POST", "/api/queue/"+two.ID+"/cancel", "").Want(t, 200, &c)
	if took := time.Since(begin); c.State != "cancelled" || !c.WasDispatched || took > 20*time.Second {
		t.Errorf("after %s: %+v", took, c)
	}
}

// A chat is followed at one director while another one dispatches to its agent.
func TestAChatAcrossDirectors(t *testing.T) {
	r := apitest.NewCluster(t, 2)
	alfa, bravo := r.Members[0], r.Members[1]
	a := r.Hold(bravo, "coder")
	s := alfa.OpenStream("/api/agents/coder/chat", func(q *http.Request) {
		q.Method, q.Body = "POST", io.NopCloser(strings.NewReader(`{"message":"hello"}`))
		q.Header.Set("Content-Type", "application/json")
	})
	accepted := apitest.Decode[api.ChatAccepted](t, s.Next().Data)
	task := bravo.Accept(a)
	if task.ID != accepted.Execution.ID {
		t.Fatalf("%s, not %s", task.ID, accepted.Execution.ID)
	}
	bravo.Runs.Print(task.ID, "Thinking …\n")
	if e := s.Next(); e.Name != "started" {
		t.Errorf("%+v", e)
	}
	if e := s.Next(); e.Name != "output" || !strings.Contains(e.Data, "Thinking …") {
		t.Errorf("%+v", e)
	}
	bravo.Runs.End(task.ID)
	bravo.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Output: "Hello.", Tail: "Thinking …\n"})
	for e := s.Next(); ; e = s.Next() {
		if e.Name == "result" {
			if got := apitest.Decode[api.ChatResponse](t, e.Data); got.Response != "Hello." {
				t.Errorf("%+v", got)
			}
			break
		}
	}
}

// A reader of events that reconnects at another director misses nothing. A reader of the live
// stream gets a new snapshot.
func TestStreamsGoOnAtAnotherDirector(t *testing.T) {
	r := apitest.NewCluster(t, 2)
	alfa, bravo := r.Members[0], r.Members[1]
	r.Hold(bravo, "coder")
	s := alfa.OpenStream("/api/events?after=0")
	alfa.AddEvents(3)
	var last apitest.Event
	for last.Name != "agent_up" {
		last = s.Next()
	}
	s.Close()
	alfa.AddEvents(2)
	bravo.AddEvents(2)
	seq := last.Seq(t)
	s = bravo.OpenStream("/api/events", apitest.Header("Last-Event-ID", last.ID))
	for seq < bravo.NewestEvent() {
		e := s.Next()
		if e.Name == "" { // only an id
			continue
		}
		if e.Name == "reset" || e.Seq(t) != seq+1 {
			t.Fatalf("after %d comes %+v", seq, e)
		}
		seq++
	}
	live := alfa.OpenStream("/api/live")
	first := live.Next()
	live.Close()
	if e := bravo.OpenStream("/api/live", apitest.Header("Last-Event-ID", first.ID)).Next(); first.Name != "snapshot" || e.Name != "resync" {
		t.Errorf("%s, then %s", first.Name, e.Name)
	}
}

// Only the director of a tool call knows its state. why shows it at all directors, once.
func TestWhyNamesTheCapacityOfOtherDirectors(t *testing.T) {
	tools := map[string]*apitest.Tools{}
	next := ""
	give := func(o *apitest.Options) {
		tools[next] = apitest.NewTools()
		apitest.WithTools(tools[next])(o)
	}
	r := apitest.NewCluster(t, 0)
	for _, next = range []string{"alfa", "bravo", "charlie"} {
		r.Add(next, give)
	}
	alfa, bravo := r.Members[0], r.Members[1]
	task := r.RunTask(alfa, bravo, r.Hold(bravo, "coder"))
	for _, name := range []string{"bravo", "charlie"} { // both know the shared queue
		tools[name].Statuses = []toolqueue.Status{{
			Name: "github", Concurrent: 1, InUse: 1, Depth: 1, Holders: []toolqueue.Holder{{Agent: "writer", Tool: "search", Execution: "x", Since: time.Now()}},
			Waiters: []toolqueue.Waiter{{Position: 1, Agent: "coder", Tool: "merge", Execution: task.ID, Since: time.Now()}},
		}}
	}
	var why api.Why
	alfa.Request("GET", "/api/queue/"+task.ID+"/why", "").Want(t, 200, &why)
	if len(why.Gates) != 1 || why.Gates[0].Text != "github is full, 1 of 1 in use by writer" || strings.Count(why.Summary, "It waits for capacity") != 1 {
		t.Errorf("%+v", why)
	}
	r.Members[2].Kill()
	begin := time.Now()
	alfa.Request("GET", "/api/queue/"+task.ID+"/why", "").Want(t, 200, &why)
	if took := time.Since(begin); len(why.Gates) != 1 || took > 20*time.Second {
		t.Errorf("after %s: %+v", took, why)
	}
}
