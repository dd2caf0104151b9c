package endpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/strictjson"
)

// plainCall is a tools/call over HTTP that is answered here. The SDK decodes each
// message a dozen times, with a fresh buffer of 32 KB each time. What is in any way
// not as the protocol has it goes to the SDK, which says what is wrong.
type plainCall struct {
	toolCall
	id    jsonrpc.ID
	rawID json.RawMessage
}

// legacyVersions are those that have sessions.
var legacyVersions = []string{"", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// plain returns the call that a request makes; nil: it is for the SDK.
func (s *server) plain(r *http.Request, body []byte, tree *strictjson.Object) *plainCall {
	if r.Method != http.MethodPost || tree == nil || tree.Values["method"] != methodCallTool || tree.Values["jsonrpc"] != "2.0" || len(tree.Keys) != 4 ||
		r.Header.Get("Content-Type") != "application/json" || !acceptsBoth(r.Header.Values("Accept")) || r.Header["Last-Event-Id"] != nil {
		return nil
	}
	message := strictjson.Members(body)
	c := &plainCall{id: idOf(tree.Values["id"]), rawID: message["id"]}
	params, _ := tree.Values["params"].(*strictjson.Object)
	if !c.id.IsValid() || params == nil || slices.ContainsFunc(params.Keys, func(k string) bool { return k != "name" && k != "arguments" && k != "_meta" }) {
		return nil
	}
	fields := strictjson.Members(message["params"])
	c.name, _ = params.Values["name"].(string)
	c.arguments = fields["arguments"]
	meta, hasMeta := params.Values["_meta"].(*strictjson.Object)
	if c.name == "" || params.Values["_meta"] != nil && !hasMeta {
		return nil
	}
	if hasMeta {
		c.meta, _ = goValue(meta).(map[string]any)
	}
	c.version = r.Header.Get(versionHeader)
	if !s.plainEra(r.Header, c, meta, fields["_meta"]) || declared(c.version, c.meta) && s.relay != nil {
		return nil
	}
	return c
}

// plainEra says whether a call is as its version of the protocol has it.
func (s *server) plainEra(h http.Header, c *plainCall, meta *strictjson.Object, raw json.RawMessage) bool {
	if !isModern(c.version) {
		return h.Get(sessionHeader) != "" && slices.Contains(legacyVersions, c.version) && c.meta[mcp.MetaKeyProtocolVersion] == nil
	}
	if c.version != modern || h.Get(methodHeader) != methodCallTool || h.Get(nameHeader) != c.name || s.headered(c.name) ||
		meta == nil || meta.Values[mcp.MetaKeyProtocolVersion] != modern {
		return false
	}
	members := strictjson.Members(raw)
	able, ok := meta.Values[mcp.MetaKeyClientCapabilities].(*strictjson.Object)
	if !ok {
		return false
	}
	for _, value := range able.Values { // mostly there is none, or one without settings
		if settings, ok := value.(*strictjson.Object); !ok || len(settings.Keys) > 0 {
			var known struct {
				mcp.ClientCapabilities
				Roots *mcp.RootCapabilities `json:"roots"`
			}
			if json.Unmarshal(members[mcp.MetaKeyClientCapabilities], &known) != nil {
				return false
			}
			break
		}
	}
	info, has := meta.Values[mcp.MetaKeyClientInfo]
	return !has || isImplementation(info, members[mcp.MetaKeyClientInfo])
}

// isImplementation says whether a client names itself as the protocol has it.
func isImplementation(info any, raw json.RawMessage) bool {
	o, ok := info.(*strictjson.Object)
	if !ok {
		return false
	}
	for _, value := range o.Values {
		if _, isText := value.(string); !isText {
			return json.Unmarshal(raw, new(mcp.Implementation)) == nil
		}
	}
	return o.Values["icons"] == nil
}

// goValue is a value as encoding/json decodes it.
func goValue(tree any) any {
	switch v := tree.(type) {
	case *strictjson.Object:
		out := make(map[string]any, len(v.Keys))
		for k, value := range v.Values {
			out[k] = goValue(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = goValue(v[i])
		}
		return out
	case json.Number:
		if f, err := v.Float64(); err == nil { // else it stays as it is written
			return f
		}
	}
	return tree
}

// acceptsBoth says whether a client takes an answer in one piece and as events, in
// the words that clients have for it.
func acceptsBoth(accept []string) bool {
	whole, events := false, false
	for _, line := range accept {
		for kind := range strings.SplitSeq(line, ",") {
			switch strings.TrimSpace(kind) {
			case "application/json":
				whole = true
			case "text/event-stream":
				events = true
			}
		}
	}
	return whole && events
}

// idOf reads an id; the zero ID stands for none and for a wrong one.
func idOf(tree any) jsonrpc.ID {
	id, _ := jsonrpc.MakeID(goValue(tree))
	return id
}

// answerPlain makes the call and answers it, as an event.
func (e *Endpoint) answerPlain(from *request, c *plainCall, session string) {
	ctx, cancel := context.WithCancel(from.ctx)
	defer cancel()
	if session != "" {
		done, ok := e.sessions.calls(session, c.id, cancel)
		if !ok {
			refuseWith(from.answer, http.StatusBadRequest, c.rawID, jsonrpc.CodeInvalidRequest, fmt.Sprintf("duplicate in-flight request ID %v", c.id.Raw()))
			return
		}
		defer done()
	}
	h := from.answer.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("Connection", "keep-alive")
	if token := c.meta["progressToken"]; token != nil {
		c.progress = progress(token, func(p *mcp.ProgressNotificationParams) {
			if message, err := marshal(notification{"2.0", "notifications/progress", p}); err == nil {
				_ = from.answer.tell(message) // an error is that of a client that has gone
			}
		})
	}
	res, err := e.server.call(ctx, from, c.toolCall)
	status, message := e.server.answerTo(c, res, err)
	from.answer.complete(status, message)
}

type notification struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// answerTo is the answer to a call, with its HTTP status.
func (s *server) answerTo(c *plainCall, res result, err error) (status int, message []byte) {
	member, data := `,"result":`, []byte(nil)
	if err == nil {
		if isModern(c.version) {
			res.SetMeta(map[string]any{mcp.MetaKeyServerInfo: s.info})
		}
		data, err = res.MarshalJSON()
	}
	status = http.StatusOK
	if err != nil {
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) {
			wire = &jsonrpc.Error{Message: err.Error()}
		}
		if isModern(c.version) {
			status = cmp.Or(errorStatus[wire.Code], status)
		}
		member = `,"error":`
		if data, err = marshal(wire); err != nil { // what a tool's server gave with it is no JSON
			data, _ = marshal(&jsonrpc.Error{Code: wire.Code, Message: wire.Message})
		}
	}
	return status, slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), c.rawID, []byte(member), data, []byte("}"))
}

// errorStatus has the HTTP statuses that the newer protocol has for errors.
var errorStatus = map[int64]int{
	jsonrpc.CodeMethodNotFound:         http.StatusNotFound,
	jsonrpc.CodeInvalidParams:          http.StatusBadRequest,
	mcp.CodeUnsupportedProtocolVersion: http.StatusBadRequest, mcp.CodeMissingRequiredClientCapabilities: http.StatusBadRequest,
}
