package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds a configuration file in bytes.
const maxFile = 1 << 20

type node = ast.Node

// file is a configuration file while it is read.
type file struct {
	name    string // as the person knows it
	env     func(string) (string, bool)
	base    string
	home    string
	anchors map[string]node
	found   Problems
	// seen holds the place of every key that was set.
	seen map[string]string
}

// read reads and parses the file and applies it to c.
func (f *file) read(path string, c *Config) {
	data, err := readBounded(path)
	if err != nil {
		f.found = append(f.found, Problem{Where: f.name, Text: err.Error()})
		return
	}
	tree, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		f.syntax(err)
		return
	}
	var docs []node
	for _, doc := range tree.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.NullType {
			docs = append(docs, doc.Body)
		}
	}
	if len(docs) > 1 {
		f.add(docs[1], "", "the file holds a second document: want one")
	}
	if len(docs) > 0 {
		f.anchors = anchors(docs[0])
		walk(f, docs[0], "", settings, c)
	}
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if info.IsDir() {
		return nil, errors.New("it is a folder, want a file")
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	return data, nil
}

// syntax adds the parser's error, which ends the reading.
func (f *file) syntax(err error) {
	where, text := f.name, err.Error()
	var bad *yaml.SyntaxError
	if errors.As(err, &bad) {
		text = bad.Message
		if bad.Token != nil && bad.Token.Position != nil {
			where = fmt.Sprintf("%s:%d", f.name, bad.Token.Position.Line)
		}
	}
	f.found = append(f.found, Problem{Where: where, Text: "it is not YAML: " + text})
}

func (f *file) where(n node) string {
	if tok := n.GetToken(); tok != nil && tok.Position != nil {
		return fmt.Sprintf("%s:%d", f.name, tok.Position.Line)
	}
	return f.name
}

func (f *file) add(n node, key, text string) {
	f.found = append(f.found, Problem{Where: f.where(n), Key: key, Text: text})
}

// walk applies a mapping to target. prefix is "" or the section with its dot.
func walk[T any](f *file, n node, prefix string, s schema[T], target *T) {
	pairs, ok := f.pairs(n)
	if !ok {
		f.add(n, strings.TrimSuffix(prefix, "."), "want a section of keys and values, got "+f.value(n).shown())
		return
	}
	first := map[string]string{}
	for _, pair := range pairs {
		key := prefix + keyName(pair.Key)
		if before, twice := first[key]; twice {
			f.add(pair.Key, key, "it stands twice, first at "+before)
			continue
		}
		first[key] = f.where(pair.Key)
		walkPair(f, pair, key, s, target)
	}
}

func walkPair[T any](f *file, pair *ast.MappingValueNode, key string, s schema[T], target *T) {
	x := s.find(key)
	switch {
	case x == nil && s.section(key):
		if pair.Value.Type() != ast.NullType { // a section whose keys are all commented out
			walk(f, pair.Value, key+".", s, target)
		}
	case x == nil:
		f.add(pair.Key, key, "there is no such key"+suggest(key, s))
	case x.nested != nil:
		x.nested(f, pair.Value, target)
	default:
		before := len(f.found)
		v := f.value(pair.Value)
		if len(f.found) > before { // the value itself is at fault, which has been said
			for i := before; i < len(f.found); i++ {
				f.found[i].Key = key
			}
			return
		}
		if text := x.apply(target, v); text != "" {
			f.add(pair.Value, key, text)
			return
		}
		f.seen[key] = f.where(pair.Key)
	}
}

// decodeAgents decodes the list of agents elsewhere.
func decodeAgents(f *file, n node, c *Config) {
	n = f.resolve(n)
	if n.Type() == ast.NullType {
		return
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		f.add(n, "agents", "want a list of agents, got "+f.value(n).shown())
		return
	}
	for i, item := range seq.Values {
		one := *f
		one.found, one.seen = nil, map[string]string{}
		var agent RemoteAgent
		walk(&one, item, "", agentSettings, &agent)
		key := fmt.Sprintf("agents[%d]", i)
		for _, p := range one.found {
			p.Key = strings.TrimSuffix(key+"."+p.Key, ".")
			f.found = append(f.found, p)
		}
		if len(one.found) == 0 {
			f.checkAgent(item, key, agent, c)
		}
	}
}

func (f *file) checkAgent(n node, key string, agent RemoteAgent, c *Config) {
	switch {
	case agent.Name == "":
		f.add(n, key, "it has no name")
	case agent.URL == "":
		f.add(n, key, fmt.Sprintf("agent %s has no url", agent.Name))
	case slices.ContainsFunc(c.Agents, func(a RemoteAgent) bool { return a.Name == agent.Name }):
		f.add(n, key, fmt.Sprintf("there is already an agent named %s", agent.Name))
	default:
		c.Agents = append(c.Agents, agent)
	}
}

// suggest names the key that was probably meant.
func suggest[T any](key string, s schema[T]) string {
	best, least := "", 3
	for _, x := range s {
		if d := distance(key, x.key); d < least {
			best, least = x.key, d
		}
	}
	last := key[strings.LastIndex(key, ".")+1:]
	for _, x := range s {
		if best == "" && strings.HasSuffix(x.key, "."+last) {
			best = x.key // the right name in the wrong section
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + best + "?"
}

// distance is the number of characters to add, drop or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost = 1 + min(last, row[j], row[j+1])
			}
			last, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
