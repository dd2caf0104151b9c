package config

import (
	"fmt"
	"strings"
)

// expand replaces ${NAME} by the variable and $${ by ${, and reports whether
// there was a variable. A dollar sign elsewhere stands for itself.
func expand(text string, env func(string) (string, bool)) (string, bool, error) {
	var out strings.Builder
	used := false
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			out.WriteString(before)
			return out.String(), used, nil
		}
		if kept, escaped := strings.CutSuffix(before, "$"); escaped {
			out.WriteString(kept + "${")
			text = rest
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !envName.MatchString(name) {
			return "", used, fmt.Errorf("%s is not a variable: want ${NAME}, or $${ for a ${ that stays", cut("${"+rest))
		}
		value, ok := env(name)
		if !ok {
			return "", used, fmt.Errorf("the environment variable %s is not set", name)
		}
		out.WriteString(before + value)
		text, used = after, true
	}
}
