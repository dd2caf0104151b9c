package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// The whole log comes in pieces from the agent of the task. If it cannot, the answer says why, and
// what to do.
func TestTheWholeLogIsTheAgents(t *testing.T) {
	b := apitest.New(t)
	waiting := b.Submit(`{"prompt":"later"}`)
	b.Do("POST", "/api/queue/"+waiting.QueueID+"/cancel", "").Want(t, http.StatusOK, nil)
	a := b.AddAgent("coder", 1)
	b.Submit(`{"prompt":"build it"}`)
	task := b.Run(a)
	whole := "/api/queue/" + task.ID + "/output?whole=true"
	refused := func(path string, status int, code signalbox.Code, words string) {
		t.Helper()
		got := b.Do("GET", path, "")
		got.WantError(t, status, code)
		if !strings.Contains(string(got.Body), words) {
			t.Errorf("%s does not say %q: %s", path, words, got.Body)
		}
	}
	refused(whole, http.StatusServiceUnavailable, signalbox.CodeAgentDown, "/output.log")
	b.Runs.Answering = map[string]bool{"coder": true}
	refused(whole, http.StatusNotFound, signalbox.CodeNotFound, "last 100 tasks")
	refused(whole+"&wait=1s", http.StatusBadRequest, signalbox.CodeValidation, "only after")
	refused("/api/queue/"+task.ID+"/output?whole=maybe", http.StatusBadRequest, signalbox.CodeValidation, "true or false")
	refused("/api/queue/"+waiting.QueueID+"/output?whole=true", http.StatusConflict, signalbox.CodeConflict, "has not run on an agent")
	refused("/api/queue/queue-0000000000000000000000000/output?whole=true", http.StatusNotFound, signalbox.CodeNotFound, "")
	b.Do("GET", whole, "", apitest.Header("Accept", "text/event-stream")).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)

	b.Runs.Print(task.ID, "one\ntwo\n")
	var out api.Output
	b.Do("GET", whole, "").Want(t, http.StatusOK, &out)
	if out.Text != "one\ntwo\n" || out.Next != 8 || out.Done || out.QueueID != task.ID || out.State != "working" {
		t.Errorf("the first piece: %+v", out)
	}
	b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Tail: "two\n", TailSeq: 4, Truncated: true})
	out = api.Output{}
	b.Do("GET", whole+"&after=4", "").Want(t, http.StatusOK, &out)
	if out.Text != "two\n" || out.Seq != 4 || !out.Done || out.State != "completed" {
		t.Errorf("the last piece: %+v", out)
	}
}

// An agent that pulls accepts no connections, and a tool call has no agent.
func TestSomeLogsHaveNoAgentToAsk(t *testing.T) {
	b := apitest.New(t)
	far := b.AddAgent("far", 1)
	far.Source, far.URL = signalbox.AgentPull, signalbox.PullURL("0123456789abcdef")
	if _, err := b.Engine.PutAgent(t.Context(), far, ""); err != nil {
		t.Fatal(err)
	}
	b.Submit(`{"prompt":"build it"}`)
	task := b.Run(far)
	got := b.Do("GET", "/api/queue/"+task.ID+"/output?whole=true", "")
	got.WantError(t, http.StatusNotImplemented, signalbox.CodeUnsupported)
	if !strings.Contains(string(got.Body), "runs/"+task.TaskID+"/output.log") {
		t.Errorf("it does not say where the log is: %s", got.Body)
	}
	withTools, f := apitest.NewWithToolTasks(t)
	var made api.ToolTask
	withTools.Do("POST", apitest.ReportPath, `{"arguments":{"month":"2025-01"}}`).Want(t, http.StatusCreated, &made)
	withTools.RunTool(f, "half way\n")
	got = withTools.Do("GET", "/api/queue/"+made.ID+"/output?whole=true", "")
	got.WantError(t, http.StatusNotImplemented, signalbox.CodeUnsupported)
}
