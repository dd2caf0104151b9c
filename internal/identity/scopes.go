package identity

import (
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// limits checks a list of agents.
func limits(agents []string) ([]string, error) {
	if len(agents) > maxLimits {
		return nil, signalbox.Invalid("agents", "agents may name at most %d agents", maxLimits)
	}
	for _, name := range agents {
		if !signalbox.ValidName(name) {
			return nil, signalbox.Invalid("agents", "agents must be names of agents")
		}
	}
	sorted := slices.Clone(agents)
	slices.Sort(sorted)
	return slices.Compact(sorted), nil
}

// agentScopes are the rights of an agent's token unless others are asked for.
var agentScopes = []signalbox.Scope{signalbox.ScopeSubmit, signalbox.ScopeRead, signalbox.ScopeTool, signalbox.ScopeAgent}

func checkScopes(t *signalbox.Token) error {
	for _, s := range t.Scopes {
		if !slices.Contains(signalbox.Scopes(), s) {
			return signalbox.Invalid("scopes", "scopes are %s", words(signalbox.Scopes()))
		}
	}
	t.Scopes = inOrder(t.Scopes)
	has := func(s signalbox.Scope) bool { return slices.Contains(t.Scopes, s) }
	switch {
	case t.Kind == signalbox.PrincipalAgent && len(t.Scopes) == 0:
		t.Scopes = inOrder(agentScopes)
	case t.Kind == signalbox.PrincipalAgent && has(signalbox.ScopeAdmin):
		return signalbox.Invalid("scopes", "the token of an agent cannot have scope admin: whoever prompts the agent would be admin")
	case t.Kind == signalbox.PrincipalService && len(t.Scopes) == 0:
		return signalbox.Invalid("scopes", "say which scopes the token has: %s", words(signalbox.Scopes()))
	case t.Kind == signalbox.PrincipalService && has(signalbox.ScopeAgent) && !has(signalbox.ScopeAdmin):
		return signalbox.Invalid("scopes", "scope agent is for the token of an agent: name the agent")
	}
	if len(t.Agents) > 0 && has(signalbox.ScopeAdmin) {
		return signalbox.Invalid("agents", "an admin has no limits, for it could make itself a token without: leave out agents, or the scope admin")
	}
	return nil
}

// inOrder sorts scopes as signalbox.Scopes has them, each once.
func inOrder(scopes []signalbox.Scope) []signalbox.Scope {
	return slices.DeleteFunc(signalbox.Scopes(), func(s signalbox.Scope) bool { return !slices.Contains(scopes, s) })
}

func words(scopes []signalbox.Scope) string {
	list := make([]string, len(scopes))
	for i, s := range scopes {
		list[i] = string(s)
	}
	return strings.Join(list, ", ")
}
