package director

import (
	"reflect"
	"slices"
)

var queueToolArgs = map[string]any{
	toolSubmit: submitArgs{}, toolStatus: statusArgs{}, toolOutput: outputArgs{}, toolCancel: cancelArgs{},
	toolAgents: struct{}{}, toolQueue: struct{}{}, toolChat: chatArgs{},
}

// QueueToolArguments are the names of what a tool of the queue reads, but for
// the seed's word for an agent, which no definition names.
func QueueToolArguments(tool string) []string {
	var names []string
	for _, f := range jsonFields(reflect.TypeOf(queueToolArgs[tool])) {
		if f.name != "agent_name" {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}
