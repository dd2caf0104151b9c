package sqlite

import (
	"time"

	"github.com/signalbox-ai/signalbox"
)

// packExtra packs what is fixed at submit and few tasks have; nil for the
// others.
func packExtra(t *signalbox.Task) []byte {
	if t.Mode == "" && t.Owner == "" && t.OwnerEmail == "" && t.Depth == 0 && !t.Waits && t.QueuedAs == 0 && t.Tool == "" {
		return nil
	}
	p := packer{make([]byte, 0, 16+len(t.Mode)+len(t.Owner)+len(t.OwnerEmail))}
	p.b = append(p.b, packedVersion)
	p.texts(string(t.Mode), t.Owner, t.OwnerEmail)
	p.int(int64(t.Depth))
	p.bool(t.Waits)
	p.int(int64(t.QueuedAs))
	if t.Tool != "" { // rows of before have none
		p.texts(t.Tool)
	}
	return p.b
}

func unpackExtra(t *signalbox.Task, extra []byte) error {
	if len(extra) == 0 {
		return nil
	}
	d := decoder{b: extra[1:], bad: extra[0] != packedVersion}
	t.Mode, t.Owner, t.OwnerEmail = signalbox.Mode(d.text()), d.text(), d.text()
	t.Depth = int(d.int())
	t.Waits = d.bool()
	t.QueuedAs = int(d.int())
	if len(d.b) > 0 {
		t.Tool = d.text()
	}
	if d.bad {
		return damaged("row")
	}
	return nil
}

func packToken(t *signalbox.Token) []byte {
	p := packer{[]byte{packedVersion}}
	p.bool(t.Login)
	p.texts(t.Name, string(t.Hash), string(t.Kind), t.Principal, t.CreatedBy)
	list(&p, t.Scopes)
	list(&p, t.Agents)
	p.times(t.CreatedAt, t.ExpiresAt, t.RevokedAt)
	return p.b
}

func unpackToken(id string, body []byte) (signalbox.Token, error) {
	d := unpacking(body)
	t := signalbox.Token{ID: id, Login: d.bool(), Name: d.text()}
	t.Hash = append(t.Hash, d.bytes()...)
	t.Kind, t.Principal, t.CreatedBy = signalbox.PrincipalKind(d.text()), d.text(), d.text()
	t.Scopes, t.Agents = listOf[signalbox.Scope](&d), listOf[string](&d)
	t.CreatedAt, t.ExpiresAt, t.RevokedAt = d.time(), d.time(), d.time()
	if d.bad {
		return t, signalbox.Errorf(signalbox.CodeStoreCorrupt, "token %q cannot be read: its row is damaged; revoke it and make a new one", id)
	}
	return t, nil
}

func packUser(u *signalbox.User) []byte {
	p := packer{[]byte{packedVersion}}
	p.texts(u.Email, u.Password, string(u.Role))
	list(&p, u.Agents)
	p.times(u.CreatedAt)
	p.bool(u.Disabled)
	return p.b
}

func unpackUser(id string, body []byte) (signalbox.User, error) {
	d := unpacking(body)
	u := signalbox.User{ID: id, Email: d.text(), Password: d.text(), Role: signalbox.Role(d.text())}
	u.Agents = listOf[string](&d)
	u.CreatedAt = d.time()
	u.Disabled = d.bool()
	if d.bad {
		return u, signalbox.Errorf(signalbox.CodeStoreCorrupt, "user %q cannot be read: the row is damaged; delete the user and make it anew", id)
	}
	return u, nil
}

// unpacking begins to read a body that is never empty.
func unpacking(body []byte) decoder {
	if len(body) == 0 {
		return decoder{bad: true}
	}
	return decoder{b: body[1:], bad: body[0] != packedVersion}
}

// list packs a list of strings; one that is nil is told from an empty one.
func list[T ~string](p *packer, values []T) {
	n := int64(len(values)) + 1
	if values == nil {
		n = 0
	}
	p.int(n)
	for _, v := range values {
		p.texts(string(v))
	}
}

func listOf[T ~string](d *decoder) []T {
	n := d.int()
	if n <= 0 || n-1 > int64(len(d.b)) { // each value has at least one byte
		d.bad = d.bad || n != 0
		return nil
	}
	values := make([]T, 0, n-1)
	for range n - 1 {
		values = append(values, T(d.text()))
	}
	return values
}

// times packs times to the millisecond; a zero one is told from all others.
func (p *packer) times(list ...time.Time) {
	for _, t := range list {
		p.bool(!t.IsZero())
		if !t.IsZero() {
			p.int(t.UnixMilli())
		}
	}
}

func (d *decoder) time() time.Time {
	if !d.bool() {
		return time.Time{}
	}
	return time.UnixMilli(d.int()).UTC()
}
