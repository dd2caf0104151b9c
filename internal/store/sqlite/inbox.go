package sqlite

import "context"

// verb runs a call of a store.Writer in the writer's transaction.
type verb func(w *writer) error

// do hands a verb to the writer and waits until it is durable. A caller whose
// context ends before the writer takes the verb leaves nothing behind; after
// that it is told what became of it all the same.
func (s *Store) do(ctx context.Context, size int, run verb) error {
	return s.inbox.Do(ctx, run, size, false)
}
