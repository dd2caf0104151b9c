package pack

import (
	"github.com/signalbox-ai/signalbox"
)

// Token packs all of a token but its id.
func Token(t *signalbox.Token) []byte {
	p := New(64)
	p.Bool(t.Login)
	p.Texts(t.Name, string(t.Hash), string(t.Kind), t.Principal, t.CreatedBy)
	list(&p, t.Scopes)
	list(&p, t.Agents)
	p.Times(t.CreatedAt, t.ExpiresAt, t.RevokedAt)
	return p.b
}

// ReadToken reads what Token wrote.
func ReadToken(id string, body []byte) (signalbox.Token, error) {
	d := Read(body)
	t := signalbox.Token{ID: id, Login: d.Bool(), Name: d.Text()}
	t.Hash = append(t.Hash, d.Bytes()...)
	t.Kind, t.Principal, t.CreatedBy = signalbox.PrincipalKind(d.Text()), d.Text(), d.Text()
	t.Scopes, t.Agents = listOf[signalbox.Scope](&d), listOf[string](&d)
	t.CreatedAt, t.ExpiresAt, t.RevokedAt = d.Time(), d.Time(), d.Time()
	if d.Bad {
		return t, signalbox.Errorf(signalbox.CodeStoreCorrupt, "token %q cannot be read: its row is damaged; revoke it and make a new one", id)
	}
	return t, nil
}

// User packs all of a user but the id.
func User(u *signalbox.User) []byte {
	p := New(64)
	p.Texts(u.Email, u.Password, string(u.Role))
	list(&p, u.Agents)
	p.Times(u.CreatedAt)
	p.Bool(u.Disabled)
	return p.b
}

// ReadUser reads what User wrote.
func ReadUser(id string, body []byte) (signalbox.User, error) {
	d := Read(body)
	u := signalbox.User{ID: id, Email: d.Text(), Password: d.Text(), Role: signalbox.Role(d.Text())}
	u.Agents = listOf[string](&d)
	u.CreatedAt = d.Time()
	u.Disabled = d.Bool()
	if d.Bad {
		return u, signalbox.Errorf(signalbox.CodeStoreCorrupt, "user %q cannot be read: the row is damaged; delete the user and make it anew", id)
	}
	return u, nil
}
