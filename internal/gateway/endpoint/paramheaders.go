package endpoint

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// inHeader marks a property of a tool's input that clients of the newer protocol
// repeat in a header, for what is on the way.
const inHeader = `"x-mcp-header"`

// watchHeaders has the SDK compare those headers with the arguments, which it
// does for tools of its own. So tools with such properties are put there; they
// are called and listed as all others.
func (s *server) watchHeaders() {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	now := map[string]string{}
	for _, tool := range s.gw.Tools() {
		if !bytes.Contains(tool.Definition, []byte(inHeader)) {
			continue
		}
		now[tool.Name] = string(tool.Definition)
		if s.watched[tool.Name] != now[tool.Name] && !s.watch(tool) {
			delete(now, tool.Name)
		}
	}
	for name := range s.watched {
		if now[name] == "" {
			s.sdk.RemoveTools(name)
		}
	}
	s.watched = now
}

// watch puts one there. A tool whose schema is against the rules for these
// headers is one that clients leave out: the SDK panics about it, and nothing of
// it is compared.
func (s *server) watch(tool gateway.Tool) (ok bool) {
	var d struct {
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if json.Unmarshal(tool.Definition, &d) != nil {
		return false
	}
	defer func() {
		if why := recover(); why != nil {
			s.log.Warn("the headers of a tool are not compared with its arguments: its schema is against their rules", "tool", tool.Name, "why", why)
			ok = false
		}
	}()
	s.sdk.AddTool(&mcp.Tool{Name: tool.Name, InputSchema: d.InputSchema},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, errNoOwn })
	return true
}

// headered says whether calls of a tool carry arguments in headers.
func (s *server) headered(tool string) bool {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	return s.watched[tool] != ""
}
