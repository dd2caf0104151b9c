package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oasdiff/yaml"
	yaml3 "github.com/oasdiff/yaml3"

	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
)

// styles are the serialization styles of a parameter by location (OpenAPI 3.1.1, 4.8.12.2).
var styles = map[string][]string{
	openapi3.ParameterInPath:   {"simple", "label", "matrix"},
	openapi3.ParameterInQuery:  {"form", "spaceDelimited", "pipeDelimited", "deepObject"},
	openapi3.ParameterInHeader: {"simple"},
	openapi3.ParameterInCookie: {"form"},
}

// valueParts is a decomposed value: a text, the texts of a list, or the names and texts of an
// object.
type valueParts struct {
	one  string
	list []string
	keys []string // of an object, beside list
	kind byte     // 1 one, 2 list, 3 object
}

func splitValue(v any, escape func(string) string) valueParts {
	switch v := v.(type) {
	case []any:
		p := valueParts{kind: 2}
		for _, e := range v {
			p.list = append(p.list, escape(rest.Text(e)))
		}
		return p
	case map[string]any:
		p := valueParts{kind: 3}
		for _, k := range sortedKeys(v) {
			p.keys = append(p.keys, escape(k))
			p.list = append(p.list, escape(rest.Text(v[k])))
		}
		return p
	}
	return valueParts{kind: 1, one: escape(rest.Text(v))}
}

// flat lists the texts; of an object also the names.
func (p valueParts) flat() []string {
	switch p.kind {
	case 1:
		return []string{p.one}
	case 2:
		return p.list
	}
	var all []string
	for i, k := range p.keys {
		all = append(all, k, p.list[i])
	}
	return all
}

// named lists an object's texts as name=text, and a list's texts with the name of the parameter
// where needed.
func (p valueParts) named(name string) []string {
	var all []string
	for i, v := range p.list {
		switch {
		case p.kind == 3:
			all = append(all, p.keys[i]+"="+v)
		case name != "":
			all = append(all, name+"="+v)
		default:
			all = append(all, v)
		}
	}
	if p.kind == 1 {
		all = []string{p.one}
		if name != "" {
			all[0] = name + "=" + p.one
		}
	}
	return all
}

// simple is the style of headers and, by default, of paths.
func simple(v any, explode bool, escape func(string) string) string {
	p := splitValue(v, escape)
	if explode {
		return strings.Join(p.named(""), ",")
	}
	return strings.Join(p.flat(), ",")
}

// inPath formats a value for a path segment.
func (a *argument) inPath(v any) string {
	p, name := splitValue(v, rest.Escape), rest.Escape(a.to)
	switch {
	case a.style == "label" && a.explode:
		return "." + strings.Join(p.named(""), ".")
	case a.style == "label":
		return "." + strings.Join(p.flat(), ",")
	case a.style == "matrix" && a.explode:
		return ";" + strings.Join(p.named(name), ";")
	case a.style == "matrix":
		return ";" + name + "=" + strings.Join(p.flat(), ",")
	}
	return simple(v, a.explode, rest.Escape)
}

// inQuery returns the query pairs of a value.
func (a *argument) inQuery(v any) []string {
	p, name := splitValue(v, rest.Escape), rest.Escape(a.to)
	switch {
	case a.style == "deepObject":
		return deepObject(name, v)
	case a.explode && a.style == "form":
		return p.named(name)
	case p.kind != 1 && len(p.list) == 0:
		return nil
	}
	between := map[string]string{"spaceDelimited": "%20", "pipeDelimited": "%7C"}[a.style]
	if between == "" {
		between = ","
	}
	if a.explode {
		return p.named(name)
	}
	return []string{name + "=" + strings.Join(p.flat(), between)}
}

// deepObject lists the pairs name[key]=text of an object, recursively.
func deepObject(name string, v any) []string {
	var pairs []string
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			pairs = append(pairs, deepObject(name+"%5B"+rest.Escape(k)+"%5D", v[k])...)
		}
	case []any:
		for _, e := range v {
			pairs = append(pairs, deepObject(name, e)...)
		}
	default:
		pairs = append(pairs, name+"="+rest.Escape(rest.Text(v)))
	}
	return pairs
}

const (
	maxDepth    = 200      // ten times the usual nesting
	maxExpanded = 32 << 20 // bytes with all aliases expanded
)

// toJSON converts YAML to JSON. It refuses documents that are nested too deeply or too
// large with all aliases expanded.
func toJSON(data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("it is empty")
	}
	if !json.Valid(data) {
		var err error
		if data, err = fromYAML(data); err != nil {
			return nil, err
		}
	}
	if depth(data) > maxDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	return data, nil
}

func fromYAML(data []byte) ([]byte, error) {
	var doc yaml3.Node
	if err := yaml3.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("it is neither JSON nor YAML: %s", firstLine(err))
	}
	b := expansion{sizes: map[*yaml3.Node]int{}}
	if b.size(&doc, 0) > maxExpanded {
		return nil, fmt.Errorf("its YAML aliases would make it larger than %d MiB", maxExpanded>>20)
	}
	if b.deep {
		return nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	var raw json.RawMessage
	if _, err := yaml.Unmarshal(data, &raw, yaml.DecodeOpts{DisableTimestamps: true}); err != nil {
		return nil, fmt.Errorf("it cannot be converted from YAML to JSON: %s", firstLine(err))
	}
	return raw, nil
}

// expansion computes the size of a YAML document with all aliases expanded, without expanding
// it.
type expansion struct {
	sizes map[*yaml3.Node]int
	deep  bool
}

func (b *expansion) size(n *yaml3.Node, depth int) int {
	if size, ok := b.sizes[n]; ok {
		return size
	}
	if depth > maxDepth+2 {
		b.deep = true
		return 0
	}
	if n.Kind == yaml3.AliasNode {
		b.sizes[n] = maxExpanded + 1 // an alias within itself never ends
		b.sizes[n] = b.size(n.Alias, depth+1)
		return b.sizes[n]
	}
	size := len(n.Value) + 4
	for _, child := range n.Content {
		if size += b.size(child, depth+1); size > maxExpanded {
			size = maxExpanded + 1
			break
		}
	}
	b.sizes[n] = size
	return size
}

// depth is the nesting depth of valid JSON.
func depth(data []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\n")
	if len(line) > 300 {
		line = line[:300]
	}
	return strings.ToValidUTF8(line, "")
}
