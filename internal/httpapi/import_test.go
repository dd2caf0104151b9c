package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// Ended tasks are stored concurrently, waiting ones one by one in the order of the import.
// Known and invalid tasks are reported, wherever they are.
func TestAnImportKeepsTheOrderOfWhatWaits(t *testing.T) {
	old := apitest.New(t)
	a := old.AddAgent("coder", 1)
	for i := range 200 {
		old.Submit(`{"prompt":"ended ` + strconv.Itoa(i) + `"}`)
		old.FinishTask(old.Run(a), signalbox.ReasonCompleted, signalbox.Result{Output: strconv.Itoa(i)})
	}
	var waiting []string
	for i := range 10 {
		waiting = append(waiting, old.Submit(`{"prompt":"waits `+strconv.Itoa(i)+`"}`).QueueID)
	}
	var page api.Export
	old.Do("GET", "/api/export?limit=1000", "").Want(t, http.StatusOK, &page)
	var ended api.Export
	old.Do("GET", "/api/export?limit=1000&after="+page.Next, "").Want(t, http.StatusOK, &ended)
	if ended.Next != "" { // running tasks are in between
		old.Do("GET", "/api/export?limit=1000&after="+ended.Next, "").Want(t, http.StatusOK, &ended)
	}
	var mixed api.ImportRequest
	for i, x := range page.Tasks {
		mixed.Tasks = append(append(mixed.Tasks, ended.Tasks[i*20:(i+1)*20]...), x)
	}
	wrong := ended.Tasks[0]
	wrong.QueueID, wrong.Key, wrong.Reason = "queue-06f0v4m2k0a1b2c3d4e5f6g7h8", "", "luck"
	mixed.Tasks = slices.Insert(mixed.Tasks, 7, wrong, ended.Tasks[150])
	body, err := json.Marshal(mixed)
	if err != nil {
		t.Fatal(err)
	}

	next := apitest.New(t)
	var got api.Imported
	next.Do("POST", "/api/import", string(body)).Want(t, http.StatusOK, &got)
	if got.Imported != 210 || got.Known != 1 || len(got.Refused) != 1 || got.Refused[0].QueueID != wrong.QueueID {
		t.Errorf("imported %d, known %d, refused %+v", got.Imported, got.Known, got.Refused)
	}
	var there api.Export
	next.Do("GET", "/api/export?limit=1000", "").Want(t, http.StatusOK, &there)
	var order []string
	for _, x := range there.Tasks {
		order = append(order, x.QueueID)
	}
	if !slices.Equal(order, waiting) {
		t.Errorf("what waits stands in another order:\n%v\nnot\n%v", order, waiting)
	}
	next.Do("POST", "/api/import", string(body)).Want(t, http.StatusOK, &got)
	if got.Imported != 0 || got.Known != 211 || len(got.Refused) != 1 {
		t.Errorf("the second time imported %d, known %d", got.Imported, got.Known)
	}
}

// A parked task continues after an import, in its conversation and with its count of parkings.
func TestAParkedTaskIsExportedAndGoesOn(t *testing.T) {
	old, id, behind := parked(t)
	var page api.Export
	old.Do("GET", "/api/export", "").Want(t, http.StatusOK, &page)
	if len(page.Tasks) != 2 || page.Tasks[0].QueueID != id || page.Tasks[0].State != "parked" || page.Tasks[0].Parking == nil || page.Tasks[1].Parking != nil {
		t.Fatalf("%+v", page.Tasks)
	}
	body, err := json.Marshal(api.ImportRequest{Tasks: page.Tasks})
	if err != nil {
		t.Fatal(err)
	}
	next := apitest.New(t)
	a := next.AddAgent("coder", 1)
	var got api.Imported
	next.Do("POST", "/api/import", string(body)).Want(t, http.StatusOK, &got)
	if got.Imported != 2 || len(got.Refused) != 0 {
		t.Fatalf("%+v", got)
	}
	first := next.Claim(a)
	if p := first.Parking; first.ID != id || first.SessionID != "talk-coder" || first.Attempts != 0 || p == nil || p.Count != 1 || !p.Began || p.Name != "coder" || p.Text != "You've hit your limit" {
		t.Errorf("%+v %+v", first, p)
	}
	for _, spoil := range []func(*api.ExportedTask){
		func(x *api.ExportedTask) { x.Parking = nil },
		func(x *api.ExportedTask) { x.Parking.Kind = "luck" },
		func(x *api.ExportedTask) { x.Parking.Name = "two words" },
		func(x *api.ExportedTask) { x.Parking.Count = 101 },
		func(x *api.ExportedTask) { x.Parking.Text = strings.Repeat("x", 301) },
	} {
		wrong, parking := page.Tasks[0], *page.Tasks[0].Parking
		wrong.QueueID, wrong.Parking = behind[:len(behind)-4]+"0000", &parking
		spoil(&wrong)
		body, err := json.Marshal(api.ImportRequest{Tasks: []api.ExportedTask{wrong}})
		if err != nil {
			t.Fatal(err)
		}
		next.Do("POST", "/api/import", string(body)).Want(t, http.StatusOK, &got)
		if len(got.Refused) != 1 || !strings.Contains(got.Refused[0].Message, "parking") {
			t.Errorf("%+v: %+v", wrong.Parking, got)
		}
	}
}

// A task imported from another queue is found by the id that it had there, by callers who may see
// it.
func TestAnImportedTaskIsFoundByItsOldID(t *testing.T) {
	b := apitest.New(t, func(o *apitest.Options) { o.Config.Token = "of-an-admin" })
	admin := apitest.Bearer("of-an-admin")
	imported := func(kind, old string) string {
		t.Helper()
		id, err := signalbox.NewID(b.Engine.Now(), strings.NewReader(kind+old+"0123456789"))
		if err != nil {
			t.Fatal(err)
		}
		at := b.Engine.Now()
		body, err := json.Marshal(api.ImportRequest{Tasks: []api.ExportedTask{{
			QueueID: id, State: "pending", Queue: "work", Limit: "work", EnqueuedAt: at, CreatedAt: at, MaxAttempts: 3, Source: "api",
			Key: signalbox.ImportKey(kind, old), KeyHash: "import", Request: json.RawMessage(`{"prompt":"from ` + kind + `"}`),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		var got api.Imported
		if b.Do("POST", "/api/import", string(body), admin).Want(t, http.StatusOK, &got); got.Imported != 1 {
			t.Fatalf("%+v", got)
		}
		return id
	}
	queued, ran := imported(signalbox.ImportWorkQueue, "queue-abc12345"), imported(signalbox.ImportExecutionQueue, "0b5c-11")
	imported(signalbox.ImportAsyncTaskQueue, "queue-abc12345") // the same id in another queue
	for old, id := range map[string]string{"queue-abc12345": queued, "0b5c-11": ran} {
		var task api.Task
		if b.Do("GET", "/api/queue/"+old, "", admin).Want(t, http.StatusOK, &task); task.QueueID != id {
			t.Errorf("%s is %s, want %s", old, task.QueueID, id)
		}
		b.Do("GET", "/api/queue/"+old+"/why", "", admin).Want(t, http.StatusOK, nil)
		b.Do("GET", "/api/queue/"+old+"/output", "", admin).Want(t, http.StatusOK, nil)
		var found api.Found
		if b.Do("GET", "/api/find/"+old, "", admin).Want(t, http.StatusOK, &found); len(found.QueueIDs) != 1 || found.QueueIDs[0] != id {
			t.Errorf("%s is found as %q", old, found.QueueIDs)
		}
	}
	events := b.Serve().OpenStream("/api/events?after=0&queue_id=queue-abc12345", admin)
	submitter := apitest.Bearer(b.AddToken(identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}))
	b.Do("POST", "/api/queue/queue-abc12345/cancel", "", submitter).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	b.Do("GET", "/api/queue/queue-abc12345", "", submitter).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	b.Do("POST", "/api/queue/queue-abc12345/cancel", "", admin).Want(t, http.StatusOK, nil)
	var task api.Task
	if b.Do("GET", "/api/queue/"+queued, "", admin).Want(t, http.StatusOK, &task); task.State != "cancelled" {
		t.Errorf("%+v", task)
	}
	for said := ""; !strings.Contains(said, "cancelled"); {
		if said = events.Next().Data; strings.Contains(said, "queue-") && !strings.Contains(said, queued) {
			t.Fatalf("an event of another task: %s", said)
		}
	}
	for _, unknown := range []string{"queue-abc1234", "0B5C-11", "%00", strings.Repeat("x", 500), "import%20work-queue%20queue-abc12345"} {
		b.Do("GET", "/api/queue/"+unknown, "", admin).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	}
}

// A task that was parked continues after an import in its conversation: it neither starts from its
// beginning nor waits at a gate that does not open there.
func TestAnImportedTaskThatWasParkedGoesOn(t *testing.T) {
	old := apitest.New(t)
	a := old.AddAgent("coder", 1)
	id := old.Submit(`{"prompt":"long","agent":"coder","session_id":"s"}`).QueueID
	task, err := old.Engine.Accept(t.Context(), old.Claim(a), "task-1", "s")
	if err != nil {
		t.Fatal(err)
	}
	limit := accounts.Limit{Kind: accounts.Overloaded, Text: "overloaded", Began: true}
	parked, err := old.Engine.Finish(t.Context(), task, engine.Outcome{Reason: signalbox.ReasonAgentError, SessionID: "s", Limit: &limit})
	if err != nil || parked.State != signalbox.Parked {
		t.Fatalf("%+v, %v", parked, err)
	}
	var page api.Export
	old.Do("GET", "/api/export", "").Want(t, http.StatusOK, &page)
	send := func(to *apitest.Fixture, change func(*api.ExportedTask)) (got api.Imported) {
		t.Helper()
		x := page.Tasks[0]
		change(&x)
		body, err := json.Marshal(api.ImportRequest{Tasks: []api.ExportedTask{x}})
		if err != nil {
			t.Fatal(err)
		}
		to.Do("POST", "/api/import", string(body)).Want(t, http.StatusOK, &got)
		return got
	}
	next := apitest.New(t)
	there := next.AddAgent("coder", 1)
	for says, spoil := range map[string]func(*api.ExportedTask){
		"parking is missing": func(x *api.ExportedTask) { x.Parking = nil },
		"a count of 1 to":    func(x *api.ExportedTask) { p := *x.Parking; p.Count = 0; x.Parking = &p },
		"it needs a kind":    func(x *api.ExportedTask) { p := *x.Parking; p.Kind = "luck"; x.Parking = &p },
	} {
		if got := send(next, spoil); len(got.Refused) != 1 || !strings.Contains(got.Refused[0].Message, says) {
			t.Errorf("want it refused as %q: %+v", says, got)
		}
	}
	if got := send(next, func(*api.ExportedTask) {}); got.Imported != 1 {
		t.Fatalf("%+v", got)
	}
	got := next.Claim(there)
	if got.ID != id || got.SessionID != "s" || got.Parking == nil || *got.Parking != *parked.Parking || got.Attempts != 0 {
		t.Errorf("claimed %+v with %+v, want %+v", got, got.Parking, parked.Parking)
	}
}

// The limits of a row apply to imported tasks too: a result with more times and calls is stored
// with the latest ones.
func TestAnImportKeepsTheLatestOfALongCourse(t *testing.T) {
	old := apitest.New(t)
	a := old.AddAgent("coder", 1)
	id := old.Submit(`{"prompt":"long"}`).QueueID
	old.FinishTask(old.Run(a), signalbox.ReasonCompleted, signalbox.Result{Output: "done", Tail: "log"})
	var ended api.Export
	for next := ""; len(ended.Tasks) == 0; next = ended.Next {
		ended = api.Export{}
		old.Do("GET", "/api/export?limit=1000&after="+next, "").Want(t, http.StatusOK, &ended)
		if ended.Next == "" && len(ended.Tasks) == 0 {
			t.Fatal("the export has no task")
		}
	}
	result := signalbox.Result{Output: "done", Tail: "log"}
	for i := range signalbox.MaxLogTimes + 7 {
		result.LogTimes = append(result.LogTimes, signalbox.LogTime{Seq: int64(i)})
		result.Calls = append(result.Calls, signalbox.ToolCall{Tool: strconv.Itoa(i), Outcome: "ok"})
	}
	long, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ended.Tasks {
		ended.Tasks[i].Result = long
	}
	body, err := json.Marshal(api.ImportRequest{Tasks: ended.Tasks})
	if err != nil {
		t.Fatal(err)
	}
	next := apitest.New(t)
	next.Do("POST", "/api/import", string(body)).Want(t, http.StatusOK, nil)
	var task api.Task
	next.Do("GET", "/api/queue/"+id, "").Want(t, http.StatusOK, &task)
	if n := len(task.Calls); n != signalbox.MaxToolCalls || task.Calls[n-1].Tool != strconv.Itoa(signalbox.MaxLogTimes+6) {
		t.Errorf("%d calls, want the latest %d", n, signalbox.MaxToolCalls)
	}
	var out api.Output
	next.Do("GET", "/api/queue/"+id+"/output", "").Want(t, http.StatusOK, &out)
	if len(out.Times) != signalbox.MaxLogTimes {
		t.Errorf("%d times, want the latest %d", len(out.Times), signalbox.MaxLogTimes)
	}
}

// A requested landing is exported with a task. A landing that was under way must be requested
// again, because the tasks that land the work are not known here.
func TestALandingIsExportedAndDoesNotBeginByItself(t *testing.T) {
	old := apitest.New(t)
	a := old.AddAgent("coder", 1)
	worked := signalbox.Result{Changes: &signalbox.Changes{Workspace: "worktree", BaseBranch: "main", Commits: 1, FilesChanged: 1}}
	submit := func() string {
		return old.Submit(`{"prompt":"p","agent":"coder","land":"main","land_method":"squash"}`).QueueID
	}
	goes := submit()
	old.FinishTask(old.Run(a), signalbox.ReasonCompleted, worked)
	drops := submit()
	old.FinishTask(old.Run(a), signalbox.ReasonCompleted, worked)
	old.Do("DELETE", "/api/queue/"+drops+"/land", "").Want(t, http.StatusOK, nil)
	runs := submit()
	old.Run(a)
	waits := submit()
	by := signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "u1", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}
	lander, err := old.Engine.Submit(t.Context(), engine.NewTask{
		Prompt: "Land " + goes, Agent: "coder", Mode: signalbox.ModeLand, Land: &signalbox.Land{LandWish: signalbox.LandWish{Onto: "main"}, Task: goes}, RetryOf: goes, By: by, Scheduled: true,
	})
	if err != nil {
		t.Fatal(err)
	}

	tasks := map[string]api.ExportedTask{}
	all := api.ImportRequest{}
	for next := ""; ; {
		var page api.Export
		old.Do("GET", "/api/export?limit=1000&after="+next, "").Want(t, http.StatusOK, &page)
		for _, x := range page.Tasks {
			tasks[x.QueueID] = x
		}
		all.Tasks = append(all.Tasks, page.Tasks...)
		if next = page.Next; next == "" {
			break
		}
	}
	imports := func(b *apitest.Fixture, running string, list ...api.ExportedTask) (got api.Imported) {
		t.Helper()
		body, err := json.Marshal(api.ImportRequest{Tasks: list, Running: running})
		if err != nil {
			t.Fatal(err)
		}
		b.Do("POST", "/api/import", string(body)).Want(t, http.StatusOK, &got)
		return got
	}
	for running, ofRuns := range map[string]string{"interrupt": "dropped", "requeue": "wanted"} {
		next := apitest.New(t)
		next.AddAgent("coder", 1)
		got := imports(next, running, all.Tasks...)
		if got.Imported != 4 || len(got.Refused) != 1 || got.Refused[0].QueueID != lander.Task.ID || !strings.Contains(got.Refused[0].Message, "signalbox land "+goes) {
			t.Fatalf("%s: %+v", running, got)
		}
		for id, state := range map[string]string{goes: "stands", drops: "dropped", runs: ofRuns, waits: "wanted"} {
			var task api.Task
			next.Do("GET", "/api/queue/"+id, "").Want(t, http.StatusOK, &task)
			if l := task.Landing; l == nil || l.State != state || l.Onto != "main" || l.Method != "squash" {
				t.Errorf("%s: %s is %+v, not %s", running, id, l, state)
			}
		}
		var open api.Landings
		next.Do("GET", "/api/landings", "").Want(t, http.StatusOK, &open)
		if len(open.Landings) != 1 || open.Landings[0].QueueID != goes || !strings.Contains(open.Landings[0].Text, "signalbox land "+goes) {
			t.Errorf("%+v", open)
		}
		next.Do("POST", "/api/queue/"+goes+"/land", "").Want(t, http.StatusAccepted, nil)
	}

	next := apitest.New(t)
	landed := *tasks[goes].Landing
	landed.State, landed.Commit, landed.URL = "landed", "no hash", "javascript:x"
	x := tasks[goes]
	x.Landing = &landed
	if got := imports(next, "", x); got.Imported != 1 {
		t.Fatalf("%+v", got)
	}
	var task api.Task
	next.Do("GET", "/api/queue/"+goes, "").Want(t, http.StatusOK, &task)
	if l := task.Landing; l == nil || l.State != "landed" || l.Commit != "" || l.URL != "" {
		t.Errorf("%+v", l)
	}
	next.Do("POST", "/api/queue/"+goes+"/retry", "").Want(t, http.StatusConflict, nil)

	for name, spoil := range map[string]func(*api.ExportedTask){
		"a branch that is an option": func(x *api.ExportedTask) { x.Landing.Onto = "--evil" },
		"an unknown state":           func(x *api.ExportedTask) { x.Landing.State = "luck" },
		"an unknown method":          func(x *api.ExportedTask) { x.Landing.Method = "merge" },
		"landed while it waits":      func(x *api.ExportedTask) { x.Landing.State = "landed" },
		"a task that is none":        func(x *api.ExportedTask) { x.Landing.LandTask = "../x" },
		"land of a task that prompts": func(x *api.ExportedTask) {
			x.Request = json.RawMessage(`{"prompt":"p","land":{"Onto":"main","Task":"` + goes + `"}}`)
		},
		"a workspace that is none": func(x *api.ExportedTask) { x.Request = json.RawMessage(`{"prompt":"p","workspace":{"Kind":"moon"}}`) },
	} {
		wrong, landing := tasks[waits], *tasks[waits].Landing
		wrong.Landing = &landing
		spoil(&wrong)
		if got := imports(next, "", wrong); len(got.Refused) != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
