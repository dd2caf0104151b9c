package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// TestAnswersPassUnchanged: unknown content, numbers beyond a float64 and the
// order of keys are kept.
func TestAnswersPassUnchanged(t *testing.T) {
	h := ready(t, child("raw"), mcp.Options{})
	content := `[{"type":"text","text":"a\u0041","annotations":{"priority":1.0}},{"type":"hologram","z":1,"a":12345678901234567890.10},` +
		`{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"audio","data":"aGk=","mimeType":"audio/wav"},` +
		`{"type":"resource_link","uri":"x:y","name":"n"},{"type":"resource","resource":{"uri":"x:y","text":"t"}}]`
	structured := `{"n":1e400,"m":1.50}`
	r := h.must("a", do("result", map[string]any{"Result": `{"_meta":{"k":1.0},"content":` + content + `,"structuredContent":` + structured + `,"isError":true}`}))
	want := gateway.Result{Content: json.RawMessage(content), Structured: json.RawMessage(structured), Meta: json.RawMessage(`{"k":1.0}`), IsError: true}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	args := `{"Do":"args","n":12345678901234567890.10,"s":"<&>"}`
	if r := h.must("a", args); string(r.Structured) != args {
		t.Errorf("arguments arrived as %s", r.Structured)
	}
	if r := h.must("a", do("result", map[string]any{"Result": `{}`})); string(r.Content) != "[]" {
		t.Errorf("no content became %s", r.Content)
	}
}

func TestProtocolErrorsPassUnchanged(t *testing.T) {
	h := ready(t, child("raw"), mcp.Options{})
	_, err := h.call("a", do("error", map[string]any{"Error": `{"code":-32042,"message":"no <luck>","data":{"n":1.0}}`}))
	var p *gateway.ProtocolError
	if !errors.As(err, &p) || p.Code != -32042 || p.Message != "no <luck>" || string(p.Data) != `{"n":1.0}` {
		t.Errorf("%v, %+v", err, p)
	}
}

func TestMalformedAnswerFailsOnlyItsCall(t *testing.T) {
	h := ready(t, child("raw"), mcp.Options{})
	for _, result := range []string{`5`, `[]`, `{"content":"text"}`, `{"isError":"yes"}`, `{"resultType":"input_required","inputRequests":{}}`, `{"resultType":"task","taskId":"x"}`} {
		h.fails(signalbox.CodeToolFailed, "a", do("result", map[string]any{"Result": result}))
	}
	h.fails(signalbox.CodeToolFailed, "a", do("error", map[string]any{"Error": `"text"`}))
	h.fails(signalbox.CodeToolFailed, "a", do("write", map[string]any{"Result": `{"jsonrpc":"2.0","id":$ID}`}))
	h.must("a", do("write", map[string]any{"Result": `[{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}]`})) // a batch
	if s := h.Server(); s.State != gateway.StateReady || s.Restarts != 0 {
		t.Errorf("afterwards %+v", s)
	}
}

// TestIncidentHugeResult: an answer of 100 MB fails its own call; concurrent
// calls continue.
func TestIncidentHugeResult(t *testing.T) {
	t.Parallel()
	h := ready(t, child("raw"), mcp.Options{})
	msg := h.fails(signalbox.CodeTooLarge, "a", do("big", map[string]any{"Size": 100}))
	if !strings.Contains(msg, "larger than 16 MiB") || !strings.Contains(msg, "Ask for less") {
		t.Error(msg)
	}
	h.must("a", do("args", nil))
	if s := h.Server(); s.Restarts != 0 {
		t.Errorf("afterwards %+v", s)
	}
}

func TestGarbageOnStdoutIsSkippedUpToLimit(t *testing.T) {
	h := ready(t, child("raw", "API_KEY=hunter2hunter2"), mcp.Options{})
	h.must("a", do("garbage", map[string]any{"Size": 900}))
	h.must("a", do("garbage", map[string]any{"Size": 900}))
	if n := strings.Count(h.log.String(), "skipped text that is not an MCP message"); n != 10 {
		t.Errorf("%d lines logged, want 5 for each call", n)
	}
	msg := h.fails(signalbox.CodeToolLost, "a", do("garbage", map[string]any{"Size": 1000}))
	if !strings.Contains(msg, "text other than MCP messages") {
		t.Error(msg)
	}
	if strings.Contains(h.log.String(), "hunter2") {
		t.Error("a secret is in the log")
	}
}

// TestServerWithTooManyRequestsIsEnded: unanswered requests of a server that
// reads no answers would fill the memory.
func TestServerWithTooManyRequestsIsEnded(t *testing.T) {
	t.Parallel()
	h := ready(t, child("raw"), mcp.Options{})
	ask := func(n int) string { // it reads no answer before it has written all requests
		var lines strings.Builder
		for i := range n {
			fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":"ask-%d","method":"ping"}`+"\n", i)
		}
		return do("write", map[string]any{"Result": lines.String() + `{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}`})
	}
	for range 3 { // the same IDs may be used again: the requests were answered
		h.must("a", ask(500))
		h.must("a", do("args", nil))
	}
	msg := h.fails(signalbox.CodeToolLost, "a", ask(soak.Pick(5_000, 20_000)))
	if !strings.Contains(msg, "sends more than 1000 requests") {
		t.Error(msg)
	}
	h.until(func(s gateway.Server) bool { return s.Restarts == 1 && s.State == gateway.StateReady })
	h.must("a", do("args", nil))
}

// TestIncidentSilentUpstream: a call to a server that never answers ends at
// its timeout, and the server gets a cancel.
func TestIncidentSilentUpstream(t *testing.T) {
	h := ready(t, child("raw"), mcp.Options{})
	ctx, cancel := context.WithTimeout(h.ctx(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := h.Call(ctx, gateway.Call{Tool: "srv__a", Arguments: json.RawMessage(do("silent", nil))})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	h.must("a", do("args", nil))
}

func TestCancellationReachesTheServer(t *testing.T) {
	for _, kind := range []string{"stdio", "http", "http-new", "sse", "websocket"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := child("sdk")
			if kind != "stdio" {
				s = webServer(t, kind)
			}
			h := ready(t, s, mcp.Options{})
			file := t.TempDir() + "/notes"
			ctx, cancel := context.WithCancel(h.ctx())
			go func() {
				waitFor(t, file, "begun")
				cancel()
			}()
			_, err := h.Call(ctx, gateway.Call{Tool: "srv__hang", Arguments: json.RawMessage(`{"text":` + fmt.Sprintf("%q", file) + `}`)})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			waitFor(t, file, "cancelled")
		})
	}
}

func TestMetaIsForwardedWithoutHopFields(t *testing.T) {
	h := ready(t, child("raw", "MCP_TEST_META=1"), mcp.Options{})
	r, err := h.Call(h.ctx(), gateway.Call{
		Tool: "srv__a", Arguments: json.RawMessage(do("meta", nil)), Progress: func(gateway.Progress) {},
		Meta: json.RawMessage(`{"progressToken":"theirs","traceparent":"00-1","example.org/n":1.0,"io.modelcontextprotocol/clientInfo":{}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r.Structured); got != `{"example.org/n":1.0,"progressToken":"p1","traceparent":"00-1"}` {
		t.Errorf("_meta arrived as %s", got)
	}
}

// TestServerThatDoesNotReadBlocksNoOtherCall: messages to such a server wait,
// and each caller leaves at its own timeout.
func TestServerThatDoesNotReadBlocksNoOtherCall(t *testing.T) {
	t.Parallel()
	s := child("raw")
	s.HealthProbe = "off"
	h := ready(t, s, mcp.Options{})
	ctx, cancel := context.WithTimeout(h.ctx(), 300*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			args := do("deaf", map[string]any{"Result": strings.Repeat("x", 50_000)})
			if _, err := h.Call(ctx, gateway.Call{Tool: "srv__a", Arguments: json.RawMessage(args)}); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	begin := time.Now()
	all.Wait()
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("they were held for %v", d)
	}
}
