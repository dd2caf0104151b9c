package conffile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// maxJSON limits the nodes of a value written as JSON: with YAML aliases a few nodes
// can expand to very many.
const maxJSON = 10_000

// ToJSON writes a node as JSON. fill, which may be nil, replaces each text other than
// a key.
func ToJSON(n *Node, fill func(*Node) string) ([]byte, error) {
	w := jsonWriter{fill: fill}
	if err := w.write(n, 0); err != nil {
		return nil, err
	}
	return w.out.Bytes(), nil
}

type jsonWriter struct {
	out   bytes.Buffer
	fill  func(*Node) string
	nodes int
}

func (w *jsonWriter) write(n *Node, depth int) error {
	w.nodes++
	switch {
	case n.Fault != "":
		return &Error{Line: n.Line, Text: n.Fault}
	case w.nodes > maxJSON:
		return &Error{Line: n.Line, Text: fmt.Sprintf("it has more than %d parts", maxJSON)}
	case depth > maxDepth:
		return tooDeep(n.Line)
	}
	switch n.Form {
	case Nothing:
		w.out.WriteString("null")
	case Boolean:
		w.out.WriteString(n.Text)
	case Number:
		return w.number(n)
	case Text:
		text := n.Text
		if w.fill != nil {
			text = w.fill(n)
		}
		w.text(text)
	case List:
		return w.sequence("[]", len(n.Items), func(i int) error { return w.write(n.Items[i], depth+1) })
	case Section:
		return w.section(n, depth)
	}
	return nil
}

// sequence writes n entries between brackets.
func (w *jsonWriter) sequence(brackets string, n int, entry func(i int) error) error {
	w.out.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			w.out.WriteByte(',')
		}
		if err := entry(i); err != nil {
			return err
		}
	}
	w.out.WriteByte(brackets[1])
	return nil
}

func (w *jsonWriter) section(n *Node, depth int) error {
	seen := make(map[string]int, len(n.Pairs))
	return w.sequence("{}", len(n.Pairs), func(i int) error {
		pair := n.Pairs[i]
		if before, twice := seen[pair.Key]; twice {
			return &Error{Line: pair.Line, Text: fmt.Sprintf("the key %s stands twice, first at line %d", strconv.Quote(Cut(pair.Key)), before)}
		}
		seen[pair.Key] = pair.Line
		w.text(pair.Key)
		w.out.WriteByte(':')
		return w.write(pair.Value, depth+1)
	})
}

func (w *jsonWriter) text(s string) {
	enc := json.NewEncoder(&w.out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be encoded
	w.out.Truncate(w.out.Len() - 1)
}

// number writes a number. It converts forms that only YAML has, such as 1. or +3.
func (w *jsonWriter) number(n *Node) error {
	if json.Valid([]byte(n.Text)) {
		w.out.WriteString(n.Text)
		return nil
	}
	f, err := strconv.ParseFloat(n.Text, 64)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(f); err == nil {
			w.out.Write(text)
			return nil
		}
	}
	return &Error{Line: n.Line, Text: "the number " + Cut(n.Text) + " cannot be written in JSON"}
}
