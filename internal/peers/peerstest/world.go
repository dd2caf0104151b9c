// Package peerstest lets several directors of a test share one store, such as the memory store. Each has its
// own view, as each process has its own client of a server.
package peerstest

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// World is a store with views of it.
type World struct {
	mu    sync.Mutex // one verb at a time, so that the author of new entries is known
	store store.Store
	views []*View
	skew  time.Duration // of the server's clock
	lost  int64         // generation
}

// New returns a world around a store.
func New(s store.Store) *World { return &World{store: s, lost: 1} }

// JumpClock sets the server's clock forward, or back.
func (w *World) JumpClock(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.skew += by
}

// Forget starts a new generation.
func (w *World) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost++
}

// View returns the store as a further process sees it.
func (w *World) View() *View {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := &View{Store: w.store, world: w, own: map[int64]bool{}, changed: make(chan struct{}, 1)}
	w.views = append(w.views, v)
	return v
}

// View is the store.Shared of one process. Closing it does not affect others.
type View struct {
	store.Store
	world   *World
	changed chan struct{}

	mu   sync.Mutex
	own  map[int64]bool // entries that this process wrote
	away bool
	hung chan struct{} // not nil: verbs wait until it is closed
}

var _ store.Shared = (*View)(nil)

// Away makes the store unreachable for this process, or reachable again.
func (v *View) Away(away bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.away = away
}

// Hang makes the verbs of this process wait until the returned function is called, as if the process were
// paused.
func (v *View) Hang() (goOn func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	hung := make(chan struct{})
	v.hung = hung
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.hung == hung {
			v.hung = nil
			close(hung)
		}
	}
}

// gate returns an error if the store is unreachable.
func (v *View) gate(ctx context.Context) error {
	for {
		v.mu.Lock()
		away, hung := v.away, v.hung
		v.mu.Unlock()
		switch {
		case away:
			return signalbox.Errorf(signalbox.CodeUnavailable, "the store cannot be reached")
		case hung == nil:
			return nil
		}
		select {
		case <-hung:
		case <-ctx.Done():
			return &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "no answer from the store", Err: ctx.Err()}
		}
	}
}

// verb runs a verb of this process, and signals the others.
func verb[T any](ctx context.Context, v *View, f func(store.Store) (T, error)) (T, error) {
	if err := v.gate(ctx); err != nil {
		var none T
		return none, err
	}
	v.world.mu.Lock()
	defer v.world.mu.Unlock()
	reading := context.WithoutCancel(ctx)
	_, before, _ := v.Store.JournalRange(reading)
	answer, err := f(v.Store)
	_, after, _ := v.Store.JournalRange(reading)
	v.mu.Lock()
	for seq := before + 1; seq <= after; seq++ {
		v.own[seq] = true
	}
	v.mu.Unlock()
	for _, other := range v.world.views {
		if other != v {
			select {
			case other.changed <- struct{}{}:
			default:
			}
		}
	}
	return answer, err
}

// Time is the server's time.
func (v *View) Time(ctx context.Context) (time.Time, error) {
	if err := v.gate(ctx); err != nil {
		return time.Time{}, err
	}
	v.world.mu.Lock()
	defer v.world.mu.Unlock()
	return time.Now().Add(v.world.skew).UTC().Truncate(time.Millisecond), nil
}

// Changed is signalled after verbs of others.
func (v *View) Changed() <-chan struct{} { return v.changed }

// Others lists entries of others.
func (v *View) Others(ctx context.Context, after int64, limit int) (entries []signalbox.Entry, through int64, err error) {
	if err := v.gate(ctx); err != nil {
		return nil, after, err
	}
	all, err := v.Store.Journal(ctx, after, limit)
	if err != nil {
		return nil, after, err
	}
	v.world.mu.Lock() // the author of an entry is known after its verb
	defer v.world.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	through = after
	for _, e := range all {
		if through = e.Seq; !v.own[e.Seq] {
			entries = append(entries, e)
		}
	}
	return entries, through, nil
}

// Tasks returns rows.
func (v *View) Tasks(ctx context.Context, ids []string) (there []signalbox.Task, err error) {
	if err := v.gate(ctx); err != nil {
		return nil, err
	}
	return v.Store.Tasks(ctx, ids)
}

// Generation is the generation of the world.
func (v *View) Generation() int64 {
	v.world.mu.Lock()
	defer v.world.mu.Unlock()
	return v.world.lost
}

// Close closes only this view.
func (v *View) Close() error { return nil }
