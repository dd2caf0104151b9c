package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/failpoint"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// checkedStore is the store of a director, with checks by the ledger.
type checkedStore struct {
	*failpoint.Store
	d     *director
	store store.Store
}

// Claim implements store.Writer and checks the claimed task.
func (g *checkedStore) Claim(ctx context.Context, r store.ClaimRequest) (got store.Claimed, err error) {
	err = g.d.write(ctx, "Claim "+r.Agent, func(ctx context.Context) error {
		want := g.d.w.expectedClaim(r)
		got, err = g.store.Claim(ctx, r)
		if err == nil {
			g.d.w.checkClaim(r, got, want)
		}
		return err
	})
	if err != nil {
		got = store.Claimed{}
	}
	return got, err
}

// Apply implements store.Writer. Sometimes the process is paused just before, so that its change is outdated.
func (g *checkedStore) Apply(ctx context.Context, c signalbox.Change, now time.Time) (got signalbox.Task, err error) {
	if w := g.d.w; !g.d.isDead() && w.town != nil && w.faultsEnabled && w.oneIn(w.pauseRate) {
		w.stop(g.d, &c.Task)
	}
	err = g.d.write(ctx, fmt.Sprintf("Apply %s %s/%d", c.Entry.Kind, c.Task.ID, c.Task.Fence), func(ctx context.Context) error {
		got, err = g.store.Apply(ctx, c, now)
		if err == nil {
			g.d.w.checkActor(&c)
			g.d.w.checkChange(&c, &got)
		} else if t, unread := g.store.Task(ctx, c.Task.ID); unread == nil && t.Fence != c.Task.Fence {
			g.d.w.fault("word of a void execution")
		}
		return err
	})
	return got, err
}

// Submit implements store.Writer.
func (g *checkedStore) Submit(ctx context.Context, s store.Submission) (got store.Submitted, err error) {
	err = g.d.write(ctx, "Submit", func(ctx context.Context) error {
		before, counting := g.store.Counts(ctx)
		got, err = g.store.Submit(ctx, s)
		if err == nil && counting == nil {
			g.d.w.checkSubmit(&s, &got, &before)
		}
		return err
	})
	return got, err
}

// write wraps the store's writes: they can fail, and the director can die before or after each.
func (d *director) write(ctx context.Context, verb string, do func(context.Context) error) error {
	w := d.w
	defer w.scheduler.publish()
	w.scheduler.turn("", verb, d.isDead)
	switch {
	case d.isDead():
		return errGone
	case !w.faultsEnabled || !w.oneIn(30):
		return do(context.WithoutCancel(ctx))
	}
	switch w.rng.IntN(4) {
	case 0:
		w.crash(d, "before", verb)
		return errGone
	case 1:
		err := do(context.WithoutCancel(ctx))
		w.crash(d, "after", verb)
		return errors.Join(errGone, err)
	}
	w.allowBackstop()
	w.fault("store fails")
	w.note("store fails", verb)
	return signalbox.Errorf(signalbox.CodeStoreFailed, "disk full")
}

// crash kills a director at a store operation.
func (w *world) crash(d *director, when, verb string) {
	sort, _, _ := strings.Cut(verb, " ")
	w.fault("crash " + when + " " + sort)
	w.note("crash", d.name(), when, verb)
	w.kill(d)
}

func (d *director) read(ctx context.Context, verb string, do func(context.Context) error) error {
	defer d.w.scheduler.publish()
	switch {
	case d.isDead():
		return errGone
	case verb == "Position": // some stores return it with the submit
	case d.w.faultsEnabled && d.ready && d.w.oneIn(300):
		d.w.allowBackstop()
		d.w.fault("read fails")
		return signalbox.Errorf(signalbox.CodeUnavailable, "the store cannot be read")
	}
	return do(context.WithoutCancel(ctx))
}
