package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
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

// What is retried lands where the first try was to, unless someone has dropped that.
func TestARetryLandsWhereTheFirstTryWasTo(t *testing.T) {
	b := apitest.New(t)
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
}
