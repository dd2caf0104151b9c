package identity_test

import (
	"slices"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// A run may do what all valid tokens of its agent allow, and nothing that would outlive
// it.
func TestTheRightsOfARun(t *testing.T) {
	const S, R, T, A = signalbox.ScopeSubmit, signalbox.ScopeRead, signalbox.ScopeTool, signalbox.ScopeAgent
	type made = identity.NewToken
	for _, c := range []struct {
		name   string
		tokens []made
		scopes []signalbox.Scope
		agents []string
	}{
		{"no token", nil, []signalbox.Scope{R, S, T}, nil},
		{"one by default", []made{{}}, []signalbox.Scope{R, S, T}, nil},
		{"more rights", []made{{Scopes: []signalbox.Scope{R, S, signalbox.ScopeCancel, signalbox.ScopeRelease}}}, []signalbox.Scope{R, S, signalbox.ScopeCancel, signalbox.ScopeRelease}, nil},
		{"what outlives a run", []made{{Scopes: []signalbox.Scope{S, A, signalbox.ScopeSchedule, signalbox.ScopeTerminal}}}, []signalbox.Scope{S}, nil},
		{"only to register", []made{{Scopes: []signalbox.Scope{A}}}, nil, nil},
		{"limited", []made{{Agents: []string{"b"}}}, []signalbox.Scope{R, S, T}, []string{"b", "me"}},
		{"two, one limited", []made{{Agents: []string{"b"}}, {Scopes: []signalbox.Scope{S, A}}}, []signalbox.Scope{S}, []string{"b", "me"}},
		{"one expired", []made{{}, {Scopes: []signalbox.Scope{A}, Expires: time.Second}}, []signalbox.Scope{R, S, T}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newRig(t)
			for i, n := range c.tokens {
				n.Name, n.Agent = "t"+string(rune('a'+i)), "me"
				k.token(n)
			}
			k.now = k.now.Add(time.Minute)
			who, err := k.FromRun("me", "queue-x", "run-x")
			if err != nil || who.Kind != signalbox.PrincipalAgent || who.ID != "me" || who.Run != "queue-x" {
				t.Fatalf("%+v, %v", who, err)
			}
			slices.Sort(who.Agents)
			if !slices.Equal(who.Scopes, c.scopes) || !slices.Equal(who.Agents, c.agents) {
				t.Errorf("scopes %v, agents %v", who.Scopes, who.Agents)
			}
			if !k.InForce(who) {
				t.Error("it is not in force")
			}
		})
	}
}

// An agent whose tokens were all revoked leaves its runs no rights.
func TestRunsOfARevokedAgentHaveNoRights(t *testing.T) {
	k := newRig(t)
	k.admin()
	made, _ := k.token(identity.NewToken{Name: "t", Agent: "me"})
	before, err := k.FromRun("me", "queue-x", "run-x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.RevokeToken(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if who, err := k.FromRun("me", "queue-x", "run-x"); signalbox.CodeOf(err) != signalbox.CodeUnauthorized {
		t.Errorf("%+v, %v", who, err)
	}
	if k.InForce(before) {
		t.Error("what was proved before is in force still")
	}
}
