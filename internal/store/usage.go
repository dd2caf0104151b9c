package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
)

// UsageWriter changes the usage of runs. Apply and KeepStale add to it, too, in the step that stores a run's
// report.
type UsageWriter interface {
	// RestoreUsage stores a row from another store, without a bound on the rows of a day. CodeConflict if a
	// row has its key; that row is unchanged.
	RestoreUsage(ctx context.Context, u signalbox.Usage) error
}

// UsageReader reads the usage of runs.
type UsageReader interface {
	// Usage lists rows by day, agent, schedule, owner and model. A row that cannot be read is omitted, and
	// logged.
	Usage(ctx context.Context, q UsageQuery) ([]signalbox.Usage, error)
}

// UsageQuery selects rows of usage. Empty names select all.
type UsageQuery struct {
	From, To signalbox.Day // both inclusive
	Agent    string
	Schedule string
	Owner    string // key or email
	Model    string
}

// Matches reports whether the query selects a row.
func (q *UsageQuery) Matches(u *signalbox.Usage) bool {
	return u.Day >= q.From && u.Day <= q.To && among(q.Agent, u.Agent) && among(q.Schedule, u.Schedule) &&
		(among(q.Owner, u.Owner) || q.Owner == u.Email) && among(q.Model, u.Model)
}

// ByUsageKey is the order of Usage.
func ByUsageKey(a, b signalbox.Usage) int {
	return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Schedule, b.Schedule),
		cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Model, b.Model))
}

// UsageStored is the error for a row whose key exists already.
func UsageStored(u *signalbox.Usage) error {
	return signalbox.Errorf(signalbox.CodeConflict, "there is usage of %s for agent %q, schedule %q, owner %q and model %q already: it is unchanged",
		u.Day, u.Agent, u.Schedule, u.Owner, u.Model)
}

// AddStale adds the final report of a void execution, by its fence, and returns what that adds to the usage:
// no Spent if the report is not kept because newer ones are.
func AddStale(list []signalbox.Stale, t *signalbox.Task, said signalbox.Stale) ([]signalbox.Stale, signalbox.Usage) {
	n, again := slices.BinarySearchFunc(list, said, func(a, b signalbox.Stale) int { return cmp.Compare(a.Fence, b.Fence) })
	if again {
		used := said.Used(t, &list[n])
		list[n] = said
		return list, used
	}
	if n == 0 && len(list) >= signalbox.MaxStale {
		return list, signalbox.Usage{}
	}
	list = slices.Insert(list, n, said)
	return list[max(0, len(list)-signalbox.MaxStale):], said.Used(t, nil)
}
