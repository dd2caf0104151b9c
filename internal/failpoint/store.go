package failpoint

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// Around stands around one verb of a store. It calls do, once, or does not and
// returns an error instead; what it returns is what the caller of the verb gets
// for its error.
type Around func(ctx context.Context, verb string, do func(context.Context) error) error

// Store is a store with something around its verbs.
type Store struct {
	store.Store
	write, read Around
}

var _ store.Store = (*Store)(nil)

// Wrap returns s with write around each verb that changes something, and read,
// unless it is nil, around each that does not.
func Wrap(s store.Store, write, read Around) *Store {
	if read == nil {
		read = func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) }
	}
	return &Store{Store: s, write: write, read: read}
}
