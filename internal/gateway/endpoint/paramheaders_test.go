package endpoint_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
)

// If a tool asks clients to repeat an argument in a header, both values must
// be equal, because proxies route by the header.
func TestParameterHeaders(t *testing.T) {
	r := newFixture(t, endpoint.Options{})
	tool := func(name, schema string) gateway.Tool {
		return gateway.Tool{
			Name: name, Server: "s", Kind: gateway.KindMCP, Queue: "default",
			Definition: json.RawMessage(`{"name":"` + name + `","inputSchema":` + schema + `}`),
		}
	}
	status := func(headers ...string) int {
		t.Helper()
		got := r.sendModern("tools/call", `"name":"s__echo","arguments":{"region":"eu"}`, "", headers...)
		if e := r.read(got).Error; (got.status == http.StatusBadRequest) != (e != nil && e.Code == -32020) {
			t.Errorf("%+v", got)
		}
		return got.status
	}
	if got := status(); got != 200 {
		t.Errorf("without such a property: %d", got)
	}
	const marked = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`
	r.script.offer([]gateway.Tool{tool("s__echo", marked), tool("s__odd", `{"type":"object","properties":{"o":{"type":"object","x-mcp-header":"O"}}}`)})
	for want, headers := range map[int][][]string{
		200: {{"Mcp-Param-Region", "eu"}, {"Mcp-Param-Region", "=?base64?ZXU=?="}},
		400: {{"Mcp-Param-Region", "us"}, {"Mcp-Param-Region", "=?base64?ZXU?="}, nil},
	} {
		for _, h := range headers {
			if got := status(h...); got != want {
				t.Errorf("%v: %d, want %d", h, got, want)
			}
		}
	}
	// The property was added and removed: only the current definition counts.
	r.script.offer([]gateway.Tool{tool("s__echo", `{"type":"object"}`)})
	if got := status("Mcp-Param-Region", "us"); got != 200 {
		t.Errorf("the property has gone: %d", got)
	}
	if list := r.ask(modern, "tools/list", ""); len(list) == 0 || json.Valid([]byte(list)) == false {
		t.Error(list)
	}
}

// Methods outside of the declared capabilities do not exist, in any version.
func TestOnlyToolsAreServed(t *testing.T) {
	r := newFixture(t, endpoint.Options{})
	for _, method := range []string{"prompts/list", "resources/list", "resources/templates/list"} {
		if got := r.sendModern(method, "", ""); got.status != http.StatusNotFound || r.read(got).Error.Code != -32601 {
			t.Errorf("%s: %+v", method, got)
		}
		if got := r.send("POST", `{"jsonrpc":"2.0","id":7,"method":"`+method+`"}`, "Mcp-Session-Id", r.open()); r.read(got).Error == nil || r.read(got).Error.Code != -32601 {
			t.Errorf("%s in the older protocol: %+v", method, got)
		}
	}
}
