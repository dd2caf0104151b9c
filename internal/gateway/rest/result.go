package rest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// maxErrorText bounds how much of the body of a refusal is passed on: enough
// for a message, not for a page.
const maxErrorText = 8 << 10

// block is one MCP content block.
type block struct {
	Type     string    `json:"type"`
	Text     *string   `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"`
	MIMEType string    `json:"mimeType,omitempty"`
	Resource *resource `json:"resource,omitempty"`
}

type resource struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	Blob     string `json:"blob"`
}

// result is the answer in the content kinds of MCP: text as text, JSON objects
// also as structured content, images and audio as such, the rest as an
// embedded resource. A status of 300 or more is a failure of the tool.
func (a *Answer) result() gateway.Result {
	kind, charset := a.kind()
	status := strings.TrimSpace(fmt.Sprintf("HTTP %d %s", a.Status, http.StatusText(a.Status)))
	switch {
	case a.Status >= 300:
		return gateway.Result{Content: textContent(a.refusal(status, kind, charset)), IsError: true}
	case len(a.Body) == 0:
		return gateway.Result{Content: textContent(status)}
	case IsJSON(kind) && json.Valid(a.Body):
		return jsonResult(a.Body)
	case isText(kind):
		return gateway.Result{Content: textContent(toText(a.Body, charset))}
	}
	data := base64.StdEncoding.EncodeToString(a.Body)
	switch family, _, _ := strings.Cut(kind, "/"); family {
	case "image", "audio":
		return gateway.Result{Content: content(block{Type: family, Data: data, MIMEType: kind})}
	}
	return gateway.Result{Content: content(block{Type: "resource", Resource: &resource{URI: a.place(), MIMEType: kind, Blob: data}})}
}

// jsonResult has the body twice if it is an object, as MCP asks for; as text
// alone if twice would be more than an answer may be.
func jsonResult(body []byte) gateway.Result {
	r := gateway.Result{Content: textContent(string(body))}
	if object := bytes.TrimSpace(body); object[0] == '{' && utf8.Valid(object) && len(r.Content)+len(object) <= gateway.MaxAnswer {
		r.Structured = object
	}
	return r
}

// refusal is what a caller reads of an answer that is no success.
func (a *Answer) refusal(status, kind, charset string) string {
	if len(a.Body) == 0 {
		return status
	}
	if !isText(kind) {
		return fmt.Sprintf("%s (%d bytes of %s)", status, len(a.Body), kind)
	}
	text := toText(a.Body, charset)
	if len(text) <= maxErrorText {
		return status + "\n" + text
	}
	return fmt.Sprintf("%s\n%s\n(%d bytes more)", status, Cut(text, maxErrorText), len(text)-maxErrorText)
}

// place is the URL without what may be secret in it.
func (a *Answer) place() string {
	u := url.URL{Scheme: a.url.Scheme, Host: a.url.Host, Path: a.url.Path, RawPath: a.url.RawPath}
	return u.String()
}

// kind is the media type that the upstream says, else what the body looks like.
func (a *Answer) kind() (kind, charset string) {
	kind, params, err := mime.ParseMediaType(a.Type)
	if err != nil || kind == "" {
		if json.Valid(a.Body) {
			return "application/json", ""
		}
		kind, params, _ = mime.ParseMediaType(http.DetectContentType(a.Body))
	}
	return kind, strings.ToLower(params["charset"])
}

// IsJSON reports whether a media type is JSON.
func IsJSON(kind string) bool {
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}

// textual are media types that are text and do not say so by their name.
var textual = map[string]bool{
	"application/xml": true, "application/javascript": true, "application/x-javascript": true, "application/ecmascript": true,
	"application/yaml": true, "application/x-yaml": true, "application/toml": true, "application/x-ndjson": true, "application/jsonl": true,
	"application/x-sh": true, "application/sql": true, "application/graphql": true, FormType: true,
}

func isText(kind string) bool {
	return strings.HasPrefix(kind, "text/") || IsJSON(kind) || textual[kind] ||
		strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml")
}

// toText is the body as UTF-8. Of the older character sets it knows the one
// that is still met.
func toText(body []byte, charset string) string {
	if utf8.Valid(body) {
		return string(body)
	}
	switch charset {
	case "iso-8859-1", "latin1", "windows-1252":
		var b strings.Builder
		for _, c := range body {
			b.WriteRune(rune(c))
		}
		return b.String()
	}
	return strings.ToValidUTF8(string(body), "\uFFFD")
}

func textContent(s string) json.RawMessage {
	return content(block{Type: "text", Text: &s})
}

func content(b block) json.RawMessage { return EncodeJSON([]block{b}) }
