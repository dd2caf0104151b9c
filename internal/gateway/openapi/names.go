package openapi

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
)

// toolName is the tool's own name: the operation's id, else its method and
// path, made of what names of tools are made of.
func toolName(prefix, id, method, path string) string {
	name := id
	if name == "" {
		name = strings.ToLower(method) + "_" + path
	}
	name = clean(name)
	if id == "" {
		for strings.Contains(name, "__") {
			name = strings.ReplaceAll(name, "__", "_")
		}
		name = strings.Trim(name, "_")
	}
	if prefix = strings.TrimSuffix(clean(prefix), "_"); prefix != "" {
		name = prefix + "_" + name
	}
	return fit(name, rest.MaxName-len(rest.Prefix))
}

// clean replaces what may not stand in the name of a tool or an argument.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if isNameRune(r) {
			return r
		}
		return '_'
	}, name)
}

func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

const maxArgument = 64 // what the models' endpoints take

// argumentName makes a parameter's name one that models may be given:
// filter[size] is filter_size, $top is top.
func argumentName(name string) string {
	if validArgument(name) {
		return name
	}
	name = strings.ReplaceAll(strings.Trim(clean(name), "_"), "__", "_")
	if name == "" {
		name = "parameter"
	}
	return fit(name, maxArgument)
}

// validArgument reports whether a property can be an argument as it is.
func validArgument(name string) bool {
	return name != "" && len(name) <= maxArgument && !strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) && r != '.' })
}

// fit shortens a name to n bytes so that it stays another than the others.
func fit(name string, n int) string {
	if len(name) <= n {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(name)) //nolint:errcheck // a hash takes anything
	return fmt.Sprintf("%s_%08x", name[:n-9], h.Sum32())
}
