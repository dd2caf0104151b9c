package agentd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/signalbox-ai/signalbox/api"
)

const (
	callersTrace  = "0af7651916cd43dd8448eb211c80319c"
	callersSpan   = "b7ad6b7169203331"
	callersParent = "00-" + callersTrace + "-" + callersSpan + "-01"
)

// submitTraced is submit within a trace; "" for none.
func (a *agent) submitTraced(task api.AgentTask, parent string) (taken api.AgentTaskAccepted) {
	a.t.Helper()
	body, err := json.Marshal(task)
	if err != nil {
		a.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.url+"/task", bytes.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if parent != "" {
		req.Header.Set("Traceparent", parent)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&taken); err != nil || resp.StatusCode != http.StatusCreated {
		a.t.Fatalf("%s, %v", resp.Status, err)
	}
	return taken
}

// The daemon makes a span for each run, and passes it to the program.
func TestRunSpanIsPassedToProgram(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	cfg := command(t, "env")
	cfg.Traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	a := start(t, cfg)
	taken := a.submitTraced(api.AgentTask{Prompt: "a whisper", QueueID: "queue-1", Fence: 7, Env: map[string]string{"KEY": "a whisper"}}, callersParent)
	out := a.end(taken.TaskID).Output
	got := spans.GetSpans()
	if len(got) != 1 {
		t.Fatalf("%d spans", len(got))
	}
	s := got[0]
	if s.Name != "execution" || s.Parent.TraceID().String() != callersTrace || s.Parent.SpanID().String() != callersSpan || !s.Parent.IsRemote() {
		t.Errorf("%s under %v", s.Name, s.Parent)
	}
	if want := "TRACEPARENT=00-" + callersTrace + "-" + s.SpanContext.SpanID().String() + "-01\n"; !strings.Contains(out, want) {
		t.Errorf("no %s in the environment of the program:\n%s", want, out)
	}
	all := fmt.Sprint(s.Attributes)
	for _, want := range []string{
		`"signalbox.queue_id":"queue-1"`, `"signalbox.task_id":"` + taken.TaskID + `"`, `"signalbox.fence":7`, `"signalbox.state":"completed"`, `"process.exit.code":0`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
	if strings.Contains(all, "whisper") {
		t.Errorf("a span contains the prompt: %s", all)
	}
}

func TestRunSpanRecordsFailure(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	cfg := command(t, "fail")
	cfg.Traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	a := start(t, cfg)
	end := a.end(a.submitTraced(api.AgentTask{Prompt: "p"}, "").TaskID)
	got := spans.GetSpans()
	if len(got) != 1 || got[0].Status.Code != codes.Error || got[0].Status.Description != end.Error.Type || got[0].Parent.IsValid() {
		t.Fatalf("%v, the run ended with %v", got, end.Error)
	}
}

// A daemon without spans of its own passes the caller's trace on unchanged.
// If there is no trace, a TRACEPARENT that the task sets is kept.
func TestTraceIsPropagatedWithoutSpans(t *testing.T) {
	a := start(t, command(t, "env"))
	for parent, want := range map[string]bool{callersParent: true, "": false, "nonsense": false} {
		out := a.end(a.submitTraced(api.AgentTask{Prompt: "p"}, parent).TaskID).Output
		if got := strings.Contains(out, "TRACEPARENT="+callersParent+"\n"); got != want || !want && strings.Contains(out, "TRACEPARENT=") {
			t.Errorf("%q: the environment is\n%s", parent, out)
		}
	}
}
