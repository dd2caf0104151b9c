package command

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Options are what all tools of a process share.
type Options struct {
	Host      *confine.Host // required
	AgentName string        // metadata.agent of all results (AGENT_NAME); "": the tool's name
	Log       *slog.Logger
}

// Tool is a command tool, ready to run.
type Tool struct{}

// New compiles a tool: its schema, its places. An error names what is wrong
// with it. Whether its program is there is looked at when a run begins.
func New(t toolconf.CommandTool, o Options) (*Tool, error) { panic("being built") }

// Config is what it was made of.
func (t *Tool) Config() toolconf.CommandTool { panic("being built") }

// Check returns a validation_error that names the property, where the input
// does not fit the schema or names a working folder that it may not.
func (t *Tool) Check(input json.RawMessage) error { panic("being built") }

// Run runs it and returns when nothing of the run lives, or cannot be killed
// (Outcome.Alive). Ending ctx cancels the run.
func (t *Tool) Run(ctx context.Context, r Run) Outcome { panic("being built") }

// Answer is what a caller is given, an MCP CallToolResult as JSON: the seed's
// parts of a run that completed; of another its message, with isError.
func (t *Tool) Answer(o Outcome) (content, metadata json.RawMessage, isError bool) {
	panic("being built")
}
