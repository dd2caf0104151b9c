package conffile

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// Form is the written form of a node.
type Form string

// The forms, as named in errors.
const (
	Text    Form = "the text"
	Number  Form = "the number"
	Boolean Form = "the boolean"
	List    Form = "a list"
	Section Form = "a section"
	Nothing Form = "nothing"
)

// Node is a value in a file. A file is a tree of at most maxDepth levels; a
// YAML alias is another node with the same children.
type Node struct {
	Form  Form
	Line  int
	Text  string // of a text; of a number or boolean as written
	Items []*Node
	Pairs []Pair // in the order of the file; keys may be duplicated
	// Fault is the reason why the value is invalid, such as an alias without an
	// anchor.
	Fault string
}

// Pair is one entry of a section.
type Pair struct {
	Key   string
	Line  int
	Value *Node
}

// Where is a place in a file, as errors name it.
func Where(file string, line int) string {
	if line < 1 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// Shown formats a value for an error.
func Shown(form Form, text string) string {
	switch form {
	case Text:
		return strconv.Quote(Cut(text))
	case Number, Boolean:
		return string(form) + " " + Cut(text)
	}
	return string(form)
}

// Cut shortens a text for an error.
func Cut(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// Path makes a path absolute: a relative path is relative to base, and ~ is home
// if that is known.
func Path(base, home, text string) string {
	if rest, ok := strings.CutPrefix(text, "~"); ok && home != "" && (rest == "" || rest[0] == '/') {
		return filepath.Join(home, rest)
	}
	if filepath.IsAbs(text) {
		return filepath.Clean(text)
	}
	return filepath.Join(base, text)
}

// Problem is one mistake in a configuration.
type Problem struct {
	Where string // file:line, the name of a variable or a flag
	Key   string // such as queue.max_size; "": the whole
	Text  string // what was expected and what was found
}

func (p Problem) String() string {
	if p.Key == "" || p.Key == p.Where {
		return p.Where + ": " + p.Text
	}
	return p.Where + ": " + p.Key + ": " + p.Text
}

// Problems are all the mistakes, in the order in which they were found.
type Problems []Problem

// maxShown is the number of mistakes in one message.
const maxShown = 100

func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].String()
	}
	shown := p[:min(len(p), maxShown)]
	lines := make([]string, len(shown))
	for i, problem := range shown {
		lines[i] = "  " + problem.String()
	}
	if left := len(p) - len(shown); left > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", left))
	}
	return fmt.Sprintf("%d problems in the configuration:\n%s", len(p), strings.Join(lines, "\n"))
}

// Suggest completes the sentence that a key does not exist with the key that
// was probably meant, or with nothing.
func Suggest(key string, known []string) string {
	best := signalbox.Nearest(key, known)
	last := key[strings.LastIndex(key, ".")+1:]
	for _, k := range known {
		if best == "" && strings.HasSuffix(k, "."+last) {
			best = k // the right key in the wrong section
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + best + "?"
}

// Env looks up a variable, like os.LookupEnv.
type Env func(name string) (string, bool)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ValidEnvName reports whether s is a valid variable name.
func ValidEnvName(s string) bool { return envName.MatchString(s) }

// Expand replaces ${NAME} by the variable, ${NAME:-TEXT} by the variable or,
// if it is not set or empty, by TEXT, and $${ by ${. It reports whether there
// was a variable. Other dollar signs stay. If keep, which may be nil, accepts
// the text between the braces, that stays unchanged.
//
// An error never shows the text around a variable, because it may be a
// secret.
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

// lookup returns the replacement for the text between the braces. Some coding
// CLIs write variables with the prefix env:.
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
