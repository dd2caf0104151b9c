package inside

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// staticService is the owner of what the token of the configuration makes.
const staticService = "static"

// rightsFor is how long rights that were read are gone by: a schedule of an
// owner who lost them fires no later than that.
const rightsFor = 5 * time.Second

// owners finds the rights of those who own schedules: their tasks may do what
// the owner may do now, not what was allowed when the schedule was made.
type owners struct {
	engine *engine.Engine

	mu     sync.Mutex
	readAt time.Time // by the real time; zero: never
	users  map[string]signalbox.User
	tokens map[string]signalbox.Token // in force, by Principal.Key
}

// find returns the owner of a schedule, or CodeForbidden for one who is no
// longer there. Nobody in particular has no limits, as a local caller.
func (o *owners) find(ctx context.Context, s *signalbox.Schedule) (signalbox.Principal, error) {
	if s.Owner == "" {
		return signalbox.Principal{}, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.read(ctx); err != nil {
		return signalbox.Principal{}, err
	}
	if id, ok := signalbox.OwnerUser(s.Owner); ok {
		u, known := o.users[id]
		if !known || u.Disabled {
			return signalbox.Principal{}, gone(s)
		}
		return signalbox.Principal{Kind: signalbox.PrincipalUser, ID: id, Email: u.Email, Scopes: u.Role.Scopes(), Agents: u.Agents}, nil
	}
	t, known := o.tokens[s.Owner]
	switch {
	case known:
		return signalbox.Principal{Kind: t.Kind, ID: t.Principal, Scopes: t.Scopes, Agents: t.Agents}, nil
	case s.Owner == string(signalbox.PrincipalService)+":"+staticService:
		return signalbox.Principal{Kind: signalbox.PrincipalService, ID: staticService, Scopes: signalbox.Scopes()}, nil
	}
	return signalbox.Principal{}, gone(s)
}

func gone(s *signalbox.Schedule) error {
	return signalbox.Errorf(signalbox.CodeForbidden, "the owner of schedule %s, %s, is no longer there or was disabled: an admin can make the schedule anew", s.Name, s.Owner)
}

func (o *owners) read(ctx context.Context) error {
	if !o.readAt.IsZero() && time.Since(o.readAt) < rightsFor {
		return nil
	}
	users, err := o.engine.Read().Users(ctx)
	if err != nil {
		return err
	}
	tokens, err := o.engine.Read().Tokens(ctx)
	if err != nil {
		return err
	}
	o.users, o.tokens = map[string]signalbox.User{}, map[string]signalbox.Token{}
	for _, u := range users {
		o.users[u.ID] = u
	}
	now := o.engine.Now()
	for _, t := range tokens {
		if !t.RevokedAt.IsZero() || (!t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt)) {
			continue
		}
		key := signalbox.Principal{Kind: t.Kind, ID: t.Principal}.Key()
		if known, two := o.tokens[key]; two {
			t = wider(known, t)
		}
		o.tokens[key] = t
	}
	o.readAt = time.Now()
	return nil
}

// wider returns the one of two tokens of a principal that is limited less.
func wider(a, b signalbox.Token) signalbox.Token {
	if len(b.Agents) == 0 || (len(a.Agents) > 0 && len(b.Agents) > len(a.Agents)) {
		return b
	}
	return a
}
