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

func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].String()
	}
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = "  " + problem.String()
	}
	return fmt.Sprintf("%d problems in the configuration:\n%s", len(p), strings.Join(lines, "\n"))
}
