package conffile

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
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

// Problems are all the things that are wrong, in the order in which they
// were met.
type Problems []Problem

// maxShown is how many of them a message has: nobody reads more at once.
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
