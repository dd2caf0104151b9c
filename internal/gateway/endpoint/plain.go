package endpoint

import (
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

// plainCall is a tools/call over HTTP that is answered without the SDK, which decodes each
// message a dozen times with a new buffer of 32 KB each. Anything unusual goes to the SDK,
// which reports what is wrong.
type plainCall struct {
	toolCall
	id    jsonrpc.ID
	rawID json.RawMessage
}

// legacyVersions are the versions that have sessions.
var legacyVersions = []string{"", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// plain parses the call of a request. nil: the SDK must handle it.
func (s *server) plain(r *http.Request, body []byte, tree *strictjson.Object) *plainCall {
	if r.Method != http.MethodPost || tree == nil || tree.Values["method"] != methodCallTool || tree.Values["jsonrpc"] != "2.0" || len(tree.Keys) != 4 ||
		r.Header.Get("Content-Type") != "application/json" || !acceptsBoth(r.Header.Values("Accept")) || r.Header["Last-Event-Id"] != nil {
		return nil
	}
	message := strictjson.Members(body)
	c := &plainCall{id: idOf(message["id"]), rawID: message["id"]}
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
	if hasMeta && json.Unmarshal(fields["_meta"], &c.meta) != nil {
		return nil
	}
	c.version = r.Header.Get(versionHeader)
	if !s.plainEra(r.Header, c, meta, fields["_meta"]) || declared(c.version, c.meta) && s.relay != nil {
		return nil
	}
	return c
}

// plainEra reports whether a call conforms to its protocol version.
func (s *server) plainEra(h http.Header, c *plainCall, meta *strictjson.Object, raw json.RawMessage) bool {
	if !isModern(c.version) {
		return h.Get(sessionHeader) != "" && slices.Contains(legacyVersions, c.version) && c.meta[mcp.MetaKeyProtocolVersion] == nil
	}
	if c.version != modern || h.Get(methodHeader) != methodCallTool || h.Get(nameHeader) != c.name || s.hasHeaderParams(c.name) ||
		meta == nil || meta.Values[mcp.MetaKeyProtocolVersion] != modern {
		return false
	}
	able, ok := meta.Values[mcp.MetaKeyClientCapabilities].(*strictjson.Object)
	if !ok {
		return false
	}
	members := strictjson.Members(raw)
	if len(able.Keys) > 0 {
		var known struct {
			mcp.ClientCapabilities
			Roots *mcp.RootCapabilities `json:"roots"`
		}
		if json.Unmarshal(members[mcp.MetaKeyClientCapabilities], &known) != nil {
			return false
		}
	}
	info, has := members[mcp.MetaKeyClientInfo]
	var named *mcp.Implementation
	return !has || json.Unmarshal(info, &named) == nil && named != nil
}

// acceptsBoth reports whether a client accepts both JSON and events.
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

// idOf reads an ID; the zero ID means none or an invalid one.
func idOf(raw json.RawMessage) jsonrpc.ID {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return jsonrpc.ID{}
	}
	id, _ := jsonrpc.MakeID(v)
	return id
}

// answerPlain makes the call and writes the answer as an event.
func (e *Endpoint) answerPlain(from *request, c *plainCall, session string) {
	ctx, cancel := context.WithCancel(from.ctx)
	defer cancel()
	if session != "" {
		done, ok := e.sessions.trackCall(session, c.id, cancel)
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
				_ = from.answer.writeEvent(message) // an error means that the client has gone
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

type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *jsonrpc.Error  `json:"error,omitempty"`
}

// answerTo returns the answer to a call, with its HTTP status.
func (s *server) answerTo(c *plainCall, res result, err error) (status int, message []byte) {
	out := response{Version: "2.0", ID: c.rawID}
	if err == nil {
		if isModern(c.version) {
			res.SetMeta(map[string]any{mcp.MetaKeyServerInfo: s.info})
		}
		out.Result, err = res.MarshalJSON()
	}
	status = http.StatusOK
	if err != nil {
		if !errors.As(err, &out.Error) {
			out.Error = &jsonrpc.Error{Message: err.Error()}
		}
		if isModern(c.version) {
			status = errorStatus[out.Error.Code]
		}
	}
	message, err = marshal(out)
	if err != nil { // the data of the tool server's error is not valid JSON
		out.Result, out.Error = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		message, _ = marshal(out)
	}
	return max(status, http.StatusOK), message
}

// errorStatus maps errors to the HTTP statuses of the newer protocol.
var errorStatus = map[int64]int{
	jsonrpc.CodeMethodNotFound:         http.StatusNotFound,
	jsonrpc.CodeInvalidParams:          http.StatusBadRequest,
	mcp.CodeUnsupportedProtocolVersion: http.StatusBadRequest, mcp.CodeMissingRequiredClientCapabilities: http.StatusBadRequest,
}
