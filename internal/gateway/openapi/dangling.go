package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
)

// unresolved adds to the error of a document that could not be put together
// which of its references lead nowhere: the library names a part of the first.
func unresolved(data []byte, err error) error {
	var root any
	if json.Unmarshal(data, &root) != nil {
		return err
	}
	var dangling []string
	eachRef(root, func(ref string) {
		if path, ok := strings.CutPrefix(ref, "#/"); ok && !leads(root, path) && !slices.Contains(dangling, ref) {
			dangling = append(dangling, ref)
		}
	})
	if len(dangling) == 0 {
		return err
	}
	slices.Sort(dangling)
	text := ""
	for i, ref := range dangling {
		if i == mostMistakes {
			text += fmt.Sprintf("\n  and %d references more", len(dangling)-i)
			break
		}
		text += "\n  the reference " + rest.Cut(ref, 200) + " leads nowhere"
	}
	return fmt.Errorf("it is no valid OpenAPI description:%s", text)
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
