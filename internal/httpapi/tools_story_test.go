package httpapi_test

import (
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// toolStory lists tools and calls them, over HTTP and MCP.
func (s *session) toolStory() {
	s.tools.Statuses = apitest.QueueStates()
	s.ask("tools", "", "/api/tools", "")
	s.ask("toolQueues", "", "/api/tools/queues", "")
	s.ask("setToolQueue", "More calls at once", "/api/tools/queues/browser", `{"concurrent":2}`)
	s.ask("setToolQueue", "A rate", "/api/tools/queues/default", `{"rate":{"n":60,"per_seconds":60,"burst":10}}`)
	s.ask("setToolQueue", "A queue that there is not", "/api/tools/queues/brwser", `{"concurrent":2}`)
	s.tools.Statuses[2].Limits = []toolqueue.Limit{{Closed: toolqueue.Closing{Until: apitest.ToolsSince.Add(time.Minute), Why: "api.example.com answered 429 Too Many Requests", Since: apitest.ToolsSince}}}
	s.ask("openToolQueue", "", "/api/tools/queues/search/open", "")
	s.ask("callTool", "", "/api/tools/search__find/call", `{"arguments":{"query":"signal boxes"}}`)
	s.tools.Finish <- struct{}{}
	s.ask("callTool", "As a stream, by one who has to wait", "/api/tools/browser__open/call", `{"arguments":{"url":"http://127.0.0.1:3000/"},"session":"checkout-test"}`, apitest.Header("Accept", "text/event-stream"))
	s.ask("callTool", "As many calls wait for the tool as may", "/api/tools/search__full/call", `{"arguments":{}}`)
	s.ask("callTool", "A tool that there is not", "/api/tools/search__fnd/call", `{"arguments":{}}`)
	accept := apitest.Header("Accept", "application/json, text/event-stream")
	s.ask("mcp", "A call, from the version 2026-07-28 of the protocol on", "/mcp",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search__find","arguments":{"query":"signal boxes"},"_meta":`+modernMeta+`}}`,
		accept, apitest.Header("Mcp-Protocol-Version", "2026-07-28"), apitest.Header("Mcp-Method", "tools/call"), apitest.Header("Mcp-Name", "search__find"))
	begun := s.ask("mcp", "A session begins, in the versions before", "/mcp",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"example","version":"1.0.0"}}}`, accept)
	of := apitest.Header("Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id"))
	s.ask("mcp", "A call in it", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search__find","arguments":{"query":"signal boxes"}}}`, accept, of)
	s.mcpSession = of
}

// toolStreamStory runs with the other streams: after the director has stopped, a stream ends after
// its existing events.
func (s *session) toolStreamStory() {
	s.ask("mcpStream", "", "/mcp", "", apitest.Header("Accept", "text/event-stream"), s.mcpSession)
	s.ask("mcpEnd", "", "/mcp", "", s.mcpSession)
}

func (s *session) toolsAndMCP() *endpoint.Endpoint {
	s.tools = apitest.NewTools()
	mcp := endpoint.New(s.tools, endpoint.Options{Version: "1.0.0"})
	s.T.Cleanup(func() { mcp.Close() })
	return mcp
}

// hidden replaces values of headers that differ between runs.
func hidden(name, value string) string {
	if strings.EqualFold(name, "Mcp-Session-Id") {
		return "…"
	}
	return value
}
