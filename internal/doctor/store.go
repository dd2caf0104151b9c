package doctor

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// pause is what lies between two looks at rows that move.
const pause = 100 * time.Millisecond

// looks is how often something must be seen wrong before it is said. What waits
// and runs is read at one moment, but agents, the ended, the journal and the
// audit log are not: what moves between two reads looks wrong for a moment, and
// not twice in the same way.
const looks = 3

// Store checks those invariants of the design (§4) that can be seen in a store
// that is in use: view.go has them one by one. It reads what waits and runs, and
// the newest of what has ended, so a look does not cost more with each task that
// ever was. now is the clock of the store's leases; nil where nobody renews them
// because no director runs.
func Store(r store.Reader, now func() time.Time) Look {
	return func(ctx context.Context, _ bool) []api.Check {
		found, err := seenEachTime(ctx, r, now)
		switch {
		case err != nil && ctx.Err() != nil:
			return []api.Check{failure(areaStore, "see whether the disk is slow or the machine busy", "its rows could not be read in time")}
		case err != nil:
			return []api.Check{failure(areaStore, "see the director's log", "its rows cannot be read")}
		case len(found) == 0:
			return append(lossesOf(r), fine(areaStore, "its rows agree: slots, counts, the order and the one place of each task, ends, journal, audit log"))
		}
		const most = 10
		if more := len(found) - most; more > 0 {
			found = append(found[:most:most], failure(areaStore, keepACopy, "%d more findings in the rows", more))
		}
		return append(lossesOf(r), found...)
	}
}

// lossesOf says how often a server turned out to have lost what it had
// acknowledged. It is no failure of now, so it only warns.
func lossesOf(r store.Reader) []api.Check {
	shared, ok := r.(store.Shared)
	if !ok || shared.Generation() <= 1 {
		return nil
	}
	return []api.Check{warning(areaStore, "submit again what is missing; see docs/scaling.md for what each store promises",
		"its server has lost what it had acknowledged (generation %d): what was stored shortly before may be gone", shared.Generation())}
}

// seenEachTime returns what every one of several looks finds.
func seenEachTime(ctx context.Context, r store.Reader, now func() time.Time) ([]api.Check, error) {
	var still []api.Check
	for i := range looks {
		found, err := look(ctx, r, now)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			still = found
		} else {
			still = slices.DeleteFunc(still, func(c api.Check) bool { return !slices.Contains(found, c) })
		}
		if len(still) == 0 {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
	return still, nil
}
