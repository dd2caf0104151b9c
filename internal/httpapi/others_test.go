package httpapi_test

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
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// The log of a running task is at the director that follows it; any other shows
// it as it is written, and to its end.
func TestOutputOfATaskThatAnotherDirectorFollows(t *testing.T) {
	r := newOthers(t, 2)
	alfa, bravo := r.all[0], r.all[1]
	task := r.works(alfa, bravo, r.holds(bravo, "coder"))
	path := "/api/queue/" + task.ID + "/output"
	var out api.Output
	if alfa.over("GET", path, "").want(t, 200, &out); out.Text != "" || out.Message != "" || out.State != "working" {
		t.Errorf("before it prints: %+v", out)
	}
	bravo.runs.print(task.ID, "Reading …\n")
	if alfa.over("GET", path, "").want(t, 200, &out); out.Text != "Reading …\n" || out.Next != 12 || out.Done {
		t.Errorf("%+v", out)
	}
	s := alfa.open(path + "?after=12")
	for _, text := range []string{"Writing …\n", "Still writing …\n"} {
		bravo.runs.print(task.ID, text)
		if got := decode[api.Output](t, s.must().data); got.Text != text || got.QueueID != task.ID {
			t.Errorf("%+v", got)
		}
	}
	bravo.runs.end(task.ID)
	bravo.finish(task, signalbox.ReasonCompleted, signalbox.Result{Output: "Done.", Tail: "Reading …\nWriting …\nStill writing …\nDone.\n"})
	last, done := "", false
	for !done {
		e := decode[api.Output](t, s.must().data)
		last, done = last+e.Text, e.Done
	}
	if last != "Done.\n" {
		t.Errorf("at the end %q", last)
	}
	if alfa.over("GET", path, "").want(t, 200, &out); !out.Done || !strings.HasSuffix(out.Text, "Done.\n") {
		t.Errorf("%+v", out)
	}
}

// A reader that waits is answered when something is printed, wherever.
func TestWaitingForOutputAtAnotherDirector(t *testing.T) {
	r := newOthers(t, 2)
	alfa, bravo := r.all[0], r.all[1]
	task := r.works(alfa, bravo, r.holds(bravo, "coder"))
	time.AfterFunc(300*time.Millisecond, func() { bravo.runs.print(task.ID, "late\n") })
	begin := time.Now()
	var out api.Output
	alfa.over("GET", "/api/queue/"+task.ID+"/output?wait=60s", "").want(t, 200, &out)
	if took := time.Since(begin); out.Text != "late\n" || took > 20*time.Second {
		t.Errorf("after %s: %+v", took, out)
	}
}

// What is printed elsewhere is among the events of the moment, from where it
// stands when the reader comes.
func TestEventsWithOutputOfAnotherDirector(t *testing.T) {
	r := newOthers(t, 2)
	alfa, bravo := r.all[0], r.all[1]
	task := r.works(alfa, bravo, r.holds(bravo, "coder"))
	bravo.runs.print(task.ID, "before\n")
	s := alfa.open("/api/events?include=output")
	text, printed := "", false
	printing := time.AfterFunc(time.Second, func() { bravo.runs.print(task.ID, "after\n") })
	defer printing.Stop()
	for !printed {
		e := s.must()
		if e.name != "output" {
			continue
		}
		text += decode[api.Event](t, e.data).Text
		printed = strings.HasSuffix(text, "\n")
	}
	if text != "after\n" {
		t.Errorf("told %q", text)
	}
	bravo.runs.end(task.ID)
	bravo.finish(task, signalbox.ReasonCompleted, signalbox.Result{Tail: "before\nafter\nthe end\n"})
	for text = ""; !strings.HasSuffix(text, "the end\n"); {
		if e := s.must(); e.name == "output" {
			text += decode[api.Event](t, e.data).Text
		}
	}
	if text != "the end\n" {
		t.Errorf("at the end told %q", text)
	}
}

// Two directors of which each takes the other for the holder answer at once.
func TestDirectorsDoNotAskEachOtherForEver(t *testing.T) {
	r := newOthers(t, 2)
	alfa, bravo := r.all[0], r.all[1]
	a := r.holds(alfa, "coder")
	task := r.works(alfa, alfa, a)
	bravo.beat() // the store says alfa; alfa is made to believe in bravo
	alfa.peers.store = redirected{alfa.view, "bravo"}
	alfa.runs.end(task.ID)
	begin := time.Now()
	var out api.Output
	alfa.over("GET", "/api/queue/"+task.ID+"/output", "").want(t, 200, &out)
	if took := time.Since(begin); took > 20*time.Second || out.Text != "" {
		t.Errorf("after %s: %+v", took, out)
	}
}

// redirected says of every agent that one director holds it.
type redirected struct {
	store.Store
	holder string
}

func (r redirected) Holders(context.Context) (map[string]string, error) {
	return map[string]string{"coder": r.holder}, nil
}

// A director that does not answer is named, and what the store has is shown.
// Once it has died nobody is asked.
func TestOutputOfADirectorThatDoesNotAnswer(t *testing.T) {
	r := newOthers(t, 2)
	alfa, bravo := r.all[0], r.all[1]
	task := r.works(alfa, bravo, r.holds(bravo, "coder"))
	path := "/api/queue/" + task.ID + "/output"
	bravo.kill()
	var out api.Output
	alfa.over("GET", path, "").want(t, 200, &out)
	if !strings.Contains(out.Message, "director bravo ("+bravo.server.URL+")") || !strings.Contains(out.Message, "it does not answer;") || out.Text != "" {
		t.Errorf("%+v", out)
	}
	s := alfa.open(path)
	if e := decode[api.Output](t, s.must().data); !strings.Contains(e.Message, "director bravo") {
		t.Errorf("the stream says %+v", e)
	}
	bravo.expire()
	out = api.Output{}
	if alfa.over("GET", path, "").want(t, 200, &out); out.Message != "" || out.State != "working" {
		t.Errorf("after its death: %+v", out)
	}
	alfa.finish(task, signalbox.ReasonCompleted, signalbox.Result{Tail: "from the agent\n"})
	for {
		if e := decode[api.Output](t, s.must().data); e.Done {
			if e.Text != "from the agent\n" {
				t.Errorf("%+v", e)
			}
			break
		}
	}
}

// Another director decides by what the caller has shown, and by nothing else.
func TestAnotherDirectorIsAskedWithTheCallersOwnRight(t *testing.T) {
	r := newOthers(t, 1, func(o *options) { o.director.Token = "the-token-of-alfa-0123456789abcdef" })
	alfa := r.all[0]
	bravo := r.add("bravo", func(o *options) { o.director.Token = "the-token-of-bravo-0123456789abcdef" })
	a := r.holds(bravo, "coder")
	show := bearer("the-token-of-alfa-0123456789abcdef")
	alfa.do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, show).want(t, 201, nil)
	task := bravo.work(a)
	bravo.runs.print(task.ID, "secret of bravo\n")
	path := "/api/queue/" + task.ID + "/output"
	var out api.Output
	alfa.over("GET", path, "", show).want(t, 200, &out)
	if out.Text != "" || !strings.Contains(out.Message, "unauthorized") {
		t.Errorf("%+v", out)
	}
	// A token of the store is good at both.
	reader := bearer(alfa.token(identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}}))
	if alfa.over("GET", path, "", reader).want(t, 200, &out); out.Text != "secret of bravo\n" {
		t.Errorf("%+v", out)
	}
	// So is a login, whose cookie is the only one that goes along.
	alfa.user(identity.PutUser{ID: "kim", Password: password, Role: signalbox.RoleAdmin})
	login := alfa.login("kim")
	if alfa.over("GET", path, "", login).want(t, 200, &out); out.Text != "secret of bravo\n" {
		t.Errorf("%+v", out)
	}
	for range 3 { // also where it is sent to the other one first
		bravo.over("GET", path, "", login).want(t, 200, nil)
	}
}

func TestWaitsAndCancelsAcrossDirectors(t *testing.T) {
	r := newOthers(t, 2)
	alfa, bravo := r.all[0], r.all[1]
	a := r.holds(bravo, "coder")
	one := r.works(alfa, bravo, a)
	time.AfterFunc(300*time.Millisecond, func() { bravo.finish(one, signalbox.ReasonCompleted, signalbox.Result{Output: "42"}) })
	begin := time.Now()
	var v api.Task
	alfa.over("GET", "/api/queue/"+one.ID+"?wait=60s", "").want(t, 200, &v)
	if took := time.Since(begin); v.State != "completed" || v.Result.Output != "42" || took > 20*time.Second {
		t.Errorf("after %s: %+v", took, v)
	}

	two := r.works(alfa, bravo, a)
	signs, stop := bravo.engine.WatchTask(two.ID)
	defer stop()
	go func() { // as the dispatcher would, when it hears of the cancel
		for range signs {
			if now, err := bravo.engine.Read().Task(t.Context(), two.ID); err == nil && now.State == signalbox.Cancelling {
				_, _ = bravo.engine.Finish(t.Context(), now, engine.Outcome{Reason: signalbox.ReasonCancelled})
				return
			}
		}
	}()
	begin = time.Now()
	var c api.Cancelled
	alfa.over("POST", "/api/queue/"+two.ID+"/cancel", "").want(t, 200, &c)
	if took := time.Since(begin); c.State != "cancelled" || !c.WasDispatched || took > 20*time.Second {
		t.Errorf("after %s: %+v", took, c)
	}
}

// A chat is followed at one director while its agent is another's.
func TestAChatAcrossDirectors(t *testing.T) {
	r := newOthers(t, 2)
	alfa, bravo := r.all[0], r.all[1]
	a := r.holds(bravo, "coder")
	s := alfa.open("/api/agents/coder/chat", func(q *http.Request) {
		q.Method, q.Body = "POST", io.NopCloser(strings.NewReader(`{"message":"hello"}`))
		q.Header.Set("Content-Type", "application/json")
	})
	accepted := decode[api.ChatAccepted](t, s.must().data)
	task := bravo.accept(a)
	if task.ID != accepted.Execution.ID {
		t.Fatalf("%s, not %s", task.ID, accepted.Execution.ID)
	}
	bravo.runs.print(task.ID, "Thinking …\n")
	if e := s.must(); e.name != "started" {
		t.Errorf("%+v", e)
	}
	if e := s.must(); e.name != "output" || !strings.Contains(e.data, "Thinking …") {
		t.Errorf("%+v", e)
	}
	bravo.runs.end(task.ID)
	bravo.finish(task, signalbox.ReasonCompleted, signalbox.Result{Output: "Hello.", Tail: "Thinking …\n"})
	for e := s.must(); ; e = s.must() {
		if e.name == "result" {
			if got := decode[api.ChatResponse](t, e.data); got.Response != "Hello." {
				t.Errorf("%+v", got)
			}
			break
		}
	}
}

// A reader of events that comes back at another director misses nothing; one of
// the live stream gets everything anew.
func TestStreamsGoOnAtAnotherDirector(t *testing.T) {
	r := newOthers(t, 2)
	alfa, bravo := r.all[0], r.all[1]
	r.holds(bravo, "coder")
	s := alfa.open("/api/events?after=0")
	alfa.notes(3)
	var last sse
	for last.name != "agent_up" {
		last = s.must()
	}
	s.close()
	alfa.notes(2)
	bravo.notes(2)
	seq := last.seq(t)
	s = bravo.open("/api/events", header("Last-Event-ID", last.id))
	for seq < bravo.newest() {
		e := s.must()
		if e.name == "" { // the place
			continue
		}
		if e.name == "reset" || e.seq(t) != seq+1 {
			t.Fatalf("after %d comes %+v", seq, e)
		}
		seq++
	}
	live := alfa.open("/api/live")
	first := live.must()
	live.close()
	if e := bravo.open("/api/live", header("Last-Event-ID", first.id)).must(); first.name != "snapshot" || e.name != "resync" {
		t.Errorf("%s, then %s", first.name, e.name)
	}
}

// Where a call of a tool stands is known to the director at which it was made;
// why says it everywhere, once.
func TestWhyNamesTheCapacityOfOtherDirectors(t *testing.T) {
	tools := map[string]*fakeTools{}
	next := ""
	give := func(o *options) {
		tools[next] = newFakeTools()
		withTools(tools[next])(o)
	}
	r := newOthers(t, 0)
	for _, next = range []string{"alfa", "bravo", "charlie"} {
		r.add(next, give)
	}
	alfa, bravo := r.all[0], r.all[1]
	task := r.works(alfa, bravo, r.holds(bravo, "coder"))
	for _, name := range []string{"bravo", "charlie"} { // a queue that they share is known to both
		tools[name].queues = []toolqueue.Status{{
			Name: "github", Concurrent: 1, InUse: 1, Depth: 1, Holders: []toolqueue.Holder{{Agent: "writer", Tool: "search", Execution: "x", Since: time.Now()}},
			Waiters: []toolqueue.Waiter{{Position: 1, Agent: "coder", Tool: "merge", Execution: task.ID, Since: time.Now()}},
		}}
	}
	var why api.Why
	alfa.over("GET", "/api/queue/"+task.ID+"/why", "").want(t, 200, &why)
	if len(why.Gates) != 1 || why.Gates[0].Text != "github is full, 1 of 1 in use by writer" || strings.Count(why.Summary, "It waits for capacity") != 1 {
		t.Errorf("%+v", why)
	}
	r.all[2].kill()
	begin := time.Now()
	alfa.over("GET", "/api/queue/"+task.ID+"/why", "").want(t, 200, &why)
	if took := time.Since(begin); len(why.Gates) != 1 || took > 20*time.Second {
		t.Errorf("after %s: %+v", took, why)
	}
}
