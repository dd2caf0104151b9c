package endpoint_test

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/testkit"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
)

// bySDK makes the SDK read a call: the content type is spelled unusually.
var bySDK = []string{"Content-Type", "application/json;charset=utf-8"}

// TestPlainCallAnswerEqualsSDK: with or without the SDK the answer has the same
// bytes, status and headers.
func TestPlainCallAnswerEqualsSDK(t *testing.T) {
	r := newFixture(t, endpoint.Options{Version: "9"}, func(s *scripted) {
		s.add("s__told", "default", func(_ context.Context, c gateway.Call) (gateway.Result, error) {
			if c.Progress != nil {
				c.Progress(gateway.Progress{Progress: 1, Total: 3, Message: "a <b> & c"})
				c.Progress(gateway.Progress{Position: 2})
			}
			return gateway.Result{Content: json.RawMessage(`[{"type":"text","text":"<1.50>"}]`), Meta: json.RawMessage(`{"k":1.0}`), IsError: true}, nil
		})
		s.add("s__refuses", "default", func(context.Context, gateway.Call) (gateway.Result, error) {
			return gateway.Result{}, &gateway.ProtocolError{Code: -32602, Message: "no <such> page", Data: json.RawMessage(`{"n":1.0}`)}
		})
		s.add("s__odd", "default", func(context.Context, gateway.Call) (gateway.Result, error) {
			return gateway.Result{}, &gateway.ProtocolError{Code: -5, Message: "odd"}
		})
	})
	id := r.open()
	for name, c := range map[string]struct{ params, meta string }{
		"a call":              {`"name":"s__echo","arguments":{"a":[1.50]}`, ``},
		"without arguments":   {`"name":"s__echo"`, ``},
		"null":                {`"name":"s__echo","arguments":null`, ``},
		"a list":              {`"name":"s__echo","arguments":[1]`, ``},
		"more of _meta":       {`"name":"s__echo"`, `,"example.com/x":{"y":1.5}`},
		"a result that fails": {`"name":"s__told","arguments":{}`, ``},
		"progress":            {`"name":"s__told","arguments":{}`, `,"progressToken":"p"`},
		"progress by number":  {`"name":"s__told","arguments":{}`, `,"progressToken":7`},
		"an error":            {`"name":"s__refuses"`, ``},
		"an odd error":        {`"name":"s__odd"`, ``},
		"an unknown tool":     {`"name":"s__nothing"`, ``},
		"no name":             {`"name":""`, ``},
		"another member":      {`"name":"s__echo","other":1`, ``},
		"its capabilities":    {`"name":"s__echo"`, `,"io.modelcontextprotocol/clientCapabilities":{"roots":{"listChanged":true},"sampling":{}}`},
		"wrong capabilities":  {`"name":"s__echo"`, `,"io.modelcontextprotocol/clientCapabilities":{"roots":7}`},
	} {
		ask := func(version string, more ...string) reply {
			if version == modern {
				return r.sendModern("tools/call", c.params, c.meta, more...)
			}
			meta := ""
			if c.meta != "" {
				meta = `,"_meta":{` + c.meta[1:] + `}`
			}
			return r.send("POST", `{"jsonrpc":"2.0","id":"x-7","method":"tools/call","params":{`+c.params+meta+`}}`, append([]string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", version}, more...)...)
		}
		for _, version := range []string{modern, "2025-06-18"} {
			plain, sdk := ask(version), ask(version, bySDK...)
			for _, h := range []reply{plain, sdk} { // headers that legitimately differ
				maps.DeleteFunc(h.header, func(k string, _ []string) bool { return k == "Date" || k == "Content-Length" })
			}
			if plain.status != sdk.status || plain.body != sdk.body || !maps.EqualFunc(plain.header, sdk.header, func(a, b []string) bool { return strings.Join(a, ",") == strings.Join(b, ",") }) {
				t.Errorf("%s, %s:\n%+v\nbut the SDK\n%+v", name, version, plain, sdk)
			}
		}
	}
}

// TestPlainCallIsCancelledByID: the protocol with sessions cancels by a message
// with the call's ID, so two calls with the same ID are refused.
func TestPlainCallIsCancelledByID(t *testing.T) {
	r := newFixture(t, endpoint.Options{})
	id := r.open()
	answers := make(chan reply, 1)
	hold := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"s__hold"}}`
	go func() { answers <- r.send("POST", hold, "Mcp-Session-Id", id) }()
	testkit.Receive(t, "the call runs", r.script.came)
	if got := r.send("POST", hold, "Mcp-Session-Id", id); got.status != 400 || !strings.Contains(got.body, "duplicate in-flight request ID 7") {
		t.Errorf("a second one: %+v", got)
	}
	for _, other := range []string{`"7"`, `8`, `null`, `{}`} {
		if got := r.send("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+other+`}}`, "Mcp-Session-Id", id); got.status >= 500 {
			t.Errorf("%s: %+v", other, got)
		}
	}
	if len(r.script.gone) > 0 {
		t.Fatal("the call was cancelled by another id")
	}
	if got := r.send("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7.0}}`, "Mcp-Session-Id", id); got.status != 202 {
		t.Errorf("%+v", got)
	}
	testkit.Receive(t, "the call is cancelled", r.script.gone)
	if got := testkit.Receive(t, "it is answered", answers); !strings.Contains(got.body, `"id":7,"error":{"code":0,"message":"context canceled"}`) {
		t.Errorf("%+v", got)
	}
	if got := r.send("POST", strings.Replace(hold, "s__hold", "s__echo", 1), "Mcp-Session-Id", id); got.status != 200 {
		t.Errorf("the id again: %+v", got)
	}
}
