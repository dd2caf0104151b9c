package conffile

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

func parseYAML(data []byte) (*Node, error) {
	if line := deepLine(data); line > 0 {
		return nil, tooDeep(line)
	}
	tree, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, yamlError(err)
	}
	var docs []ast.Node
	for _, doc := range tree.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.NullType {
			docs = append(docs, doc.Body)
		}
	}
	switch len(docs) {
	case 0:
		return nil, nil
	case 1:
		r := yamlReader{anchors: map[string]*Node{}}
		return r.node(docs[0], 0)
	}
	return nil, &Error{Line: yamlLine(docs[1]), Text: "the file holds a second document: want one"}
}

// deepLine is the line on which brackets or dashes get too deep for the
// parser, whose time grows with the square of the depth, or 0.
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

func yamlError(err error) error {
	var bad *yaml.SyntaxError
	if !errors.As(err, &bad) {
		return &Error{Text: "it is not YAML: " + err.Error()}
	}
	out := &Error{Text: "it is not YAML: " + bad.Message}
	if bad.Token != nil && bad.Token.Position != nil {
		out.Line = bad.Token.Position.Line
	}
	return out
}

func yamlLine(n ast.Node) int {
	if tok := n.GetToken(); tok != nil && tok.Position != nil {
		return tok.Position.Line
	}
	return 0
}

// yamlReader makes nodes of the parser's.
type yamlReader struct {
	anchors map[string]*Node // those whose value has been read
}

func (r *yamlReader) node(n ast.Node, depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, tooDeep(yamlLine(n))
	}
	out := &Node{Line: yamlLine(n)}
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

func (r *yamlReader) list(out *Node, x *ast.SequenceNode, depth int) error {
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

func (r *yamlReader) section(out *Node, pairs []*ast.MappingValueNode, depth int) error {
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
		out.Pairs = append(out.Pairs, Pair{Key: key, Line: yamlLine(pair.Key), Value: n})
	}
	return nil
}

func (r *yamlReader) scalar(out *Node, n ast.Node) {
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
