package storetest

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/invariant"
)

// Invariants checks what must hold in every store between two verbs. The
// checks are a package of their own, so that a program can run them without
// the test framework.
func Invariants(ctx context.Context, r store.Reader) error { return invariant.Check(ctx, r) }
