package conffile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Env looks a variable up, such as os.LookupEnv.
type Env func(name string) (string, bool)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ValidEnvName reports whether a variable can have that name.
func ValidEnvName(s string) bool { return envName.MatchString(s) }

// Expand replaces ${NAME} by the variable, ${NAME:-TEXT} by the variable or,
// where that is not set or empty, by TEXT, and $${ by ${. It reports whether
// there was a variable. A dollar sign elsewhere stands for itself. What keep
// accepts between the braces stays as it is; keep may be nil.
//
// An error never shows what stands around a variable: it may be a secret.
func Expand(text string, env Env, keep func(string) bool) (string, bool, error) {
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
		inner, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", used, errors.New("a ${ has no end: want ${NAME}, or $${ for a ${ that stays")
		}
		out.WriteString(before)
		text = after
		if keep != nil && keep(inner) {
			out.WriteString("${" + inner + "}")
			continue
		}
		value, err := lookup(inner, env)
		if err != nil {
			return "", used, err
		}
		out.WriteString(value)
		used = true
	}
}

// lookup finds what stands for the text between the braces. The prefix env:
// is how some coding CLIs write a variable.
func lookup(inner string, env Env) (string, error) {
	name, instead, optional := strings.Cut(strings.TrimPrefix(inner, "env:"), ":-")
	if !ValidEnvName(name) {
		return "", errors.New("what stands between ${ and } is not the name of a variable: want ${NAME}, or $${ for a ${ that stays")
	}
	value, ok := env(name)
	switch {
	case optional && (!ok || value == ""):
		return instead, nil
	case !ok:
		return "", fmt.Errorf("the environment variable %s is not set", name)
	}
	return value, nil
}
