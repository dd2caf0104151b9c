package conffile

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Form is what a node is by its own look.
type Form string

// The forms, in the words of errors.
const (
	Text    Form = "the text"
	Number  Form = "the number"
	Boolean Form = "the boolean"
	List    Form = "a list"
	Section Form = "a section"
	Nothing Form = "nothing"
)

// Node is a value in a file. A file is a tree of at most maxDepth levels; an
// alias of YAML is a further node with the same children.
type Node struct {
	Form  Form
	Line  int
	Text  string // of a text; a number or boolean as it is written
	Items []*Node
	Pairs []Pair // in the order of the file; a key may stand twice
	// Fault is why the value cannot be understood, such as an alias that
	// stands for nothing.
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

// Shown is the value as an error cites it.
func (n *Node) Shown() string { return Shown(n.Form, n.Text) }

// Shown is a value as an error cites it.
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

// Brief writes a duration without the parts that are zero.
func Brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
