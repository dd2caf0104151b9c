package config

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

type node = *conffile.Node

// file is a configuration file while it is being read.
type file struct {
	name  string // as the user knows it
	c     *Config
	env   conffile.Env
	base  string
	home  string
	found Problems
	// seen has the place of every key that was set.
	seen map[string]string
	// noJobs skips the jobs.
	noJobs bool
	root   node // of the file
	data   []byte
	// tools are the sections that toolconf reads.
	tools []conffile.Pair
}

// read reads the file and applies it.
func (f *file) read(path string) { f.readAs(path, settings(f.c)) }

func (f *file) readAs(path string, s schema) {
	data, err := conffile.Bytes(path)
	var root node
	if err == nil {
		root, err = conffile.Parse(data, conffile.YAML)
	}
	if err != nil {
		p := Problem{Where: f.name, Text: err.Error()}
		if bad, ok := errors.AsType[*conffile.Error](err); ok {
			p.Where = conffile.Where(f.name, bad.Line)
		}
		f.found = append(f.found, p)
		return
	}
	if f.root, f.data = root, data; root != nil {
		f.walk(root, "", s)
	}
}

func (f *file) where(line int) string { return conffile.Where(f.name, line) }

func (f *file) add(line int, key, text string) {
	f.found = append(f.found, Problem{Where: f.where(line), Key: key, Text: text})
}

// walk applies a section. prefix is "" or the section with its dot.
func (f *file) walk(n node, prefix string, s schema) {
	if n.Form != conffile.Section {
		f.add(n.Line, strings.TrimSuffix(prefix, "."), "want a section of keys and values, got "+f.value(n).Shown())
		return
	}
	for pair := range f.once(n, prefix) {
		f.walkPair(pair, prefix+pair.Key, s)
	}
}

// once yields the pairs of a section, and reports duplicate keys.
func (f *file) once(n node, prefix string) iter.Seq[conffile.Pair] {
	return n.Once(f.name, func(p conffile.Pair, text string) { f.add(p.Line, prefix+p.Key, text) })
}

func (f *file) walkPair(pair conffile.Pair, key string, s schema) {
	x := s.find(key)
	switch {
	case x == nil && s.section(key):
		if pair.Value.Form != conffile.Nothing { // all keys of the section may be commented out
			f.walk(pair.Value, key+".", s)
		}
	case x == nil:
		f.add(pair.Line, key, unknown(key, s))
	case x.nested != nil:
		x.nested(f, key, pair)
	default:
		before := len(f.found)
		v := f.value(pair.Value)
		if len(f.found) > before { // the value itself is invalid, which was already reported
			for i := before; i < len(f.found); i++ {
				f.found[i].Key = key
			}
			return
		}
		if text := x.apply(v); text != "" {
			f.add(pair.Value.Line, key, text)
			return
		}
		f.seen[key] = f.where(pair.Line)
	}
}

func unknown(key string, s schema) string {
	if text := toolconf.Retired(key[strings.LastIndex(key, ".")+1:]); text != "" {
		return text
	}
	if key == "agent_url" {
		return "a scheduler submits to the director's queue, which finds the agent: give director_url, and name an agent in a job where it must be that one"
	}
	known := make([]string, len(s))
	for i, x := range s {
		known[i] = x.key
	}
	return "there is no such key" + conffile.Suggest(key, known)
}

// keepForTools leaves a section to toolconf, which reads it together with the
// files that the key tools names.
func keepForTools(f *file, _ string, pair conffile.Pair) { f.tools = append(f.tools, pair) }

// decodeAgents decodes the list of remote agents, or the options of each kind.
func decodeAgents(f *file, _ string, pair conffile.Pair) {
	n := pair.Value
	switch n.Form {
	case conffile.Nothing:
		return
	case conffile.List:
	case conffile.Section:
		decodeKinds(f, pair)
		return
	default:
		f.add(n.Line, "agents", "want a list of agents elsewhere, or a section of kinds and their options, got "+f.value(n).Shown())
		return
	}
	for i, item := range n.Items {
		var agent RemoteAgent
		key := fmt.Sprintf("agents[%d]", i)
		if f.entry(item, key, agentSettings(&agent)) {
			f.checkAgent(item, key, agent)
		}
	}
}

// decodeAccounts decodes the accounts by name.
func decodeAccounts(f *file, _ string, pair conffile.Pair) {
	if pair.Value.Form == conffile.Nothing {
		return
	}
	if pair.Value.Form != conffile.Section {
		f.add(pair.Value.Line, "accounts", "want a section of accounts by name, as signalbox accounts lists them, got "+f.value(pair.Value).Shown())
		return
	}
	for one := range f.once(pair.Value, "accounts.") {
		key := "accounts." + one.Key
		if !signalbox.ValidName(one.Key) {
			f.add(one.Line, key, "want the name of an account: "+wantName)
			continue
		}
		var a Account
		if f.entry(one.Value, key, accountSettings(&a)) {
			if f.c.Accounts == nil {
				f.c.Accounts = map[string]Account{}
			}
			f.c.Accounts[one.Key] = a
		}
	}
}

// modelPattern matches the name of a model, in which * stands for any
// characters.
var modelPattern = regexp.MustCompile(`^[A-Za-z0-9*][A-Za-z0-9._:/@+\[\]*-]{0,199}$`)

// decodePrices decodes the prices of models.
func (c *Config) decodePrices(f *file, key string, pair conffile.Pair) {
	if pair.Value.Form == conffile.Nothing {
		return
	}
	if pair.Value.Form != conffile.Section {
		f.add(pair.Value.Line, key, "want a section of models and their prices, got "+f.value(pair.Value).Shown())
		return
	}
	prices := map[string]Price{}
	for one := range f.once(pair.Value, key+".") {
		model := key + "." + one.Key
		if !modelPattern.MatchString(one.Key) {
			f.add(one.Line, model, "want the name of a model, with * for any characters, such as gpt-5*")
			continue
		}
		const open = -1
		p := Price{open, open, open, open}
		if !f.entry(one.Value, model, priceSettings(&p)) {
			continue
		}
		if p.Input == open || p.Output == open {
			f.add(one.Line, model, "want input and output, in US dollars for 1,000,000 tokens")
		}
		for _, cached := range []*float64{&p.CacheRead, &p.CacheWrite} {
			if *cached == open {
				*cached = p.Input
			}
		}
		prices[one.Key] = p
	}
	c.Agent.Prices = prices
	f.seen[key] = f.where(pair.Line)
}

// entry applies an entry of a list, and reports whether it had no mistakes.
func (f *file) entry(n node, key string, s schema) bool {
	one := *f
	one.found, one.seen = nil, map[string]string{}
	one.walk(n, "", s)
	f.addBelow(key, one.found)
	return len(one.found) == 0
}

// addBelow adds the problems of keys below key.
func (f *file) addBelow(key string, found Problems) {
	for _, p := range found {
		p.Key = strings.TrimSuffix(key+"."+p.Key, ".")
		f.found = append(f.found, p)
	}
}

func (f *file) checkAgent(n node, key string, agent RemoteAgent) {
	switch {
	case agent.Name == "":
		f.add(n.Line, key, "it has no name")
	case agent.URL == "":
		f.add(n.Line, key, fmt.Sprintf("agent %s has no url", agent.Name))
	case slices.ContainsFunc(f.c.Agents, func(a RemoteAgent) bool { return a.Name == agent.Name }):
		f.add(n.Line, key, fmt.Sprintf("there is already an agent named %s", agent.Name))
	case agent.Proof && agent.Token == "":
		f.add(n.Line, key, fmt.Sprintf("agent %s has no token that it could prove", agent.Name))
	default:
		f.c.Agents = append(f.c.Agents, agent)
	}
}

// value converts a node to a value, with variables expanded. It adds mistakes
// of the node itself to the problems.
func (f *file) value(n node) value {
	v := f.scalar(n)
	switch n.Form {
	case conffile.List:
		v.list = f.texts(n)
	case conffile.Section:
		v.table = f.table(n)
	}
	return v
}

// scalar is value for a node that is not a list or section.
func (f *file) scalar(n node) value {
	v := value{Value: conffile.Value{Form: n.Form, Text: n.Text}, base: f.base, home: f.home}
	if n.Fault != "" {
		f.add(n.Line, "", n.Fault)
	}
	if n.Form == conffile.Text {
		out, used, err := conffile.Expand(n.Text, f.env, nil)
		if err != nil {
			f.add(n.Line, "", err.Error())
		}
		v.Text, v.Untyped = out, used
	}
	return v
}

// texts returns the items of a list, all of which must be texts. Numbers are
// accepted as written, because arguments often are numbers.
func (f *file) texts(n node) []string {
	out := make([]string, 0, len(n.Items))
	for _, item := range n.Items {
		v := f.scalar(item)
		if v.Form != conffile.Text && v.Form != conffile.Number {
			f.add(item.Line, "", "want a text in the list, got "+v.Shown())
			continue
		}
		out = append(out, v.Text)
	}
	return out
}

// table returns the entries of a section of texts. The caller reports entries
// that are not texts.
func (f *file) table(n node) map[string]string {
	out := map[string]string{}
	for _, pair := range n.Pairs {
		v := f.scalar(pair.Value)
		if v.Form != conffile.Text {
			v.Text = "" // no value of a table may be empty
		}
		out[pair.Key] = v.Text
	}
	return out
}
