package e2e_test

import (
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// queueTools are the tools of the queue, which every director has.
var queueTools = []string{"submit_task", "task_status", "task_output", "cancel_task", "list_agents", "queue_status", "chat_with_agent", "land_task"}

// configured are the tools in a list except for the queue's tools.
func configured(all []*mcp.Tool) []*mcp.Tool {
	return slices.DeleteFunc(slices.Clone(all), func(t *mcp.Tool) bool { return slices.Contains(queueTools, t.Name) })
}
