package conffile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parse reads both formats with a YAML parser; JSON is a subset of YAML except
// for some forms of numbers. A JSON file is checked first, because other
// programs read it too, and would not accept a comment or a trailing comma.
func parse(data []byte, format Format) (*Node, error) {
	var err error
	if format == JSON {
		data, err = checkJSON(data)
	} else if line := deepLine(data); line > 0 {
		err = tooDeep(line)
	}
	if err != nil {
		return nil, err
	}
	tree, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxError(err, format)
	}
	var docs []ast.Node
	for _, doc := range tree.Docs {
		if doc.Body != nil && (format == JSON || doc.Body.Type() != ast.NullType) {
			docs = append(docs, doc.Body)
		}
	}
	switch len(docs) {
	case 0:
		return nil, nil
	case 1:
		r := reader{format: format, anchors: map[string]*Node{}}
		return r.node(docs[0], 0)
	}
	return nil, &Error{Line: lineOf(docs[1]), Text: "the file holds a second document: want one"}
}

// checkJSON refuses invalid or too deeply nested JSON, and returns the file
// with the tabs between tokens replaced by spaces: YAML does not accept all
// of them.
func checkJSON(data []byte) ([]byte, error) {
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		out := &Error{Text: "it is not JSON: " + err.Error()}
		if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
			out.Line = 1 + bytes.Count(data[:min(int(bad.Offset), len(data))], []byte("\n"))
		}
		return nil, out
	}
	data = bytes.Clone(data)
	quoted, depth, line := false, 0, 1
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\':
			i++
		case quoted:
		case c == '\n':
			line++
		case c == '\t', c == '\r':
			data[i] = ' '
		case c == ']', c == '}':
			depth--
		case c == '[', c == '{':
			if depth++; depth > maxDepth+1 {
				return nil, tooDeep(line)
			}
		}
	}
	return data, nil
}

// deepLine is the line on which brackets or dashes are nested too deeply for
// the parser, whose time is quadratic in the depth, or 0.
func deepLine(data []byte) int {
	const most = 1000
	open := 0
	for i, line := range bytes.Split(data, []byte("\n")) {
		dashes := 0
		for rest := bytes.TrimLeft(line, " "); len(rest) > 1 && (rest[0] == '-' || rest[0] == '?') && rest[1] == ' '; rest = bytes.TrimLeft(rest[2:], " ") {
			dashes++
		}
		for _, c := range line {
			switch c {
			case '[', '{':
				open++
			case ']', '}':
				open = max(0, open-1)
			}
			if open > most {
				return i + 1
			}
		}
		if dashes > maxDepth {
			return i + 1
		}
	}
	return 0
}

func syntaxError(err error, format Format) error {
	bad, ok := errors.AsType[*yaml.SyntaxError](err)
	if !ok {
		return &Error{Text: "it is not " + string(format) + ": " + err.Error()}
	}
	out := &Error{Text: "it is not " + string(format) + ": " + bad.Message}
	if bad.Token != nil && bad.Token.Position != nil {
		out.Line = bad.Token.Position.Line
	}
	return out
}

func lineOf(n ast.Node) int {
	if tok := n.GetToken(); tok != nil && tok.Position != nil {
		return tok.Position.Line
	}
	return 0
}

// reader converts the parser's nodes.
type reader struct {
	format  Format
	anchors map[string]*Node // those whose value was read
}

func (r *reader) node(n ast.Node, depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, tooDeep(lineOf(n))
	}
	out := &Node{Line: lineOf(n)}
	switch x := n.(type) {
	case *ast.AnchorNode:
		value, err := r.node(x.Value, depth+1)
		if err == nil {
			r.anchors[x.Name.String()] = value
		}
		return value, err
	case *ast.AliasNode:
		target, ok := r.anchors[x.Value.String()]
		if !ok {
			out.Form, out.Fault = Nothing, "the alias *"+Cut(x.Value.String())+" stands for nothing"
			return out, nil
		}
		same := *target
		same.Line = out.Line
		return &same, nil
	case *ast.SequenceNode:
		return out, r.list(out, x, depth)
	case *ast.MappingNode:
		return out, r.section(out, x.Values, depth)
	case *ast.MappingValueNode:
		return out, r.section(out, []*ast.MappingValueNode{x}, depth)
	}
	r.scalar(out, n)
	return out, nil
}

func (r *reader) list(out *Node, x *ast.SequenceNode, depth int) error {
	out.Form = List
	for _, item := range x.Values {
		n, err := r.node(item, depth+1)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, n)
	}
	return nil
}

func (r *reader) section(out *Node, pairs []*ast.MappingValueNode, depth int) error {
	out.Form = Section
	for _, pair := range pairs {
		n, err := r.node(pair.Value, depth+1)
		if err != nil {
			return err
		}
		key := pair.Key.String()
		if s, ok := pair.Key.(*ast.StringNode); ok {
			key = s.Value
		}
		out.Pairs = append(out.Pairs, Pair{Key: key, Line: lineOf(pair.Key), Value: n})
	}
	return nil
}

func (r *reader) scalar(out *Node, n ast.Node) {
	// In JSON, an unquoted token that is not a word is a number. YAML reads some
	// numbers as texts, such as 1e3 and numbers longer than 64 bits.
	if tok := n.GetToken(); r.format == JSON && tok.Type != token.DoubleQuoteType && tok.Type != token.NullType && tok.Type != token.BoolType {
		out.Form, out.Text = Number, tok.Value
		return
	}
	switch x := n.(type) {
	case *ast.NullNode:
		out.Form = Nothing
	case *ast.StringNode:
		out.Form, out.Text = Text, x.Value
	case *ast.LiteralNode:
		out.Form, out.Text = Text, x.Value.Value
	case *ast.IntegerNode:
		out.Form, out.Text = Number, fmt.Sprint(x.Value)
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.Form, out.Text = Number, x.GetToken().Value
	case *ast.BoolNode:
		out.Form, out.Text = Boolean, fmt.Sprint(x.Value)
	default:
		out.Form, out.Fault = Nothing, "tags and merge keys are not supported here: write the value out, in quotes where it is a text"
	}
}

func tooDeep(line int) error {
	return &Error{Line: line, Text: fmt.Sprintf("it is nested more than %d levels deep", maxDepth)}
}
