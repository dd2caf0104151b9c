package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// agentKinds are the kinds of agents that a process of ours can be.
var agentKinds = []string{"claude", "codex", "opencode", "command", "llm", "demo"}

// kindSettings are the keys of agent that may be another for each kind: what
// tells one agent from all others is not among them.
var kindSettings schema[Config]

func init() { // settings themselves lead here
	for _, x := range settings {
		key, of := strings.CutPrefix(x.key, "agent.")
		if of && !slices.Contains([]string{"name", "kind", "addr", "token", "pull", "directors"}, key) {
			x.key = key
			kindSettings = append(kindSettings, x)
		}
	}
}

// decodeKinds decodes the options of each kind. They are kept as they stand, and
// applied by For.
func decodeKinds(f *file, pair conffile.Pair, c *Config) {
	first := map[string]string{}
	for _, one := range pair.Value.Pairs {
		key := "agents." + one.Key
		switch before, twice := first[one.Key]; {
		case twice:
			f.add(one.Line, key, "it stands twice, first at "+before)
			continue
		case !slices.Contains(agentKinds, one.Key):
			f.add(one.Line, key, "there is no such kind of agent"+conffile.Suggest(one.Key, agentKinds))
			continue
		}
		first[one.Key] = f.where(one.Line)
		c.Kinds = append(c.Kinds, one.Key)
		if one.Value.Form == conffile.Nothing {
			continue
		}
		options := *f
		apply := func(target *Config) Problems {
			f := options
			f.found, f.seen = nil, map[string]string{}
			walk(&f, one.Value, "", kindSettings, target)
			for key, at := range f.seen {
				target.origins["agent."+key] = at
			}
			return f.found
		}
		scratch := Default("")
		for _, p := range apply(&scratch) {
			p.Key = strings.TrimSuffix(key+"."+p.Key, ".")
			f.found = append(f.found, p)
		}
		if c.kinds == nil {
			c.kinds = map[string]func(*Config) Problems{}
		}
		c.kinds[one.Key] = apply
	}
}

// For is the configuration of an agent of that kind: agent, then what agents has
// for the kind, then the environment and the flags, as for all that is in a file.
func (c *Config) For(kind string) Config {
	own := *c
	own.Agent.Kind = kind
	apply := c.kinds[kind]
	if apply == nil {
		return own
	}
	own.origins = maps.Clone(c.origins)
	apply(&own) // its problems are those that Load found: none
	loadEnv(&own, c.sources)
	loadFlags(&own, c.sources)
	own.Agent.Kind = kind
	return own
}
