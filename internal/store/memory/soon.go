package memory

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

var errSoon = signalbox.Errorf(signalbox.CodeInternal, "being built")

func (s *Store) PutSession(context.Context, signalbox.Session, signalbox.Entry) error { return errSoon }
func (s *Store) KeepStale(context.Context, string, signalbox.Stale) error             { return errSoon }
func (s *Store) PutToken(context.Context, signalbox.Token) error                      { return errSoon }
func (s *Store) DeleteToken(context.Context, string) (bool, error)                    { return false, errSoon }
func (s *Store) PutUser(context.Context, signalbox.User) error                        { return errSoon }
func (s *Store) DeleteUser(context.Context, string) (bool, error)                     { return false, errSoon }
func (s *Store) AppendAudit(context.Context, signalbox.Audit) (signalbox.Audit, error) {
	return signalbox.Audit{}, errSoon
}
func (s *Store) Children(context.Context, string, int) ([]signalbox.Task, error) { return nil, errSoon }
func (s *Store) Stales(context.Context, string) ([]signalbox.Stale, error)       { return nil, nil }
func (s *Store) Tokens(context.Context) ([]signalbox.Token, error)               { return nil, nil }
func (s *Store) Users(context.Context) ([]signalbox.User, error)                 { return nil, nil }
func (s *Store) AuditLog(context.Context, store.AuditQuery) ([]signalbox.Audit, error) {
	return nil, errSoon
}
func (s *Store) AuditHead(context.Context) (signalbox.Audit, error) {
	return signalbox.Audit{}, errSoon
}
func (s *Store) Sessions(context.Context, store.SessionQuery) (store.SessionPage, error) {
	return store.SessionPage{}, nil
}
