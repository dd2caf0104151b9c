package sqlite

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// PutToken stores a token by id.
func (s *Store) PutToken(ctx context.Context, t signalbox.Token) error {
	return s.putBody(ctx, stTokenPut, t.ID, pack.Token(&t))
}

// PutUser stores a user by id.
func (s *Store) PutUser(ctx context.Context, u signalbox.User) error {
	return s.putBody(ctx, stUserPut, u.ID, pack.User(&u))
}

func (s *Store) putBody(ctx context.Context, st stmtID, id string, body []byte) error {
	return s.do(ctx, len(body), func(w *writer) error {
		q := w.write(st)
		return q.exact(id).bytes(body).run()
	})
}

// DeleteToken forgets a token and reports whether it was there.
func (s *Store) DeleteToken(ctx context.Context, id string) (bool, error) {
	return s.deleteBody(ctx, stTokenDelete, id)
}

// DeleteUser forgets a user and reports whether it was there.
func (s *Store) DeleteUser(ctx context.Context, id string) (bool, error) {
	return s.deleteBody(ctx, stUserDelete, id)
}

func (s *Store) deleteBody(ctx context.Context, st stmtID, id string) (was bool, err error) {
	err = s.do(ctx, 0, func(w *writer) error {
		q := w.write(st)
		q.exact(id)
		was = q.next()
		return q.end()
	})
	return was && err == nil, err
}

// Tokens lists the tokens by id.
func (s *Store) Tokens(ctx context.Context) ([]signalbox.Token, error) {
	return bodies(ctx, s, stTokensAll, pack.ReadToken)
}

// Users lists the users by id.
func (s *Store) Users(ctx context.Context) ([]signalbox.User, error) {
	return bodies(ctx, s, stUsersAll, pack.ReadUser)
}

func bodies[T any](ctx context.Context, s *Store, st stmtID, unpack func(id string, body []byte) (T, error)) (list []T, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		q := c.on(st)
		for err == nil && q.next() {
			var row T
			row, err = unpack(q.textAt(0), q.bytesAt(1))
			list = append(list, row)
		}
		if end := q.end(); end != nil {
			return end
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
