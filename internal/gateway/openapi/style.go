package openapi

import (
	"strings"

	"github.com/signalbox-ai/signalbox/internal/gateway/rest"

	"github.com/getkin/kin-openapi/openapi3"
)

// styles are the ways in which a parameter can be written, by its place
// (OpenAPI 3.1.1, 4.8.12.2).
var styles = map[string][]string{
	openapi3.ParameterInPath:   {"simple", "label", "matrix"},
	openapi3.ParameterInQuery:  {"form", "spaceDelimited", "pipeDelimited", "deepObject"},
	openapi3.ParameterInHeader: {"simple"},
	openapi3.ParameterInCookie: {"form"},
}

// parts is a value taken apart: one text, the texts of a list, or the names
// and texts of an object.
type parts struct {
	one  string
	list []string
	keys []string // of an object, beside list
	kind byte     // 1 one, 2 list, 3 object
}

func apart(v any, escape func(string) string) parts {
	switch v := v.(type) {
	case []any:
		p := parts{kind: 2}
		for _, e := range v {
			p.list = append(p.list, escape(rest.Text(e)))
		}
		return p
	case map[string]any:
		p := parts{kind: 3}
		for _, k := range sortedKeys(v) {
			p.keys = append(p.keys, escape(k))
			p.list = append(p.list, escape(rest.Text(v[k])))
		}
		return p
	}
	return parts{kind: 1, one: escape(rest.Text(v))}
}

// flat are the texts one after the other, an object's with their names.
func (p parts) flat() []string {
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

// named are the texts of an object as name=text, those of a list as
// name=text with the name of the parameter, if it has to have one.
func (p parts) named(name string) []string {
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
	p := apart(v, escape)
	if explode {
		return strings.Join(p.named(""), ",")
	}
	return strings.Join(p.flat(), ",")
}

// inPath writes a value into a segment of the path.
func (a *argument) inPath(v any) string {
	p, name := apart(v, rest.Escape), rest.Escape(a.to)
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

// inQuery are the pairs that a value makes.
func (a *argument) inQuery(v any) []string {
	p, name := apart(v, rest.Escape), rest.Escape(a.to)
	switch {
	case a.style == "deepObject":
		return deep(name, v)
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

// deep are the pairs name[key]=text of an object, and so on inwards.
func deep(name string, v any) []string {
	var pairs []string
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			pairs = append(pairs, deep(name+"%5B"+rest.Escape(k)+"%5D", v[k])...)
		}
	case []any:
		for _, e := range v {
			pairs = append(pairs, deep(name, e)...)
		}
	default:
		pairs = append(pairs, name+"="+rest.Escape(rest.Text(v)))
	}
	return pairs
}
