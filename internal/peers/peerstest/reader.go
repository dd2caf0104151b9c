package peerstest

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Reads used by directors. They fail while the store is away.

// Task implements store.Reader.
func (v *View) Task(ctx context.Context, id string) (answer signalbox.Task, err error) {
	if err := v.gate(ctx); err != nil {
		return answer, err
	}
	return v.Store.Task(ctx, id)
}

// Whole implements store.Reader.
func (v *View) Whole(ctx context.Context, id string) (answer store.Whole, err error) {
	if err := v.gate(ctx); err != nil {
		return answer, err
	}
	return v.Store.Whole(ctx, id)
}

// Request implements store.Reader.
func (v *View) Request(ctx context.Context, id string) (answer signalbox.Request, err error) {
	if err := v.gate(ctx); err != nil {
		return answer, err
	}
	return v.Store.Request(ctx, id)
}

// Counts implements store.Reader.
func (v *View) Counts(ctx context.Context) (answer store.Counts, err error) {
	if err := v.gate(ctx); err != nil {
		return answer, err
	}
	return v.Store.Counts(ctx)
}

// Lengths implements store.Reader.
func (v *View) Lengths(ctx context.Context, queues ...string) (answer []int, err error) {
	if err := v.gate(ctx); err != nil {
		return answer, err
	}
	return v.Store.Lengths(ctx, queues...)
}

// InFlight implements store.Reader.
func (v *View) InFlight(ctx context.Context) (answer []signalbox.Task, err error) {
	if err := v.gate(ctx); err != nil {
		return answer, err
	}
	return v.Store.InFlight(ctx)
}

// Agents implements store.Reader.
func (v *View) Agents(ctx context.Context) (answer []signalbox.Agent, err error) {
	if err := v.gate(ctx); err != nil {
		return answer, err
	}
	return v.Store.Agents(ctx)
}

// Slots implements store.Reader.
func (v *View) Slots(ctx context.Context) (answer []signalbox.Slot, err error) {
	if err := v.gate(ctx); err != nil {
		return answer, err
	}
	return v.Store.Slots(ctx)
}

// Directors implements store.Reader.
func (v *View) Directors(ctx context.Context) (answer []store.Director, err error) {
	if err := v.gate(ctx); err != nil {
		return answer, err
	}
	return v.Store.Directors(ctx)
}

// Holders implements store.Reader.
func (v *View) Holders(ctx context.Context) (answer map[string]string, err error) {
	if err := v.gate(ctx); err != nil {
		return answer, err
	}
	return v.Store.Holders(ctx)
}
