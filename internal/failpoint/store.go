package failpoint

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// Around wraps one verb of a store. It either calls do, once, or returns an error instead of calling it. Its
// error is returned to the caller of the verb.
type Around func(ctx context.Context, verb string, do func(context.Context) error) error

// Store is a store with wrapped verbs.
type Store struct {
	store.Store
	write, read Around
}

var _ store.Store = (*Store)(nil)

// Wrap returns s with write around each verb that changes something and, unless it is nil, read around each
// that does not.
func Wrap(s store.Store, write, read Around) *Store {
	if read == nil {
		read = func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) }
	}
	return &Store{Store: s, write: write, read: read}
}
