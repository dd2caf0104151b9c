package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

func TestLandingByTheAPI(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	worked := signalbox.Result{Changes: &signalbox.Changes{Workspace: "worktree", BaseBranch: "main", Commits: 1, FilesChanged: 1}}
	id := b.Submit(`{"prompt":"p","agent":"coder"}`).QueueID
	b.Do("POST", "/api/queue/"+id+"/land", "").Want(t, http.StatusConflict, nil)
	b.FinishTask(b.Run(a), signalbox.ReasonCompleted, worked)

	var first, again api.Landing
	b.Do("POST", "/api/queue/"+id+"/land", "").Want(t, http.StatusAccepted, &first)
	b.Do("POST", "/api/queue/"+id+"/land", `{"onto":"main"}`).Want(t, http.StatusAccepted, &again)
	if first.Onto != "main" || first.State != "queued" || first.QueueID != id || again.AskedAt != first.AskedAt {
		t.Errorf("%+v, %+v", first, again)
	}
	b.Do("POST", "/api/queue/"+id+"/land", `{"onto":"other"}`).Want(t, http.StatusConflict, nil)
	b.Do("POST", "/api/queue/"+id+"/retry", "").Want(t, http.StatusConflict, nil)

	var open api.Landings
	b.Do("GET", "/api/landings", "").Want(t, http.StatusOK, &open)
	if len(open.Landings) != 1 || open.Landings[0].QueueID != id {
		t.Errorf("%+v", open)
	}
	var task api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(t, http.StatusOK, &task)
	if task.State != "completed" || task.Landing == nil || task.Landing.State != "queued" || task.Result.Changes.BaseBranch != "main" {
		t.Errorf("%+v", task)
	}

	for range 2 {
		b.Do("DELETE", "/api/queue/"+id+"/land", "").Want(t, http.StatusOK, &first)
	}
	b.Do("GET", "/api/landings", "").Want(t, http.StatusOK, &open)
	if first.State != "dropped" || len(open.Landings) != 0 {
		t.Errorf("%+v, %+v", first, open)
	}
}

func TestWorkIsWantedOnABranchAtSubmit(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	id := b.Submit(`{"prompt":"p","agent":"coder","land":"main","land_method":"squash","fast_forward":true}`).QueueID
	wanted := func(state string) {
		t.Helper()
		var task api.Task
		b.Do("GET", "/api/queue/"+id, "").Want(t, http.StatusOK, &task)
		if l := task.Landing; l == nil || l.State != state || l.Onto != "main" || l.Method != "squash" || !l.FastForward {
			t.Errorf("%+v", l)
		}
	}
	wanted("wanted")
	b.FinishTask(b.Run(a), signalbox.ReasonCompleted, signalbox.Result{})
	wanted("queued")
	for _, bad := range []string{`"land":"-x"`, `"land":7`, `"land_method":"squash"`, `"land":"main","land_method":"merge"`, `"fast_forward":true`} {
		b.Do("POST", "/api/queue/task", `{"prompt":"p",`+bad+`}`).Want(t, http.StatusBadRequest, nil)
	}
}

// A submit says at once that the work will not land.
func TestASubmitSaysThatWorkWillNotLand(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	for _, c := range []struct {
		live engine.LiveAgent
		body string
		want string
	}{
		{engine.LiveAgent{Up: true}, `"land":"main"`, "its work will not land: agent coder cannot land work"},
		{engine.LiveAgent{Up: true}, `"model":"m"`, ""},
		{engine.LiveAgent{}, `"land":"main"`, ""},
		{engine.LiveAgent{Up: true, Landing: true}, `"land":"main"`, ""},
		{engine.LiveAgent{Up: true, Landing: true, Agent: signalbox.Agent{Folder: "x"}}, `"land":"main"`, "its work will not land: agent coder works in its folder"},
		{engine.LiveAgent{Up: true, Landing: true, Agent: signalbox.Agent{Folder: "x"}}, `"land":"main","workspace":"worktree"`, ""},
	} {
		folder := c.live.Folder
		c.live.Agent = a
		c.live.Folder, c.live.Workplace = folder, signalbox.WorkplaceFolder
		b.Live.Set(c.live)
		got := b.Submit(`{"prompt":"p","agent":"coder",` + c.body + `}`)
		if c.want == "" && strings.Contains(got.Message, "land") || !strings.Contains(got.Message, c.want) {
			t.Errorf("%+v %s: %q", c.live, c.body, got.Message)
		}
	}
}

// clock is the director's clock, which moves only when it is set.
type clock struct {
	begin  time.Time
	passed atomic.Int64
}

func newClock() *clock { return &clock{begin: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)} }

func (c *clock) pass(d time.Duration) { c.passed.Add(int64(d)) }

func (c *clock) set(o *apitest.Options) {
	o.Engine.Now = func() time.Time { return c.begin.Add(time.Duration(c.passed.Load())) }
}

// A waiting landing shows how many land on the same branch before it.
func TestPlacesOfLandings(t *testing.T) {
	now := newClock()
	b := apitest.New(t, now.set)
	a := b.AddAgent("coder", 1)
	var ids []string
	for _, onto := range []string{"main", "other", "main", "pr", "main"} {
		id := b.Submit(`{"prompt":"p","agent":"coder"}`).QueueID
		b.FinishTask(b.Run(a), signalbox.ReasonCompleted, signalbox.Result{Changes: &signalbox.Changes{Workspace: "worktree", Commits: 1}})
		b.Do("POST", "/api/queue/"+id+"/land", `{"onto":"`+onto+`"}`).Want(t, http.StatusAccepted, nil)
		ids = append(ids, id)
		now.pass(time.Second)
	}
	places := func() []int {
		var open api.Landings
		b.Do("GET", "/api/landings", "").Want(t, http.StatusOK, &open)
		out := make([]int, len(ids))
		for _, l := range open.Landings {
			out[slices.Index(ids, l.QueueID)] = l.Place
		}
		return out
	}
	if got := places(); !slices.Equal(got, []int{1, 1, 2, 0, 3}) {
		t.Errorf("%v", got)
	}
	var task api.Task
	b.Do("GET", "/api/queue/"+ids[4], "").Want(t, http.StatusOK, &task)
	if task.Landing.Place != 3 || task.Landing.Text != "it is to land on main; 2 land there before it" {
		t.Errorf("%+v", task.Landing)
	}
	b.Do("DELETE", "/api/queue/"+ids[0]+"/land", "").Want(t, http.StatusOK, nil)
	if got := places(); !slices.Equal(got, []int{0, 1, 1, 0, 2}) {
		t.Errorf("%v", got)
	}
}

// A retry lands where the first try should have, unless the landing was dropped.
func TestARetryLandsWhereTheFirstTryWasTo(t *testing.T) {
	now := newClock()
	b := apitest.New(t, now.set)
	a := b.AddAgent("coder", 1)
	retried := func(id string) *api.Landing {
		t.Helper()
		var got api.SubmitResponse
		b.Do("POST", "/api/queue/"+id+"/retry", "").Want(t, http.StatusCreated, &got)
		var task api.Task
		b.Do("GET", "/api/queue/"+got.QueueID, "").Want(t, http.StatusOK, &task)
		b.FinishTask(b.Run(a), signalbox.ReasonCompleted, signalbox.Result{})
		return task.Landing
	}
	id := b.Submit(`{"prompt":"p","agent":"coder","land":"main","land_method":"squash"}`).QueueID
	b.FinishTask(b.Run(a), signalbox.ReasonAgentError, signalbox.Result{})
	if l := retried(id); l == nil || l.State != "wanted" || l.Onto != "main" || l.Method != "squash" {
		t.Errorf("of one that failed: %+v", l)
	}
	id = b.Submit(`{"prompt":"p","agent":"coder","land":"main"}`).QueueID
	b.FinishTask(b.Run(a), signalbox.ReasonCompleted, signalbox.Result{})
	b.Do("DELETE", "/api/queue/"+id+"/land", "").Want(t, http.StatusOK, nil)
	if l := retried(id); l != nil {
		t.Errorf("of one whose landing was dropped: %+v", l)
	}
	for _, reason := range []signalbox.Reason{signalbox.ReasonCompleted, signalbox.ReasonAgentError} {
		id = b.Submit(`{"prompt":"p","agent":"coder","land":"main"}`).QueueID
		run := b.Run(a)
		var dropped api.Landing
		b.Do("DELETE", "/api/queue/"+id+"/land", "").Want(t, http.StatusOK, &dropped)
		now.pass(time.Second)
		b.FinishTask(run, reason, signalbox.Result{})
		var task api.Task
		b.Do("GET", "/api/queue/"+id, "").Want(t, http.StatusOK, &task)
		if dropped.State != "dropped" || task.Landing.State != "dropped" || task.Reason != string(reason) {
			t.Errorf("dropped while it runs, %s: %+v, %+v", reason, dropped, task.Landing)
		}
		if l := retried(id); l != nil {
			t.Errorf("of one whose landing was dropped while it ran, %s: %+v", reason, l)
		}
	}
}
