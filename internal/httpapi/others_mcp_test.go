package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

const mcpInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"example","version":"1.0.0"}}}`

// An MCP session lives where it began. A client that a balancer sends to
// another director goes on with it all the same.
func TestAnMCPSessionThroughAnotherDirector(t *testing.T) {
	tools := map[string]*fakeTools{}
	next := ""
	r := newOthers(t, 0)
	for _, next = range []string{"alfa", "bravo", "charlie"} {
		r.add(next, func(o *options) {
			tools[next] = newFakeTools()
			withTools(tools[next])(o)
		})
	}
	alfa, bravo := r.all[0], r.all[1]
	accept := header("Accept", "application/json, text/event-stream")
	begun := bravo.over("POST", "/mcp", mcpInitialize, accept).want(t, 200, nil)
	id := begun.Header.Get("Mcp-Session-Id")
	if at := strings.LastIndexByte(id, '.'); at < 8 || len(id)-at != 13 {
		t.Fatalf("the session is named %q", id)
	}
	in := func(q *http.Request) {
		q.Header.Set("Mcp-Session-Id", id)
		q.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	}
	for _, m := range r.all {
		m.over("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, accept, in).want(t, 202, nil)
		got := m.over("POST", "/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search__find","arguments":{"query":"x"}}}`, accept, in)
		if got.StatusCode != 200 || !strings.Contains(string(got.body), "3 documents") {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
	}
	if len(tools["alfa"].calls) != 0 || len(tools["bravo"].calls) != 3 {
		t.Errorf("%d calls at alfa, %d at bravo", len(tools["alfa"].calls), len(tools["bravo"].calls))
	}

	// A call that lasts tells its progress through the other director, and ends
	// with its caller.
	s := make(chan reply, 1)
	go func() {
		s <- alfa.over("POST", "/mcp", `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"browser__open","arguments":{"url":"u"},"_meta":{"progressToken":1}}}`, accept, in)
	}()
	<-tools["bravo"].came
	tools["bravo"].goOn <- struct{}{}
	if got := <-s; !strings.Contains(string(got.body), "opened") || !strings.Contains(string(got.body), "queued, position 2") {
		t.Errorf("%s", got.body)
	}

	// The holder dies: 503 while its lease lasts, then 404, with which a client
	// begins anew.
	bravo.kill()
	e := alfa.over("POST", "/mcp", `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`, accept, in).wantError(t, 503, signalbox.CodeUnavailable)
	if !strings.Contains(e.Message, "this MCP session is with director bravo") {
		t.Errorf("%+v", e)
	}
	bravo.expire()
	if got := alfa.over("POST", "/mcp", `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`, accept, in); got.StatusCode != 404 || !json.Valid(got.body) {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

// What the server says unasked comes through as well, and ends with the session.
func TestAnMCPStreamThroughAnotherDirector(t *testing.T) {
	f := newFakeTools()
	r := newOthers(t, 2, withTools(f))
	alfa, bravo := r.all[0], r.all[1]
	accept := header("Accept", "application/json, text/event-stream")
	id := bravo.over("POST", "/mcp", mcpInitialize, accept).want(t, 200, nil).Header.Get("Mcp-Session-Id")
	in := header("Mcp-Session-Id", id)
	bravo.over("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, accept, in).want(t, 202, nil)
	s := alfa.open("/mcp", in)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ok := true; ok; _, ok = s.next() {
			continue
		}
	}()
	alfa.over("DELETE", "/mcp", "", in).want(t, 204, nil)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the stream did not end with its session")
	}
}
