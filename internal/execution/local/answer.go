package local

import (
	"encoding/json"
	"errors"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// storedAnswer is the stored form of an answer: an MCP CallToolResult with the seed's key
// metadata, or a JSON-RPC error.
type storedAnswer struct {
	Content    json.RawMessage `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
	Meta       json.RawMessage `json:"_meta,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Error      *storedError    `json:"error,omitempty"`
}

type storedError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// encodeResult encodes a result; nil if the tool's answer is not JSON.
func encodeResult(res *gateway.Result) []byte {
	content := res.Content
	if len(content) == 0 {
		content = json.RawMessage("[]")
	}
	return encodeAnswer(storedAnswer{Content: content, Structured: res.Structured, IsError: res.IsError, Meta: res.Meta, Metadata: res.Metadata})
}

// encodeRefusal encodes the JSON-RPC error of the tool's server; nil if the call failed
// otherwise.
func encodeRefusal(err error) []byte {
	var said *gateway.ProtocolError
	if !errors.As(err, &said) {
		return nil
	}
	return encodeAnswer(storedAnswer{Content: json.RawMessage("[]"), Error: &storedError{said.Code, said.Message, said.Data}})
}

func encodeAnswer(w storedAnswer) []byte {
	b, err := json.Marshal(w)
	if err != nil {
		return nil
	}
	return b
}

// decodeAnswer decodes a stored answer. Both are nil if there is none.
func decodeAnswer(answer string) (*gateway.Result, *gateway.ProtocolError) {
	var w storedAnswer
	if read := answer != "" && json.Unmarshal([]byte(answer), &w) == nil; !read {
		return nil, nil
	}
	if e := w.Error; e != nil {
		return nil, &gateway.ProtocolError{Code: e.Code, Message: e.Message, Data: e.Data}
	}
	return &gateway.Result{Content: w.Content, Structured: w.Structured, IsError: w.IsError, Meta: w.Meta, Metadata: w.Metadata}, nil
}
