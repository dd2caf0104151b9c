package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/oasdiff/yaml"
	yaml3 "github.com/oasdiff/yaml3"
)

const (
	maxDepth    = 200      // of nesting; what people write has a tenth of it
	maxExpanded = 32 << 20 // bytes, with every alias written out
)

// toJSON turns YAML into JSON, and refuses what would grow out of bounds on
// the way, or be too deep for those who walk through it.
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
	b := bomb{sizes: map[*yaml3.Node]int{}}
	if b.size(&doc, 0) > maxExpanded {
		return nil, fmt.Errorf("its YAML aliases would make it larger than %d MiB", maxExpanded>>20)
	}
	if b.deep {
		return nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	var raw json.RawMessage
	if _, err := yaml.Unmarshal(data, &raw, yaml.DecodeOpts{DisableTimestamps: true}); err != nil {
		return nil, fmt.Errorf("it is no YAML that could be JSON: %s", firstLine(err))
	}
	return raw, nil
}

// bomb finds out how large a YAML document is with every alias written out,
// without writing it out.
type bomb struct {
	sizes map[*yaml3.Node]int
	deep  bool
}

func (b *bomb) size(n *yaml3.Node, depth int) int {
	if size, ok := b.sizes[n]; ok {
		return size
	}
	if depth > maxDepth+2 {
		b.deep = true
		return 0
	}
	if n.Kind == yaml3.AliasNode {
		b.sizes[n] = maxExpanded + 1 // an alias within itself has no end
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

// depth is how deep valid JSON is nested.
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
