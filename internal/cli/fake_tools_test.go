package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// toolRoutes are the fake director's routes of tools.
func (f *fake) toolRoutes() map[string]http.HandlerFunc {
	since := noon.Add(-90 * time.Second)
	return map[string]http.HandlerFunc{
		"tools": func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 200, api.Tools{
				Tools: []api.Tool{
					{Name: "browser__open", Kind: "mcp", Server: "browser", Queue: "browser", TimeoutSeconds: 300, Description: "Opens a page.\nThen waits for it.", InputSchema: json.RawMessage("{}")},
					{Name: "rest__weather", Kind: "rest", Server: "rest", Queue: "default", TimeoutSeconds: 20, Description: "The weather of a place, as the station nearest to it measured it last", InputSchema: json.RawMessage("{}")},
					{Name: "report", Kind: "command", Server: "commands", Async: true, Description: "Makes the report of a month", InputSchema: json.RawMessage("{}")},
				},
				Servers: []api.ToolServer{
					{Name: "browser", Kind: "mcp", State: "failed", Error: "it ended with status 1", Restarts: 3, Tools: 1, Since: since},
					{Name: "rest", Kind: "rest", State: "ready", Tools: 1, Since: since},
				},
			})
		},
		"toolQueues": func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 200, api.ToolQueues{Queues: []api.ToolQueue{
				{
					Name: "browser", Concurrent: 2, InUse: 2, Depth: 7,
					Holders: []api.ToolHolder{{Agent: "coder", Session: "a1b2c3d4", Tool: "browser__open"}, {Session: "ffff0000", Leased: true, Idle: true}},
					Waiters: []api.ToolWaiter{{Position: 1, Since: since}},
				},
				{Name: "default", Concurrent: 64, Holders: []api.ToolHolder{}, Waiters: []api.ToolWaiter{}},
				{Name: "search", Concurrent: 4, InUse: 1, Shared: true, Holders: []api.ToolHolder{{Agent: "coder", Tool: "rest__weather", Director: "d2"}}},
			}})
		},
		"callTool": f.callTool, "createToolTask": f.createToolTask, "toolTasks": f.toolTasks, "toolTask": f.toolTask, "cancelToolTask": f.cancelToolTask,
	}
}

// callTool answers as the name of the tool says, and records the call.
func (f *fake) callTool(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.calls = append(f.calls, fmt.Sprintf("%s %s %s", r.PathValue("tool"), r.Header.Get("X-Signalbox-Execution"), body))
	f.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(name, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data) }
	switch r.PathValue("tool") {
	case "echo":
		send("result", `{"content":[{"type":"text","text":"hello\n"},{"type":"image","mimeType":"image/png","data":"AAAA"},{"type":"resource_link","uri":"file:///x"},{"type":"resource","resource":{"uri":"a:b","text":"inside"}}]}`)
	case "structured":
		send("result", `{"content":[],"structuredContent":{"n":12345678901234567890}}`)
	case "waits":
		send("progress", `{"progress":0,"message":"queued, position 2","position":2}`)
		send("progress", `{"progress":0,"message":"queued, position 2","position":2}`)
		send("progress", `{"progress":1,"total":3,"message":"loading"}`)
		send("result", `{"content":[{"type":"text","text":"done"}]}`)
	case "fails":
		send("result", `{"content":[{"type":"text","text":"no such page"}],"isError":true}`)
	case "report":
		send("result", `{"content":[{"type":"text","text":"Task 'report' queued with id `+id(9)+`"}],"metadata":{"agent":"report","taskId":"`+id(9)+`","toolName":"report","status":"pending"}}`)
	case "hangs":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		send("error", `{"error":"`+r.PathValue("tool")+`","message":"it is as it is"}`)
	}
}
