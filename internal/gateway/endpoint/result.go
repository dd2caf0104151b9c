package endpoint

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// callResult is an answer to tools/call that is written as the tool wrote it.
type callResult struct {
	mcp.ResultBase
	gateway.Result
	modern bool
}

// MarshalJSON writes what the upstream wrote, with what the newer protocol asks
// of a result besides.
func (r *callResult) MarshalJSON() ([]byte, error) {
	meta, err := merged(r.Result.Meta, r.GetMeta())
	if err != nil {
		return nil, err
	}
	out := struct {
		Meta       json.RawMessage `json:"_meta,omitempty"`
		Type       string          `json:"resultType,omitempty"`
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
		IsError    bool            `json:"isError,omitempty"`
		Metadata   json.RawMessage `json:"metadata,omitempty"`
	}{
		Meta: meta, Type: resultType(r.modern), Content: r.Content, Structured: r.Structured,
		IsError: r.IsError, Metadata: r.Metadata,
	}
	if len(out.Content) == 0 {
		out.Content = json.RawMessage("[]")
	}
	return marshal(out)
}

// textResult is an answer in words of ours.
func textResult(text string, isError bool) gateway.Result {
	content, err := marshal([]map[string]string{{"type": "text", "text": text}})
	if err != nil { // text always marshals
		content = nil
	}
	return gateway.Result{Content: content, IsError: isError}
}

// toolList is an answer to tools/list.
type toolList struct {
	mcp.ResultBase
	tools  []json.RawMessage
	next   string
	modern bool
}

// MarshalJSON writes the definitions as they are. The newer protocol wants to
// be told how long a list holds: no time at all, for a server may come or go;
// and not for others, for it was asked for with a token.
func (l *toolList) MarshalJSON() ([]byte, error) {
	meta, err := merged(nil, l.GetMeta())
	if err != nil {
		return nil, err
	}
	out := struct {
		Meta  json.RawMessage   `json:"_meta,omitempty"`
		Type  string            `json:"resultType,omitempty"`
		Tools []json.RawMessage `json:"tools"`
		Next  string            `json:"nextCursor,omitempty"`
		TTL   *int              `json:"ttlMs,omitempty"`
		Scope string            `json:"cacheScope,omitempty"`
	}{Meta: meta, Type: resultType(l.modern), Tools: l.tools, Next: l.next}
	if l.modern {
		out.TTL, out.Scope = new(int), "private"
	}
	return marshal(out)
}

func resultType(modern bool) string {
	if modern {
		return resultComplete
	}
	return ""
}

// merged is the upstream's _meta with what the SDK adds; where both have a key
// the upstream's stands.
func merged(upstream json.RawMessage, added map[string]any) (json.RawMessage, error) {
	if len(added) == 0 {
		return upstream, nil
	}
	all := map[string]json.RawMessage{}
	if len(upstream) > 0 {
		if err := json.Unmarshal(upstream, &all); err != nil {
			return nil, err
		}
	}
	for k, v := range added {
		if _, there := all[k]; there {
			continue
		}
		data, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		all[k] = data
	}
	return marshal(all)
}
