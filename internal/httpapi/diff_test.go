package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// changed returns changes with n files and a patch whose first cut bytes are stored.
func changed(n int, patch string, cut int) *signalbox.Changes {
	c := &signalbox.Changes{
		Workspace: "worktree", Dir: "/work", Branch: "signalbox/1", Base: strings.Repeat("a", 40), Head: strings.Repeat("b", 40), Commits: 1,
		FilesChanged: n, Insertions: 12, Deletions: 4, Patch: patch[:cut], PatchBytes: int64(len(patch)),
	}
	for i := range n {
		c.Files = append(c.Files, signalbox.ChangedFile{Path: fmt.Sprintf("f%d", i), Status: signalbox.FileModified, Insertions: 1})
	}
	return c
}

// A task shows the totals of its changes and some of the files; its diff has everything.
func TestATaskShowsWhatItChanged(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	waiting := b.Submit(`{"prompt":"build it"}`)
	path := "/api/queue/" + waiting.QueueID + "/diff"
	b.Do("GET", path, "").WantError(t, http.StatusConflict, signalbox.CodeConflict)
	task := b.Run(a)
	got := b.Do("GET", path, "")
	got.WantError(t, http.StatusConflict, signalbox.CodeConflict)
	if !strings.Contains(string(got.Body), "is working") {
		t.Errorf("it does not say that the task runs: %s", got.Body)
	}
	patch := "diff --git a/f0 b/f0\n<b>\u202e\x00\n"
	b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Output: "done", Changes: changed(150, patch, len(patch))})

	var shown api.Task
	b.Do("GET", "/api/queue/"+task.ID, "").Want(t, http.StatusOK, &shown)
	c := shown.Result.Changes
	if c == nil || c.FilesChanged != 150 || len(c.Files) != 100 || c.Patch != "" || c.PatchBytes != int64(len(patch)) || c.Branch != "signalbox/1" {
		t.Errorf("the task shows %+v", c)
	}
	var diff api.Diff
	b.Do("GET", path, "").Want(t, http.StatusOK, &diff)
	if diff.QueueID != task.ID || diff.State != "completed" || diff.Agent != "coder" || len(diff.Files) != 150 || diff.Patch != patch || diff.Cut != "" || diff.Insertions != 12 {
		t.Errorf("the diff: %+v", diff)
	}
	for _, asked := range []apitest.Reply{b.Do("GET", path+"?format=patch", ""), b.Do("GET", path, "", apitest.Header("Accept", "text/x-diff, */*;q=0.1"))} {
		h := asked.Header
		if asked.StatusCode != http.StatusOK || string(asked.Body) != patch || h.Get("Content-Type") != "text/x-diff" || h.Get(api.PatchCutHeader) != "" ||
			h.Get("Content-Disposition") != "attachment; filename="+task.ID+".patch" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("the patch: %d %v\n%s", asked.StatusCode, h, asked.Body)
		}
	}
	b.Do("GET", path+"?format=html", "").WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	b.Do("GET", path+"?format=json", "", apitest.Header("Accept", "text/x-diff")).Want(t, http.StatusOK, &diff)
	b.Do("GET", "/api/queue/queue-0000000000000000000000000/diff", "").WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	if got := b.Do("HEAD", path+"?format=patch", ""); got.StatusCode != http.StatusOK || len(got.Body) != 0 || got.Header.Get("Content-Length") != fmt.Sprint(len(patch)) {
		t.Errorf("HEAD: %d, %v", got.StatusCode, got.Header)
	}
}

// The changes are unknown for a run outside a repository, and for an agent that does not report
// them. A run without changes has an empty patch.
func TestATaskWithoutChanges(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	b.Submit(`{"prompt":"talk"}`)
	task := b.Run(a)
	b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Output: "hello"})
	got := b.Do("GET", "/api/queue/"+task.ID+"/diff", "")
	got.WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	if !strings.Contains(string(got.Body), "git repository") {
		t.Errorf("it does not say when there are changes: %s", got.Body)
	}
	b.Submit(`{"prompt":"look"}`)
	task = b.Run(a)
	b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Changes: changed(0, "", 0)})
	if got := b.Do("GET", "/api/queue/"+task.ID+"/diff?format=patch", ""); got.StatusCode != http.StatusOK || len(got.Body) != 0 {
		t.Errorf("no changes: %d %s", got.StatusCode, got.Body)
	}
}

// A cut patch comes from the agent. If the agent does not send it, the answer is the stored part,
// and says so.
func TestThePatchIsTheAgentsWhereItIsCut(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	patch := "diff --git a/a b/a\n+1\ndiff --git a/b b/b\n+2\n"
	begin := strings.LastIndex(patch, "diff --git")
	run := func(cut int) string {
		b.Submit(`{"prompt":"build it"}`)
		task := b.Run(a)
		b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Changes: changed(2, patch, cut)})
		return task.ID
	}
	id := run(begin)
	part := b.Do("GET", "/api/queue/"+id+"/diff?format=patch", "")
	if why := part.Header.Get(api.PatchCutHeader); part.StatusCode != http.StatusOK || string(part.Body) != patch[:begin] || !strings.Contains(why, "keeps 22 of the 44 bytes") || !strings.Contains(why, "timeout") {
		t.Errorf("of an agent that is gone: %d, cut %q\n%s", part.StatusCode, why, part.Body)
	}
	none := run(0)
	got := b.Do("GET", "/api/queue/"+none+"/diff?format=patch", "")
	got.WantError(t, http.StatusServiceUnavailable, signalbox.CodeAgentDown)
	if !strings.Contains(string(got.Body), "runs/task-1/patch") || got.Header.Get("Content-Disposition") != "" {
		t.Errorf("it does not say where the patch is: %v\n%s", got.Header, got.Body)
	}
	b.Runs.Answering = map[string]bool{"coder": true}
	b.Do("GET", "/api/queue/"+none+"/diff?format=patch", "").WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	b.Runs.Patches = map[string]string{id: patch, none: patch[:10]}
	whole := b.Do("GET", "/api/queue/"+id+"/diff?format=patch", "")
	if whole.StatusCode != http.StatusOK || string(whole.Body) != patch || whole.Header.Get(api.PatchCutHeader) != "" {
		t.Errorf("the whole patch: %d, %v\n%s", whole.StatusCode, whole.Header, whole.Body)
	}
	var diff api.Diff
	b.Do("GET", "/api/queue/"+id+"/diff", "").Want(t, http.StatusOK, &diff)
	if diff.Patch != patch[:begin] || diff.Cut == "" {
		t.Errorf("the diff: %+v", diff)
	}
	func() { // an aborted patch must not look complete to the caller
		defer func() {
			if cause := recover(); cause != http.ErrAbortHandler { //nolint:errorlint // a panic's value
				t.Errorf("half a patch ended with %v", cause)
			}
		}()
		b.Do("GET", "/api/queue/"+none+"/diff?format=patch", "")
	}()
}

// An agent that pulls cannot be asked.
func TestThePatchOfAnAgentThatPullsIsWhatIsStored(t *testing.T) {
	b := apitest.New(t)
	far := b.AddAgent("far", 1)
	far.Source, far.URL = signalbox.AgentPull, signalbox.PullURL("0123456789abcdef")
	if _, err := b.Engine.PutAgent(t.Context(), far, ""); err != nil {
		t.Fatal(err)
	}
	patch := "diff --git a/a b/a\n+1\ndiff --git a/b b/b\n+2\n"
	for _, cut := range []int{22, 0} {
		b.Submit(`{"prompt":"build it"}`)
		task := b.Run(far)
		b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Changes: changed(2, patch, cut)})
		got := b.Do("GET", "/api/queue/"+task.ID+"/diff?format=patch", "")
		if cut == 0 {
			got.WantError(t, http.StatusNotImplemented, signalbox.CodeUnsupported)
		} else if string(got.Body) != patch[:cut] || !strings.Contains(got.Header.Get(api.PatchCutHeader), "pulls its tasks") {
			t.Errorf("%v\n%s", got.Header, got.Body)
		}
	}
}

// Changes survive an export and an import. Changes in a hand-written file are limited.
func TestChangesAreExportedAndImported(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	b.Submit(`{"prompt":"build it"}`)
	task := b.Run(a)
	patch := "diff --git a/a b/a\n+1\n"
	b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Changes: changed(2, patch, len(patch))})
	var page api.Export
	for b.Do("GET", "/api/export", "").Want(t, http.StatusOK, &page); len(page.Tasks) == 0; {
		next := page.Next
		page = api.Export{}
		b.Do("GET", "/api/export?after="+next, "").Want(t, http.StatusOK, &page)
	}
	other := apitest.New(t)
	other.Do("POST", "/api/import", jsonOf(t, api.ImportRequest{Tasks: page.Tasks})).Want(t, http.StatusOK, nil)
	var diff api.Diff
	other.Do("GET", "/api/queue/"+task.ID+"/diff", "").Want(t, http.StatusOK, &diff)
	if diff.Patch != patch || len(diff.Files) != 2 || diff.Branch != "signalbox/1" {
		t.Errorf("imported: %+v", diff)
	}
	var r map[string]any
	if err := json.Unmarshal(page.Tasks[0].Result, &r); err != nil {
		t.Fatal(err)
	}
	r["changes"].(map[string]any)["insertions"] = -5
	r["changes"].(map[string]any)["head"] = "\x1b[31m"
	page.Tasks[0].Result = json.RawMessage(jsonOf(t, r))
	third := apitest.New(t)
	third.Do("POST", "/api/import", jsonOf(t, api.ImportRequest{Tasks: page.Tasks})).Want(t, http.StatusOK, nil)
	diff = api.Diff{}
	third.Do("GET", "/api/queue/"+task.ID+"/diff", "").Want(t, http.StatusOK, &diff)
	if diff.Insertions != 0 || diff.Head != "" {
		t.Errorf("imported as it was: %+v", diff)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
