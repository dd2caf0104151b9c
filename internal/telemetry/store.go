package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// syncs are the buckets of what a store does, 0.1 ms to 5 s: a commit waits for
// the disk.
var syncs = []float64{0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5}

// TimedStore is a store whose verbs are timed: those that every task goes
// through, and the two reads that show the whole.
type TimedStore struct {
	store.Store
	took     *prometheus.HistogramVec
	failures *prometheus.CounterVec

	submit, claim, apply, renew, counts, snapshot verb
}

// verb are the handles of one, bound in advance.
type verb struct {
	took     prometheus.Observer
	failures prometheus.Counter
}

// TimeStore times a store. Metrics.Store shows the times.
func TimeStore(s store.Store) *TimedStore {
	t := &TimedStore{
		Store:    s,
		took:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "signalbox_store_duration_seconds", Help: "Time of the store's verbs, with the wait for the disk: submit, claim, apply, renew, counts, snapshot.", Buckets: syncs}, []string{"verb"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_store_failures_total", Help: "Verbs that the store could not carry out, such as for want of room on the disk."}, []string{"verb"}),
	}
	for name, v := range map[string]*verb{
		"submit": &t.submit, "claim": &t.claim, "apply": &t.apply, "renew": &t.renew, "counts": &t.counts, "snapshot": &t.snapshot,
	} {
		*v = verb{t.took.WithLabelValues(name), t.failures.WithLabelValues(name)}
	}
	return t
}

// Store adds the times of a store. Call it once.
func (m *Metrics) Store(s *TimedStore) { m.registry.MustRegister(s.took, s.failures) }

// done takes note of a verb. One whose caller went away has not failed.
func (v *verb) done(ctx context.Context, begin time.Time, err error) {
	v.took.Observe(time.Since(begin).Seconds())
	if err == nil || ctx.Err() != nil {
		return
	}
	switch signalbox.CodeOf(err) {
	case signalbox.CodeStoreFailed, signalbox.CodeStoreFull, signalbox.CodeStoreCorrupt:
		v.failures.Inc()
	}
}

// Submit implements store.Writer.
func (t *TimedStore) Submit(ctx context.Context, s store.Submission) (store.Submitted, error) {
	begin := time.Now()
	got, err := t.Store.Submit(ctx, s)
	t.submit.done(ctx, begin, err)
	return got, err
}

// Claim implements store.Writer.
func (t *TimedStore) Claim(ctx context.Context, c store.ClaimRequest) (store.Claimed, error) {
	begin := time.Now()
	got, err := t.Store.Claim(ctx, c)
	t.claim.done(ctx, begin, err)
	return got, err
}

// Apply implements store.Writer.
func (t *TimedStore) Apply(ctx context.Context, change signalbox.Change, now time.Time) (signalbox.Task, error) {
	begin := time.Now()
	got, err := t.Store.Apply(ctx, change, now)
	t.apply.done(ctx, begin, err)
	return got, err
}

// Renew implements store.Writer.
func (t *TimedStore) Renew(ctx context.Context, leases []store.Lease) (int, error) {
	begin := time.Now()
	n, err := t.Store.Renew(ctx, leases)
	t.renew.done(ctx, begin, err)
	return n, err
}

// Counts implements store.Reader.
func (t *TimedStore) Counts(ctx context.Context) (store.Counts, error) {
	begin := time.Now()
	got, err := t.Store.Counts(ctx)
	t.counts.done(ctx, begin, err)
	return got, err
}

// Snapshot implements store.Reader.
func (t *TimedStore) Snapshot(ctx context.Context, heads int) (store.Snapshot, error) {
	begin := time.Now()
	got, err := t.Store.Snapshot(ctx, heads)
	t.snapshot.done(ctx, begin, err)
	return got, err
}
