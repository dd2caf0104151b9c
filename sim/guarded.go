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

// guarded is the store of a director, looked at by the ledger.
type guarded struct {
	*failpoint.Store
	d     *director
	under store.Store
}

// Claim implements store.Writer: what is given away is what should be.
func (g *guarded) Claim(ctx context.Context, r store.ClaimRequest) (got store.Claimed, err error) {
	err = g.d.write(ctx, "Claim "+r.Agent, func(ctx context.Context) error {
		best, free := g.d.w.best(r)
		got, err = g.under.Claim(ctx, r)
		if err == nil {
			g.d.w.claimed(r, got, best, free)
		}
		return err
	})
	if err != nil {
		got = store.Claimed{}
	}
	return got, err
}

// Apply implements store.Writer. Now and then the process stands still just
// before: what it was about to say is old when it goes on.
func (g *guarded) Apply(ctx context.Context, c signalbox.Change, now time.Time) (got signalbox.Task, err error) {
	if w := g.d.w; !g.d.isDead() && w.town != nil && w.faulty && w.one(w.halts) {
		w.stop(g.d, &c.Task)
	}
	err = g.d.write(ctx, fmt.Sprintf("Apply %s %s/%d", c.Entry.Kind, c.Task.ID, c.Task.Fence), func(ctx context.Context) error {
		got, err = g.under.Apply(ctx, c, now)
		if err == nil {
			g.d.w.spoken(&c)
			g.d.w.applied(&c, &got)
		} else if t, unread := g.under.Task(ctx, c.Task.ID); unread == nil && t.Fence != c.Task.Fence {
			g.d.w.fault("word of a void execution")
		}
		return err
	})
	return got, err
}

// Submit implements store.Writer.
func (g *guarded) Submit(ctx context.Context, s store.Submission) (got store.Submitted, err error) {
	err = g.d.write(ctx, "Submit", func(ctx context.Context) error {
		before, counting := g.under.Counts(ctx)
		got, err = g.under.Submit(ctx, s)
		if err == nil && counting == nil {
			g.d.w.submitted(&s, &got, &before)
		}
		return err
	})
	return got, err
}

// write stands around the verbs of the store that change something: they can
// fail, and the director can die before or after each.
func (d *director) write(ctx context.Context, verb string, do func(context.Context) error) error {
	w := d.w
	defer w.scheduler.hand()
	w.scheduler.turn("", verb, d.isDead)
	switch {
	case d.isDead():
		return errGone
	case !w.faulty || !w.one(30):
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
	w.excuse()
	w.fault("store fails")
	w.note("store fails", verb)
	return signalbox.Errorf(signalbox.CodeStoreFailed, "disk full")
}

// crash kills a director at a verb of its store.
func (w *world) crash(d *director, when, verb string) {
	sort, _, _ := strings.Cut(verb, " ")
	w.fault("crash " + when + " " + sort)
	w.note("crash", d.name(), when, verb)
	w.kill(d)
}

func (d *director) read(ctx context.Context, verb string, do func(context.Context) error) error {
	defer d.w.scheduler.hand()
	switch {
	case d.isDead():
		return errGone
	case verb == "Position": // some stores tell it with the submit, and are not asked
	case d.w.faulty && d.ready && d.w.one(300):
		d.w.excuse()
		d.w.fault("read fails")
		return signalbox.Errorf(signalbox.CodeUnavailable, "the store cannot be read")
	}
	return do(context.WithoutCancel(ctx))
}
