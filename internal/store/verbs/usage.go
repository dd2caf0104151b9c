package verbs

import (
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// usageRow is the row that a run's figures are added to.
type usageRow struct {
	held signalbox.Usage // only its key is set for a new row
	new  bool
	bad  []*docRow
}

// usageRow returns the row that the usage of a run is added to; missing is set if it is not loaded.
func (x *workingSet) usageRow(u *signalbox.Usage) usageRow {
	at := x.usageAt(u.UsageKey)
	if !at.new || at.bad != nil {
		return at
	}
	rows := x.usageRows(u.Day)
	if !x.knowsCounter(rows) {
		x.wantCounter(rows)
		x.missing = true
		return at
	}
	if key := u.Fold(rows.n); key != u.UsageKey {
		return x.usageAt(key)
	}
	return at
}

func (x *workingSet) usageAt(k signalbox.UsageKey) usageRow {
	r := x.doc(kindUsage, pack.UsageID(&k))
	held, err := decodeDoc(r, pack.ReadUsage)
	if err != nil {
		return usageRow{held: signalbox.Usage{UsageKey: k}, bad: []*docRow{r}}
	}
	if held == nil {
		return usageRow{held: signalbox.Usage{UsageKey: k}, new: true}
	}
	return usageRow{held: *held}
}

// usageRows counts the rows of a day.
func (x *workingSet) usageRows(day signalbox.Day) *counter {
	return x.counter(kindUsageRows, day.String())
}

// use adds figures to the row at. A damaged row is quarantined first.
func (x *workingSet) use(at usageRow, u signalbox.Usage) {
	x.quarantine(at.bad)
	if at.new {
		x.addCounter(x.usageRows(u.Day), 1)
	}
	sum := at.held.Plus(u)
	x.put(kindUsage, pack.UsageID(&sum.UsageKey), int64(sum.Day), pack.Usage(&sum), &sum)
}

type restoreUsage struct{ row signalbox.Usage }

// RestoreUsage stores a row of usage from another store.
func (s *Store) RestoreUsage(ctx context.Context, u signalbox.Usage) error {
	return s.do(ctx, &restoreUsage{u}, 0)
}

func (v *restoreUsage) run(x *workingSet) error {
	at := x.usageAt(v.row.UsageKey)
	switch {
	case x.missing:
		return errMissing
	case !at.new && at.bad == nil:
		return store.UsageStored(&v.row)
	}
	x.use(at, v.row)
	return nil
}

// usagePage is how many rows of usage are read, or pruned, at once.
const usagePage = 1000

// Usage lists rows of usage.
func (s *Store) Usage(ctx context.Context, q store.UsageQuery) (list []signalbox.Usage, err error) {
	after := &Doc{DocKey: DocKey{Kind: kindUsage}, Sort: int64(q.From)}
	for {
		docs, err := s.page(ctx, Page{Kind: kindUsage, BySort: true, After: after, Limit: usagePage})
		if err != nil {
			return nil, err
		}
		for _, u := range readable(&s.quarantine, docs, pack.ReadUsage, nil) {
			if q.Matches(&u) {
				list = append(list, u)
			}
		}
		if len(docs) < usagePage || docs[len(docs)-1].Sort > int64(q.To) {
			slices.SortFunc(list, store.ByUsageKey)
			return list, nil
		}
		after = &docs[len(docs)-1]
	}
}

// pruneUsage deletes the rows of days before.
type pruneUsage struct{ before signalbox.Day }

func (v *pruneUsage) run(x *workingSet) error {
	if !x.results.has {
		if !x.known {
			return errMissing
		}
		x.want.any = true
		x.want.Pages = append(x.want.Pages, Page{Kind: kindUsage, BySort: true, Limit: usagePage})
		return errMissing
	}
	for i := range x.results.page {
		d := &x.results.page[i]
		if d.Sort >= int64(v.before) {
			break
		}
		x.drop(kindUsage, d.ID)
		x.addCounter(x.usageRows(signalbox.Day(d.Sort)), -1)
	}
	return nil
}
