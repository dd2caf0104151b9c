package mcptools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// block is a content block of any kind.
type block struct {
	Type     string   `json:"type"`
	Text     string   `json:"text"`
	MIMEType string   `json:"mimeType"`
	Data     string   `json:"data"` // base64
	URI      string   `json:"uri"`
	Name     string   `json:"name"`
	Size     *int64   `json:"size"`
	Resource resource `json:"resource"`
}

type resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     string  `json:"blob"` // base64
}

// readResult converts a tool's answer to text: text unchanged, other content
// as its kind, type and size, and the structured content if there is no text.
func readResult(raw json.RawMessage) (text string, isError bool, err error) {
	var res struct {
		Type       string            `json:"resultType"`
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if json.Unmarshal(raw, &res) != nil {
		return "", false, errors.New("its answer is not the result of a tool")
	}
	if res.Type != "" && res.Type != "complete" {
		return fmt.Sprintf("The tool wants something that cannot be given here (%s).", plain(res.Type)), true, nil
	}
	var parts []string
	readable := false
	for _, c := range res.Content {
		var b block
		if json.Unmarshal(c, &b) != nil {
			parts = append(parts, fmt.Sprintf("[content of an unknown form, %d bytes]", len(c)))
			continue
		}
		readable = readable || b.Type == "text" && b.Text != ""
		parts = append(parts, b.text(len(c)))
	}
	if s := bytes.TrimSpace(res.Structured); !readable && len(s) > 0 && string(s) != "null" {
		parts = append(parts, string(s))
	}
	if len(parts) == 0 {
		parts = []string{"[no content]"}
	}
	return strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD"), res.IsError, nil
}

// text formats a block; size is the length of its JSON.
func (b block) text(size int) string {
	switch b.Type {
	case "text":
		return b.Text
	case "image", "audio":
		return note(b.Type, b.MIMEType, bytesText(decodedSize(b.Data)))
	case "resource_link":
		bytes := ""
		if b.Size != nil {
			bytes = bytesText(int(*b.Size))
		}
		return note("link to "+b.URI, b.Name, b.MIMEType, bytes)
	case "resource":
		if b.Resource.Text != nil {
			return note("resource "+b.Resource.URI, b.Resource.MIMEType) + "\n" + *b.Resource.Text
		}
		return note("resource "+b.Resource.URI, b.Resource.MIMEType, bytesText(decodedSize(b.Resource.Blob)))
	}
	return note("content of kind "+plain(b.Type), b.MIMEType, bytesText(size)+" of JSON")
}

// note puts what is known about a block into brackets.
func note(parts ...string) string {
	var known []string
	for _, p := range parts {
		if p != "" {
			known = append(known, p)
		}
	}
	return "[" + strings.Join(known, ", ") + "]"
}

func bytesText(n int) string { return fmt.Sprintf("%d bytes", n) }

// decodedSize is the number of bytes that a base64 text encodes.
func decodedSize(s string) int { return len(strings.TrimRight(s, "=")) * 3 / 4 }
