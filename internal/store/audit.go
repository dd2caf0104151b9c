package store

import (
	"context"

	"github.com/signalbox-ai/signalbox"
)

// AuditWriter changes tokens and users, and writes the audit log.
type AuditWriter interface {
	// PutToken stores a token by id, PutUser a user by id. The Delete methods report whether it existed.
	PutToken(ctx context.Context, t signalbox.Token) error
	DeleteToken(ctx context.Context, id string) (was bool, err error)
	PutUser(ctx context.Context, u signalbox.User) error
	DeleteUser(ctx context.Context, id string) (was bool, err error)

	// AppendAudit adds a row to the audit log. It sets Seq, Prev and Hash, in one step with the row. Audit
	// rows are never pruned.
	AppendAudit(ctx context.Context, a signalbox.Audit) (signalbox.Audit, error)
}

// AuditReader reads tokens, users and the audit log.
type AuditReader interface {
	// Tokens and Users list all, by id.
	Tokens(ctx context.Context) ([]signalbox.Token, error)
	Users(ctx context.Context) ([]signalbox.User, error)

	// AuditLog lists rows of the audit log.
	AuditLog(ctx context.Context, q AuditQuery) ([]signalbox.Audit, error)

	// AuditHead returns the newest row; the zero Audit if the log is empty.
	AuditHead(ctx context.Context) (signalbox.Audit, error)
}
