package openapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
)

// unresolved adds to the error of a document that could not be put together
// which of its references lead nowhere: the library names a part of the first.
func (s *source) unresolved(err error) error {
	docs := make(map[string]any, len(s.read))
	for key, data := range s.read {
		var doc any
		if json.Unmarshal(data, &doc) == nil {
			docs[key] = doc
		}
	}
	var dangling []string
	for _, key := range sortedKeys(docs) {
		eachRef(docs[key], func(ref string) {
			if target, path, ok := aim(docs, key, ref); ok && !leads(target, path) {
				dangling = append(dangling, fmt.Sprintf("the reference %s in %s leads nowhere", rest.Cut(ref, 200), rest.Cut(filepath.Base(key), 100)))
			}
		})
	}
	if len(dangling) == 0 {
		return err
	}
	slices.Sort(dangling)
	dangling = slices.Compact(dangling)
	text := ""
	for i, d := range dangling {
		if i == mostMistakes {
			text += fmt.Sprintf("\n  and %d references more", len(dangling)-i)
			break
		}
		text += "\n  " + d
	}
	return fmt.Errorf("it is no valid OpenAPI description:%s", text)
}

// aim is the document that a reference leads into, and the path in it.
func aim(docs map[string]any, from, ref string) (doc any, path string, ok bool) {
	file, path, ok := strings.Cut(ref, "#/")
	if !ok {
		return nil, "", false
	}
	if file == "" {
		return docs[from], path, true
	}
	base, err := url.Parse(from)
	if err != nil {
		return nil, "", false
	}
	to, err := base.Parse(file)
	if err != nil {
		return nil, "", false
	}
	doc, ok = docs[to.String()]
	return doc, path, ok
}

func eachRef(v any, f func(string)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			eachRef(e, f)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			f(ref)
		}
		for _, e := range v {
			eachRef(e, f)
		}
	}
}

func leads(v any, path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[name]
			if !ok {
				return false
			}
			v = next
		case []any:
			return true // by its number, which the library says enough about
		default:
			return false
		}
	}
	return true
}
