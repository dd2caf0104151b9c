package queuetools_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

const mcpInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"example","version":"1.0.0"}}}`

// An MCP session lives in the director where it began. A client that a load
// balancer sends to another director can still continue it.
func TestAnMCPSessionThroughAnotherDirector(t *testing.T) {
	tools := map[string]*apitest.Tools{}
	next := ""
	r := apitest.NewCluster(t, 0)
	for _, next = range []string{"alfa", "bravo", "charlie"} {
		r.Add(next, func(o *apitest.Options) {
			tools[next] = apitest.NewTools()
			apitest.WithTools(tools[next])(o)
		})
	}
	alfa, bravo := r.Members[0], r.Members[1]
	accept := apitest.Header("Accept", "application/json, text/event-stream")
	begun := bravo.Request("POST", "/mcp", mcpInitialize, accept).Want(t, 200, nil)
	id := begun.Header.Get("Mcp-Session-Id")
	if at := strings.LastIndexByte(id, '.'); at < 8 || len(id)-at != 13 {
		t.Fatalf("the session is named %q", id)
	}
	in := func(q *http.Request) {
		q.Header.Set("Mcp-Session-Id", id)
		q.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	}
	for _, m := range r.Members {
		m.Request("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, accept, in).Want(t, 202, nil)
		got := m.Request("POST", "/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search__find","arguments":{"query":"x"}}}`, accept, in)
		if got.StatusCode != 200 || !strings.Contains(string(got.Body), "3 documents") {
			t.Errorf("%d %s", got.StatusCode, got.Body)
		}
	}
	if len(tools["alfa"].Calls) != 0 || len(tools["bravo"].Calls) != 3 {
		t.Errorf("%d calls at alfa, %d at bravo", len(tools["alfa"].Calls), len(tools["bravo"].Calls))
	}

	// A long call reports its progress through the other director, and ends when
	// its caller disconnects.
	s := make(chan apitest.Reply, 1)
	go func() {
		s <- alfa.Request("POST", "/mcp", `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"browser__open","arguments":{"url":"u"},"_meta":{"progressToken":1}}}`, accept, in)
	}()
	<-tools["bravo"].Waiting
	tools["bravo"].Finish <- struct{}{}
	if got := <-s; !strings.Contains(string(got.Body), "opened") || !strings.Contains(string(got.Body), "queued, position 2") {
		t.Errorf("%s", got.Body)
	}

	// The holder dies: the answer is 503 while its lease lasts, then 404, which
	// tells the client to begin a new session.
	bravo.Kill()
	e := alfa.Request("POST", "/mcp", `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`, accept, in).WantError(t, 503, signalbox.CodeUnavailable)
	if !strings.Contains(e.Message, "this MCP session is at director bravo") {
		t.Errorf("%+v", e)
	}
	bravo.ExpireLease()
	if got := alfa.Request("POST", "/mcp", `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`, accept, in); got.StatusCode != 404 || !json.Valid(got.Body) {
		t.Errorf("%d %s", got.StatusCode, got.Body)
	}
}

// Unsolicited messages of the server come through as well, and end with the
// session.
func TestAnMCPStreamThroughAnotherDirector(t *testing.T) {
	f := apitest.NewTools()
	r := apitest.NewCluster(t, 2, apitest.WithTools(f))
	alfa, bravo := r.Members[0], r.Members[1]
	accept := apitest.Header("Accept", "application/json, text/event-stream")
	id := bravo.Request("POST", "/mcp", mcpInitialize, accept).Want(t, 200, nil).Header.Get("Mcp-Session-Id")
	in := apitest.Header("Mcp-Session-Id", id)
	bravo.Request("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, accept, in).Want(t, 202, nil)
	s := alfa.OpenStream("/mcp", in)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ok := true; ok; _, ok = s.Read() {
			continue
		}
	}()
	alfa.Request("DELETE", "/mcp", "", in).Want(t, 204, nil)
	select {
	case <-ended:
	case <-time.After(apitest.Timeout):
		t.Error("the stream did not end with its session")
	}
}
