package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"strings"

	signalbox "github.com/signalbox-ai/signalbox"
)

// bodyTemplate is a JSON value with templates in its strings: a text for
// each string, maps and lists of the same, the rest as it is.
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
				return nil, fmt.Errorf("the bodyTemplate has a template in the key %q: only values may have them", Cut(k, 60))
			}
			if v[k], err = parseValue(v[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// fillValue puts the arguments into a value. It is absent when it is nothing
// but a template without an argument.
func fillValue(v any, args map[string]any) (filled any, present bool, err error) {
	switch v := v.(type) {
	case text:
		if path := v.whole(); path != nil {
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

// fill makes the body of one call, in the form that the media type asks for.
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

// EncodeForm writes an object as a form: lists as several pairs, objects as
// JSON.
func EncodeForm(v any) ([]byte, error) {
	m, ok := v.(map[string]any)
	if !ok {
		if s, ok := v.(string); ok {
			return []byte(s), nil
		}
		return nil, signalbox.Invalid("arguments", "a form has to be an object")
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

// decode reads one JSON value and keeps its numbers as they are written.
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

// EncodeJSON writes JSON without turning <, > and & into something else. What it
// is given came from JSON, so that it cannot fail.
func EncodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
