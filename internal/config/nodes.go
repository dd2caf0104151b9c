package config

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// anchors collects the nodes that an alias can stand for.
func anchors(root node) map[string]node {
	found := map[string]node{}
	ast.Walk(anchorVisitor(found), root)
	return found
}

type anchorVisitor map[string]node

func (v anchorVisitor) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		v[a.Name.String()] = a.Value
	}
	return v
}

// resolve returns what a node stands for: the value of an anchor or alias.
func (f *file) resolve(n node) node {
	for range 8 { // an alias of an alias cannot be written; this only bounds the loop
		switch x := n.(type) {
		case *ast.AnchorNode:
			n = x.Value
		case *ast.AliasNode:
			target, ok := f.anchors[x.Value.String()]
			if !ok {
				return n
			}
			n = target
		default:
			return n
		}
	}
	return n
}

// pairs returns the entries of a mapping.
func (f *file) pairs(n node) ([]*ast.MappingValueNode, bool) {
	switch x := f.resolve(n).(type) {
	case *ast.MappingNode:
		return x.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{x}, true
	}
	return nil, false
}

func keyName(key ast.MapKeyNode) string {
	if s, ok := key.(*ast.StringNode); ok {
		return s.Value
	}
	return key.String()
}

// value turns a node into a value, with variables filled in. What is wrong
// with the node itself is added to the problems.
func (f *file) value(n node) value {
	v := f.scalar(n)
	switch x := f.resolve(n).(type) {
	case *ast.SequenceNode:
		v.list = f.texts(x)
	case *ast.MappingNode, *ast.MappingValueNode:
		v.table = f.table(n)
	}
	return v
}

// scalar is value without what is inside a list or section. Those hold only
// scalars, so that an alias to what surrounds it leads nowhere.
func (f *file) scalar(n node) value {
	v := value{base: f.base, home: f.home}
	switch x := f.resolve(n).(type) {
	case *ast.NullNode:
		v.form = formNothing
	case *ast.StringNode:
		v.form = formText
		v.text, v.loose = f.fill(n, x.Value)
	case *ast.LiteralNode:
		v.form = formText
		v.text, v.loose = f.fill(n, x.Value.Value)
	case *ast.IntegerNode:
		v.form, v.text = formNumber, fmt.Sprint(x.Value)
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		v.form, v.text = formNumber, x.GetToken().Value
	case *ast.BoolNode:
		v.form, v.text = formBoolean, x.Token.Value
	case *ast.SequenceNode:
		v.form = formList
	case *ast.MappingNode, *ast.MappingValueNode:
		v.form = formTable
	case *ast.AliasNode:
		f.add(n, "", "the alias *"+x.Value.String()+" stands for nothing")
	default:
		f.add(n, "", "tags and merge keys are not supported here: write the value out, in quotes where it is a text")
	}
	return v
}

// fill expands variables and reports whether there were any.
func (f *file) fill(n node, text string) (string, bool) {
	out, used, err := expand(text, f.env)
	if err != nil {
		f.add(n, "", err.Error())
	}
	return out, used
}

// texts returns the items of a list, all of which must be texts. Numbers are
// taken as they are written: arguments often are.
func (f *file) texts(seq *ast.SequenceNode) []string {
	out := make([]string, 0, len(seq.Values))
	for _, item := range seq.Values {
		v := f.scalar(item)
		if v.form != formText && v.form != formNumber {
			f.add(item, "", "want a text in the list, got "+v.shown())
			continue
		}
		out = append(out, v.text)
	}
	return out
}

// table returns the entries of a section of texts. What is not a text is
// reported by whoever wanted one.
func (f *file) table(n node) map[string]string {
	out := map[string]string{}
	pairs, _ := f.pairs(n)
	for _, pair := range pairs {
		v := f.scalar(pair.Value)
		if v.form != formText {
			v.text = "" // no value of a table may be empty
		}
		out[keyName(pair.Key)] = v.text
	}
	return out
}
