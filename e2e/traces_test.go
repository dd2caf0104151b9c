package e2e_test

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-ai/signalbox/client"
)

// tracing is a receiver of spans, and a server behind a REST tool that
// records the traces of its calls.
type tracing struct {
	b         *box
	mu        sync.Mutex
	spans     map[string][]tracedSpan // by name
	upstreams []string                // received traceparents
}

type tracedSpan struct {
	*spanpb.Span
	service string
}

func (s tracedSpan) trace() string  { return fmt.Sprintf("%x", s.TraceId) }
func (s tracedSpan) id() string     { return fmt.Sprintf("%x", s.SpanId) }
func (s tracedSpan) parent() string { return fmt.Sprintf("%x", s.ParentSpanId) }

func (s tracedSpan) attr(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// traced makes all processes of the box send spans soon after they end. args
// give a director the tool rest__ping.
func (b *box) traced() (x *tracing, args []string) {
	b.t.Helper()
	x = &tracing{b: b, spans: map[string][]tracedSpan{}}
	receiver := httptest.NewServer(http.HandlerFunc(x.take))
	b.t.Cleanup(receiver.Close)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.upstreams = append(x.upstreams, r.Header.Get("Traceparent"))
		fmt.Fprint(w, "pong")
	}))
	b.t.Cleanup(upstream.Close)
	b.vars["OTEL_EXPORTER_OTLP_ENDPOINT"], b.vars["OTEL_METRICS_EXPORTER"], b.vars["OTEL_BSP_SCHEDULE_DELAY"] = receiver.URL, "none", "20"
	file := b.toolFile("tools.json", object{
		"queues": queuesOf(nil),
		"restTools": object{"ping": object{
			"description": "says pong", "method": "GET", "url": upstream.URL,
			"parametersSchema": object{"type": "object", "properties": object{}},
		}},
	})
	return x, []string{"--tools", file}
}

func (x *tracing) take(_ http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			x.b.t.Error(err)
			return
		}
		body = z
	}
	data, err := io.ReadAll(body)
	var got tracepb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(data, &got)
	}
	if err != nil {
		x.b.t.Error(err)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, rs := range got.ResourceSpans {
		service := ""
		for _, a := range rs.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				if strings.Contains(s.String(), "whisper") {
					x.b.t.Errorf("a span contains the prompt: %v", s)
				}
				x.spans[s.Name] = append(x.spans[s.Name], tracedSpan{s, service})
			}
		}
	}
}

// of waits for the span with a name that belongs to a task.
func (x *tracing) of(name, queueID string) (found tracedSpan) {
	x.b.t.Helper()
	x.b.until("a span "+name+" of "+queueID, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, s := range x.spans[name] {
			if s.attr("signalbox.queue_id") == queueID {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

// chain expects each span to be a child of the one before it, in one trace.
func (x *tracing) chain(spans ...tracedSpan) {
	x.b.t.Helper()
	for i := 1; i < len(spans); i++ {
		above, s := spans[i-1], spans[i]
		if s.trace() != above.trace() || s.parent() != above.id() {
			x.b.t.Errorf("%s (trace %s, parent %s) is not under %s (trace %s, span %s)", s.Name, s.trace(), s.parent(), above.Name, above.trace(), above.id())
		}
	}
}

// tracedScript is an agent that calls a tool and another agent with the command
// line, which knows the trace only from the environment.
const tracedScript = `#!/bin/sh
case "$1" in
*whisper) signalbox tools call rest__ping && signalbox chat coder "hello" ;;
*) echo "$TRACEPARENT" ;;
esac 2>&1
`

// One trace from the submitter, over director, agent and tools, to the end.
func TestATaskIsOneTraceOverAllParts(t *testing.T) {
	b := newBox(t)
	x, tools := b.traced()
	director := b.director(tools...)
	c := b.client(director.url)
	if err := os.Symlink(binary, filepath.Join(b.bin, "signalbox")); err != nil {
		t.Fatal(err)
	}
	script := b.file("traced.sh", tracedScript, 0o700)
	for _, name := range []string{"planner", "coder"} {
		b.agentAs(c, name, director.url, "--workdir", filepath.Dir(b.file(name+"/README", "", 0o600)), "--", "/bin/sh", script, "{prompt}")
	}
	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	b.vars["TRACEPARENT"] = "00-" + trace + "-" + caller + "-01"
	b.want(0, "--director", director.url, "submit", "whisper", "--agent", "planner", "--wait")
	history, err := c.History(b.ctx(), client.HistoryOptions{})
	if err != nil || len(history.Tasks) != 2 {
		t.Fatalf("%+v, %v", history, err)
	}
	called, task := history.Tasks[0], history.Tasks[1]
	if called.Agent != "coder" {
		called, task = task, called
	}
	submit, execution := x.of("submit", task.QueueID), x.of("execution", task.QueueID)
	if submit.trace() != trace || submit.parent() != caller {
		t.Errorf("the submit is of trace %s under %s", submit.trace(), submit.parent())
	}
	x.chain(submit, x.of("wait", task.QueueID))
	x.chain(submit, x.of("attempt", task.QueueID), x.of("run", task.QueueID), execution)
	if submit.service != "signalbox" || execution.service != "signalbox-agent" || execution.attr("signalbox.state") != "completed" {
		t.Errorf("%s, %s, %v", submit.service, execution.service, execution)
	}
	// The command line had the execution's trace in its environment.
	call := x.of("tools/call rest__ping", task.QueueID)
	x.chain(execution, call)
	if len(x.upstreams) != 1 || !strings.Contains(x.upstreams[0], trace+"-"+call.id()) {
		t.Errorf("the tool got %q, not span %s", x.upstreams, call.id())
	}
	x.chain(execution, x.of("submit", called.QueueID), x.of("attempt", called.QueueID), x.of("run", called.QueueID), x.of("execution", called.QueueID))
}

// A director is killed while a task runs, and another one takes the task
// over: there is one trace, and the agent's spans keep their parent. A call
// that only names its execution is part of that trace too.
func TestATraceGoesOnOverARestart(t *testing.T) {
	b := newBox(t)
	x, tools := b.traced()
	director := b.director(append(tools, "--addr", freePort(t))...)
	c := b.client(director.url)
	gate, command := b.gated()
	_, token := b.agentAs(c, "worker", director.url, command...)
	id := gate.holdWith(c, "whisper")
	submit := x.of("submit", id)
	director.kill()
	b.director(append(tools, "--addr", strings.TrimPrefix(director.url, "http://"))...)
	b.until("the execution is adopted", func() bool {
		code, said := b.ask(http.MethodPost, director.url+"/api/tools/rest__ping/call", `{}`, "Authorization", "Bearer "+token, "X-Signalbox-Execution", id)
		return code == http.StatusOK && strings.Contains(said, "pong")
	})
	gate.open()
	b.completed(c, id)
	attempt, run := x.of("attempt", id), x.of("run", id)
	x.chain(submit, attempt, run, x.of("execution", id))
	x.chain(run, x.of("tools/call rest__ping", id))
	if run.StartTimeUnixNano < attempt.StartTimeUnixNano || attempt.StartTimeUnixNano < submit.StartTimeUnixNano-1e6 {
		t.Errorf("the attempt begins at %d and the run at %d, the submit at %d", attempt.StartTimeUnixNano, run.StartTimeUnixNano, submit.StartTimeUnixNano)
	}
	adopted := false
	for _, a := range run.Attributes {
		adopted = adopted || a.Key == "signalbox.adopted" && a.Value.GetBoolValue()
	}
	if !adopted {
		t.Errorf("the run does not say that it was adopted: %v", run)
	}
}

// under waits for the span with a name that is a child of another.
func (x *tracing) under(above tracedSpan, name string) (found tracedSpan) {
	x.b.t.Helper()
	x.b.until("a span "+name+" under "+above.Name, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, s := range x.spans[name] {
			if s.parent() == above.id() && s.trace() == above.trace() {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

// Requests over MCP are part of the trace in their _meta: a task that a tool
// submits, and a tool call that becomes a task.
func TestCallsOverMCPAreOfTheirCallersTrace(t *testing.T) {
	b := newBox(t)
	x, tools := b.traced()
	director := b.director(tools...)
	b.agent("worker", director.url)
	const trace, caller = "1af7651916cd43dd8448eb211c80319c", "c7ad6b7169203331"
	session := b.over(director.url, modernEra)
	params := &mcp.CallToolParams{Name: "submit_task", Arguments: object{"prompt": "whisper"}}
	params.Meta = mcp.Meta{"traceparent": "00-" + trace + "-" + caller + "-01"}
	res, err := session.CallTool(b.ctx(), params)
	if err != nil || res.IsError {
		t.Fatalf("%s, %v", textOf(res), err)
	}
	top := tracedSpan{Span: &spanpb.Span{Name: "the caller", TraceId: bytesOf(t, trace), SpanId: bytesOf(t, caller)}}
	call := x.under(top, "tools/call submit_task")
	x.under(x.under(x.under(x.under(call, "submit"), "attempt"), "run"), "execution")

	code, said := b.ask(http.MethodPost, director.url+"/api/tools/rest__ping/tasks", `{}`, "Traceparent", "00-"+trace+"-"+caller+"-01")
	if code != http.StatusCreated {
		t.Fatalf("%d %s", code, said)
	}
	run := x.under(x.under(x.under(top, "submit"), "attempt"), "run")
	call = x.under(run, "tools/call rest__ping")
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.upstreams) != 1 || !strings.Contains(x.upstreams[0], trace+"-"+call.id()) {
		t.Errorf("the tool got %q, not span %s", x.upstreams, call.id())
	}
}

func bytesOf(t *testing.T, text string) []byte {
	t.Helper()
	out, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
