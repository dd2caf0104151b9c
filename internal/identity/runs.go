package identity

import (
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// neverOfRuns are the rights that no run has, whatever its agent's token has:
// whoever writes a prompt must not leave anything behind that outlives the run,
// nor speak for the agent itself.
var neverOfRuns = []signalbox.Scope{signalbox.ScopeAdmin, signalbox.ScopeAgent, signalbox.ScopeSchedule, signalbox.ScopeTerminal}

// FromRun returns the principal of an execution of an agent whose token was
// proved. A run may do what each of its agent's tokens in force allows, and what
// an agent may by default where the agent has none at all. id names its token.
//
// Errors: CodeUnauthorized where the agent had tokens, and none is in force.
func (k *Keeper) FromRun(agent, run, id string) (signalbox.Principal, error) {
	return k.current().run(agent, run, id, k.now())
}

func (v *view) run(agent, run, id string, now time.Time) (signalbox.Principal, error) {
	who := signalbox.Principal{Kind: signalbox.PrincipalAgent, ID: agent, TokenID: id, Run: run, Scopes: slices.Clone(agentScopes)}
	inForce := 0
	for _, c := range v.agents[agent] {
		if c.reason != "" || c.expired(now) {
			continue
		}
		if inForce++; inForce == 1 {
			who.Scopes = slices.Clone(c.who.Scopes)
		}
		who.Scopes = slices.DeleteFunc(who.Scopes, func(s signalbox.Scope) bool { return !c.who.Has(s) })
		who.Agents = both(who.Agents, c.who.Agents)
	}
	if inForce == 0 && len(v.agents[agent]) > 0 {
		return signalbox.Principal{}, signalbox.Errorf(signalbox.CodeUnauthorized, "no token of agent %s is in force any more, so its runs have no rights", agent)
	}
	who.Scopes = inOrder(slices.DeleteFunc(who.Scopes, func(s signalbox.Scope) bool { return slices.Contains(neverOfRuns, s) }))
	return who, nil
}
