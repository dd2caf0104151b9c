package queuetools

import (
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

var arguments = map[string]any{
	toolSubmit: submitArgs{}, toolStatus: statusArgs{}, toolOutput: outputArgs{}, toolCancel: cancelArgs{},
	toolAgents: struct{}{}, toolQueue: struct{}{}, toolChat: chatArgs{}, toolLand: landArgs{},
}

// Arguments returns the argument names that a tool of the queue reads, except
// for the seed's name for an agent, which no definition has.
func Arguments(tool string) []string {
	var names []string
	for _, f := range httpio.JSONFields(reflect.TypeOf(arguments[tool])) {
		if f.Name != "agent_name" {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

// ChatProgress returns the progress that a caller of chat_with_agent gets
// from a stream that began at that time and arrives in these pieces.
func ChatProgress(agent string, begun time.Time, pieces ...string) (news []string) {
	turn := &chatTurn{agent: agent, begun: begun, progress: func(p gateway.Progress) { news = append(news, p.Message) }}
	w := &response{header: http.Header{"Content-Type": {"text/event-stream"}}, event: turn.event}
	for _, p := range pieces {
		_, _ = w.Write([]byte(p)) // Write never fails
	}
	return news
}
