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

	signalbox "github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// maxErrorText is how much of an error body is passed on, in bytes.
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

// result converts the answer to MCP content: text as text, JSON objects also as structured
// content, images and audio as such, everything else as an embedded resource. A status of 300
// or more is a failure of the tool.
func (a *Answer) result() gateway.Result {
	kind, charset := a.kind()
	status := strings.TrimSpace(fmt.Sprintf("HTTP %d %s", a.Status, http.StatusText(a.Status)))
	switch {
	case a.Status >= 300:
		return gateway.Result{Content: textContent(a.errorText(status, kind, charset)), IsError: true}
	case len(a.Body) == 0:
		return gateway.Result{Content: textContent(status)}
	case IsJSON(kind) && json.Valid(a.Body):
		return jsonResult(a.Body)
	case isText(kind):
		return gateway.Result{Content: textContent(decodeText(a.Body, charset))}
	}
	data := base64.StdEncoding.EncodeToString(a.Body)
	switch family, _, _ := strings.Cut(kind, "/"); family {
	case "image", "audio":
		return gateway.Result{Content: content(block{Type: family, Data: data, MIMEType: kind})}
	}
	return gateway.Result{Content: content(block{Type: "resource", Resource: &resource{URI: a.redactedURL(), MIMEType: kind, Blob: data}})}
}

// jsonResult includes an object twice, as MCP requires, or only as text if twice would exceed
// the limit of an answer.
func jsonResult(body []byte) gateway.Result {
	r := gateway.Result{Content: textContent(string(body))}
	if object := bytes.TrimSpace(body); object[0] == '{' && utf8.Valid(object) && len(r.Content)+len(object) <= gateway.MaxAnswer {
		r.Structured = object
	}
	return r
}

// errorText is the message of an unsuccessful answer.
func (a *Answer) errorText(status, kind, charset string) string {
	if len(a.Body) == 0 {
		return status
	}
	if !isText(kind) {
		return fmt.Sprintf("%s (%d bytes of %s)", status, len(a.Body), kind)
	}
	text := decodeText(a.Body, charset)
	if len(text) <= maxErrorText {
		return status + "\n" + text
	}
	return fmt.Sprintf("%s\n%s\n(%d bytes more)", status, Truncate(text, maxErrorText), len(text)-maxErrorText)
}

// redactedURL is the URL without the parts that may be secret.
func (a *Answer) redactedURL() string {
	u := url.URL{Scheme: a.url.Scheme, Host: a.url.Host, Path: a.url.Path, RawPath: a.url.RawPath}
	return u.String()
}

// kind is the declared media type, or else the detected one.
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

// textual are media types of text that do not begin with text/.
var textual = map[string]bool{
	"application/xml": true, "application/javascript": true, "application/x-javascript": true, "application/ecmascript": true,
	"application/yaml": true, "application/x-yaml": true, "application/toml": true, "application/x-ndjson": true, "application/jsonl": true,
	"application/x-sh": true, "application/sql": true, "application/graphql": true, FormType: true,
}

func isText(kind string) bool {
	return strings.HasPrefix(kind, "text/") || IsJSON(kind) || textual[kind] ||
		strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml")
}

// decodeText converts the body to UTF-8. Of the older character sets it supports only the one
// that is still in use.
func decodeText(body []byte, charset string) string {
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

// bodyTemplate is a JSON value whose strings are templates: a template for
// each string, maps and lists of those, everything else unchanged.
type bodyTemplate struct{ value any }

func parseBody(raw []byte) (*bodyTemplate, error) {
	v, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("the bodyTemplate is not JSON: %w", err)
	}
	v, err = parseValue(v)
	return &bodyTemplate{v}, err
}

func parseValue(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return parseText(v)
	case []any:
		for i := range v {
			if v[i], err = parseValue(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if strings.Contains(k, opening) {
				return nil, fmt.Errorf("the bodyTemplate has a template in the key %q: only values may have them", Truncate(k, 60))
			}
			if v[k], err = parseValue(v[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// fillValue inserts the arguments into a value. A value that is a single placeholder without an
// argument is absent.
func fillValue(v any, args map[string]any) (filled any, present bool, err error) {
	switch v := v.(type) {
	case template:
		if path := v.singlePath(); path != nil {
			filled, present = lookup(args, path)
			return filled, present, nil
		}
		filled, err = v.fill(args, "the body", same)
		return filled, true, err
	case []any:
		list := make([]any, 0, len(v))
		for _, e := range v {
			f, ok, err := fillValue(e, args)
			if err != nil {
				return nil, false, err
			}
			if ok {
				list = append(list, f)
			}
		}
		return list, true, nil
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			f, ok, err := fillValue(e, args)
			if err != nil {
				return nil, false, err
			}
			if ok {
				m[k] = f
			}
		}
		return m, true, nil
	}
	return v, true, nil
}

// fill makes the body of one call in the format of the media type.
func (t *bodyTemplate) fill(args map[string]any, mediaType string) ([]byte, error) {
	v, ok, err := fillValue(t.value, args)
	if err != nil || !ok {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(mediaType)
	switch s, isText := v.(string); {
	case isForm(mediaType):
		return EncodeForm(v)
	case isText && kind != "" && !IsJSON(kind):
		return []byte(s), nil
	}
	return EncodeJSON(v), nil
}

// FormType is the media type of a form.
const FormType = "application/x-www-form-urlencoded"

func isForm(mediaType string) bool {
	kind, _, _ := mime.ParseMediaType(mediaType)
	return kind == FormType
}

// EncodeForm encodes an object as a form: lists as repeated pairs, objects as JSON.
func EncodeForm(v any) ([]byte, error) {
	m, ok := v.(map[string]any)
	if !ok {
		if s, ok := v.(string); ok {
			return []byte(s), nil
		}
		return nil, signalbox.Invalid("arguments", "a form must be an object")
	}
	form := url.Values{}
	for k, v := range m {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, e := range list {
			if e != nil {
				form.Add(k, Text(e))
			}
		}
	}
	return []byte(form.Encode()), nil
}

// decode reads one JSON value and keeps its numbers as written.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("there is more than one value")
	}
	return v, nil
}

// EncodeJSON encodes JSON without escaping <, > and &. Its input was decoded from JSON, so it
// cannot fail.
func EncodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
