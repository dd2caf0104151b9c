package storetest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func usageRules() []rule {
	return []rule{
		{"a run that reports tokens or costs is counted in its row", usageCounted},
		{"a run that reports neither leaves no row", usageNothing},
		{"each run of a task is counted", usageEachRun},
		{"a change that is stale or refused counts nothing", usageStale},
		{"a report that brings the state of a run no further counts nothing", usageEnded},
		{"a void run is counted once, with what its report adds", usageVoid},
		{"the additional usage in the late report of a lost run is counted", usageLost},
		{"rows are by day, agent, schedule, owner and model", usageRows},
		{"a query selects rows", usageQuery},
		{"rows beyond the bound of a day are summed up", usageFolded},
		{"a row of another store is stored once", usageRestored},
		{"rows of old days are pruned, and make room", usagePruned},
		{"hostile names and numbers come back", usageHostile},
		{"many runs at once are all counted", usageAtOnce},
	}
}

// everyUsage selects all rows.
var everyUsage = store.UsageQuery{From: math.MinInt32, To: math.MaxInt32}

func aUsage(agent string) signalbox.Usage {
	return signalbox.Usage{
		UsageKey: signalbox.UsageKey{Day: signalbox.DayOf(start) - 3, Agent: agent, Schedule: "nightly", Owner: "user:ann", Model: "m"},
		Email:    "ann@example.com", Runs: 3, Failed: 1, RunMS: 4500, Spent: signalbox.Spent{InputTokens: 10, OutputTokens: 20, NanoUSD: 5},
	}
}

func (b *fixture) usage(q store.UsageQuery) []signalbox.Usage {
	b.Helper()
	list, err := b.Usage(b.ctx, q)
	b.must(err)
	return list
}

// spends is a result with costs.
func spends(usd float64) *signalbox.Result {
	return &signalbox.Result{Output: "out", InputTokens: 100, OutputTokens: 7, CostUSD: usd, DurationSeconds: 1.5, Model: "m"}
}

// spend runs the next task at an agent and ends it with these costs.
func (b *fixture) spend(agent string, usd float64) signalbox.Task {
	b.Helper()
	t := b.claim(agent)
	b.accept(t.ID)
	return b.happen(t.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: spends(usd)})
}

func bySchedule(job string) option {
	return func(s *store.Submission) { s.Task.Source, s.Task.SourceJob = signalbox.SourceScheduler, job }
}

func ofOwner(name string) option {
	return func(s *store.Submission) { s.Task.Owner, s.Task.OwnerEmail = "user:"+name, name+"@example.com" }
}

func usageCounted(b *fixture) {
	b.submit(bySchedule("nightly"), ofOwner("ann"))
	t := b.spend("a", 0.25)
	want := signalbox.Usage{
		UsageKey: signalbox.UsageKey{Day: signalbox.DayOf(b.now), Agent: "a", Schedule: "nightly", Owner: "user:ann", Model: "m"},
		Email:    "ann@example.com", Runs: 1, RunMS: 1500, Spent: signalbox.Spent{InputTokens: 100, OutputTokens: 7, NanoUSD: 250_000_000},
	}
	b.same("usage", b.usage(everyUsage), []signalbox.Usage{want})
	b.same("of the task", b.task(t.ID).Spent, want.Spent)
	b.submit(bySchedule("nightly"), ofOwner("ann"))
	failed := b.claim("a")
	b.happen(failed.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonAgentError, Result: spends(0.5)})
	want.Runs, want.Failed, want.RunMS = 2, 1, 3000
	want.Spent = signalbox.Spent{InputTokens: 200, OutputTokens: 14, NanoUSD: 750_000_000}
	b.same("usage of both", b.usage(everyUsage), []signalbox.Usage{want})
}

func usageNothing(b *fixture) {
	b.submits(2)
	b.run("a")
	t := b.claim("a")
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: "out", DurationSeconds: 9, Model: "m", CostUSD: -1}})
	b.same("usage", b.usage(everyUsage), []signalbox.Usage(nil))
}

func usageEachRun(b *fixture) {
	t := b.submit(onLostRequeue)
	b.claim("a")
	b.accept(t.ID)
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonInterrupted, Result: spends(0.25)})
	b.pass(24 * time.Hour)
	b.spend("b", 1)
	var got [][3]any
	for _, u := range b.usage(everyUsage) {
		got = append(got, [3]any{u.Agent, u.Failed, u.NanoUSD})
	}
	b.same("usage", got, [][3]any{{"a", int64(1), int64(250_000_000)}, {"b", int64(0), int64(1_000_000_000)}})
	b.same("of the task", b.task(t.ID).Spent, signalbox.Spent{InputTokens: 200, OutputTokens: 14, NanoUSD: 1_250_000_000})
}

func usageStale(b *fixture) {
	t := b.submit()
	b.claim("a")
	c := b.change(b.task(t.ID), signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: spends(1)})
	b.accept(t.ID)
	if _, err := b.Apply(b.ctx, c, b.now); err != store.ErrStale {
		b.Fatalf("got %v, want ErrStale", err)
	}
	b.same("usage", b.usage(everyUsage), []signalbox.Usage(nil))
}

func usageEnded(b *fixture) {
	b.submit()
	t := b.claim("a")
	c := b.change(b.task(t.ID), signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: spends(1)})
	for n := range 2 {
		if _, err := b.Apply(b.ctx, c, b.now); (err != nil) != (n > 0) {
			b.Fatalf("the report number %d: got %v", n, err)
		}
	}
	b.same("runs", b.usage(everyUsage)[0].Runs, int64(1))
}

// Usage that was counted when a run was lost is not counted again with its late report.
func usageLost(b *fixture) {
	t := b.submit()
	b.claim("a")
	b.accept(t.ID)
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Result: spends(1)})
	said := aStale(1)
	said.Result = *spends(1.5)
	b.must(b.KeepStale(b.ctx, t.ID, said))
	list := b.usage(everyUsage)
	b.same("usage", [3]any{len(list), list[0].Runs, list[0].NanoUSD}, [3]any{1, int64(1), int64(1_500_000_000)})
}

func usageVoid(b *fixture) {
	t := b.submit(ofOwner("ann"))
	b.claim("a")
	b.accept(t.ID)
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventRelease})
	said := aStale(1)
	for _, usd := range []float64{0.25, 0.25, 0.5, 0.125} { // again, more, and less than was counted
		said.Result.CostUSD = usd
		b.must(b.KeepStale(b.ctx, t.ID, said))
	}
	list := b.usage(everyUsage)
	b.same("usage", [4]any{len(list), list[0].Owner, list[0].Runs, list[0].NanoUSD}, [4]any{1, "user:ann", int64(1), int64(500_000_000)})
	b.same("of the task", b.task(t.ID).Spent, signalbox.Spent{})
	for fence := range int64(signalbox.MaxStale) {
		b.must(b.KeepStale(b.ctx, t.ID, aStale(10+fence)))
	}
	before := b.usage(everyUsage)
	b.must(b.KeepStale(b.ctx, t.ID, aStale(1))) // newer reports have displaced it
	b.same("usage", b.usage(everyUsage), before)
}

func usageRows(b *fixture) {
	for _, job := range []string{"", "nightly"} {
		for _, who := range []string{"ben", "ann"} {
			b.submits(2, bySchedule(job), ofOwner(who))
		}
	}
	for n := range 8 {
		b.spend([]string{"b", "a"}[n%2], 1)
	}
	b.pass(24 * time.Hour)
	b.submit()
	b.spend("a", 1)
	var got []string
	for _, u := range b.usage(everyUsage) {
		got = append(got, fmt.Sprintf("%d %s %s %s", u.Day-signalbox.DayOf(start), u.Agent, u.Schedule, u.Owner))
	}
	b.same("rows", got, []string{
		"0 a  user:ann", "0 a  user:ben", "0 a nightly user:ann", "0 a nightly user:ben",
		"0 b  user:ann", "0 b  user:ben", "0 b nightly user:ann", "0 b nightly user:ben", "1 a  ",
	})
}

func usageQuery(b *fixture) {
	for n, agent := range []string{"a", "b", "c"} {
		u := aUsage(agent)
		u.Day += signalbox.Day(n)
		if n == 2 {
			u.Schedule, u.Owner, u.Email, u.Model = "", "user:ben", "ben@example.com", ""
		}
		b.must(b.RestoreUsage(b.ctx, u))
	}
	first := aUsage("").Day
	whole := store.UsageQuery{From: first, To: first + 2}
	for want, q := range map[string]func(*store.UsageQuery){
		"abc": func(*store.UsageQuery) {}, "bc": func(q *store.UsageQuery) { q.From++ }, "ab": func(q *store.UsageQuery) { q.To-- },
		"b": func(q *store.UsageQuery) { q.From, q.To = first+1, first+1 }, "": func(q *store.UsageQuery) { q.To = first - 1 },
		"a": func(q *store.UsageQuery) { q.Agent = "a" }, "ab ": func(q *store.UsageQuery) { q.Schedule = "nightly" },
		"ab  ": func(q *store.UsageQuery) { q.Owner = "user:ann" }, "c": func(q *store.UsageQuery) { q.Owner = "ben@example.com" },
		"ab   ": func(q *store.UsageQuery) { q.Model = "m" },
	} {
		chosen, got := whole, ""
		q(&chosen)
		for _, u := range b.usage(chosen) {
			got += u.Agent
		}
		b.same(fmt.Sprintf("%+v", chosen), got, strings.TrimSpace(want))
	}
}

func usageFolded(b *fixture) {
	u := aUsage("a")
	u.Day = signalbox.DayOf(b.now)
	b.restoreUsages(u, "m", signalbox.UsageRows-1)
	b.submits(4, bySchedule("nightly"), ofOwner("ann"))
	b.spend("x", 1) // the last one with its own row
	b.spend("y", 1)
	b.spend("y", 1)
	b.spend("x", 1)
	key := signalbox.UsageKey{Day: u.Day, Agent: "y", Schedule: signalbox.OtherUsage, Owner: "user:ann", Model: signalbox.OtherUsage}
	list := b.usage(store.UsageQuery{From: u.Day, To: u.Day, Agent: "y"})
	b.same("beyond the bound", [3]any{len(list), list[0].UsageKey, list[0].Runs}, [3]any{1, key, int64(2)})
	b.same("with a row", b.usage(store.UsageQuery{From: u.Day, To: u.Day, Agent: "x"})[0].Runs, int64(2))
	b.restoreUsages(u, "more", signalbox.UsageRows-1)
	b.submits(2)
	b.spend("z", 1)
	b.spend("w", 1)
	other := store.UsageQuery{From: u.Day, To: u.Day, Agent: signalbox.OtherUsage}
	b.same("beyond twice the bound", b.usage(other)[0].Runs, int64(2))
	b.pass(24 * time.Hour)
	b.submit()
	b.spend("z", 1)
	b.same("the next day", b.usage(store.UsageQuery{From: u.Day + 1, To: u.Day + 1})[0].Agent, "z")
}

// restoreUsages stores rows of n models concurrently, since one after the other is slow on a disk.
func (b *fixture) restoreUsages(u signalbox.Usage, model string, n int) {
	b.Helper()
	errs := make(chan error, n)
	for i := range n {
		row := u
		row.Model = fmt.Sprint(model, i)
		go func() { errs <- b.RestoreUsage(b.ctx, row) }()
	}
	for range n {
		b.must(<-errs)
	}
}

func usageRestored(b *fixture) {
	b.must(b.RestoreUsage(b.ctx, aUsage("a")))
	other := aUsage("a")
	other.Runs = 99
	b.refused(b.RestoreUsage(b.ctx, other), signalbox.CodeConflict)
	b.same("usage", b.usage(everyUsage), []signalbox.Usage{aUsage("a")})
}

func usagePruned(b *fixture) {
	old, young := aUsage("a"), aUsage("b")
	young.Day++
	b.must(b.RestoreUsage(b.ctx, old))
	b.must(b.RestoreUsage(b.ctx, young))
	prune := func(before signalbox.Day) {
		b.Helper()
		b.must(second(b.Prune(b.ctx, store.Pruning{Ended: b.now.Add(-time.Hour), Usage: before, Limit: 1})))
	}
	prune(0)
	b.same("none is old", len(b.usage(everyUsage)), 2)
	prune(young.Day)
	b.same("left", b.usage(everyUsage), []signalbox.Usage{young})
	b.must(b.RestoreUsage(b.ctx, old))
	b.same("stored anew", b.usage(everyUsage), []signalbox.Usage{old, young})
}

func usageHostile(b *fixture) {
	n := int64(0)
	var want []signalbox.Usage
	for _, h := range hostile() {
		n++
		u := signalbox.Usage{UsageKey: signalbox.UsageKey{Day: signalbox.Day(n), Agent: h, Schedule: h, Owner: h, Model: h}, Email: h, Runs: n}
		u.Spent = signalbox.Spent{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, NanoUSD: math.MaxInt64}
		b.must(b.RestoreUsage(b.ctx, u))
		want = append(want, u)
	}
	b.same("usage", b.usage(everyUsage), want)
}

func usageAtOnce(b *fixture) {
	const runs = 20
	b.submits(runs)
	changes := make([]signalbox.Change, runs)
	for n := range changes {
		t := b.claimed(b.offerSlots("a", runs))
		changes[n] = b.change(t, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: spends(0.1)})
	}
	errs := make(chan error, runs)
	for _, c := range changes {
		go func() { errs <- second(b.Apply(b.ctx, c, b.now)) }()
	}
	for range changes {
		b.must(<-errs)
	}
	u := b.usage(everyUsage)[0]
	b.same("usage", [2]int64{u.Runs, u.NanoUSD}, [2]int64{runs, runs * 100_000_000})
}
