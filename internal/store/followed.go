package store

import "context"

type followedKey struct{}

// Followed says of the verb that is called with the context that another one
// follows, of whoever queued wakes: a store that commits verbs together calls it
// as soon as the verb waits for its turn, and gives the other one a moment to
// share the commit. The other one runs behind it, and neither is answered before
// both are durable. Other stores do not call it.
func Followed(ctx context.Context, queued func()) context.Context {
	return context.WithValue(ctx, followedKey{}, queued)
}

// Follower is what Followed was given, nil for nothing.
func Follower(ctx context.Context) (queued func()) {
	queued, _ = ctx.Value(followedKey{}).(func())
	return queued
}
