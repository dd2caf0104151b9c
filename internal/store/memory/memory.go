package memory

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Options are the settings of a store.
type Options struct {
	// ID identifies the store's data; "" is "memory".
	ID string
}

// Store keeps everything in memory. Make one with New.
type Store = verbs.Store

// New returns an empty store.
func New(o Options) *Store {
	s, err := verbs.New(context.Background(), NewBackend(o), verbs.Options{Direct: true})
	if err != nil {
		panic(err) // a new backend refuses nothing
	}
	return s
}

// Info describes the store and its guarantees.
func (b *Backend) Info() store.Info {
	return store.Info{Kind: "memory", ID: b.id, Durability: "none: everything is gone when the process ends", Grade: store.GradeNone}
}

// Close does nothing.
func (b *Backend) Close() error { return nil }
