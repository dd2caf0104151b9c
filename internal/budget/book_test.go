package budget_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/budget"
	"github.com/signalbox-ai/signalbox/internal/store"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

const usd = 1_000_000_000 // in nano-dollars

// fakeStore has rows of usage and tasks in flight.
type fakeStore struct {
	rows  []signalbox.Usage
	tasks []signalbox.Task
	err   error
	// usageRead is called between the two reads.
	usageRead func()
}

func (s *fakeStore) Usage(_ context.Context, q store.UsageQuery) (rows []signalbox.Usage, _ error) {
	for i := range s.rows {
		if q.Matches(&s.rows[i]) {
			rows = append(rows, s.rows[i])
		}
	}
	if s.usageRead != nil {
		s.usageRead()
	}
	return rows, s.err
}

func (s *fakeStore) InFlight(context.Context) ([]signalbox.Task, error) { return s.tasks, s.err }

// finish stores the end of a run like a store, and returns its usage.
func (s *fakeStore) finish(t *signalbox.Task, at time.Time, r *signalbox.Result) signalbox.Usage {
	used := t.Used(at, t.Agent, r, false)
	s.rows = append(s.rows, used)
	s.tasks = slices.DeleteFunc(s.tasks, func(o signalbox.Task) bool { return o.ID == t.ID })
	return used
}

func taskOf(n int64, agent, owner string) signalbox.Task {
	return signalbox.Task{ID: fmt.Sprint("queue-", n), Fence: n, State: signalbox.Working, Agent: agent, Owner: "user:" + owner, OwnerEmail: owner + "@example.org"}
}

func spent(dollars float64) signalbox.Spent { return signalbox.Spent{NanoUSD: int64(dollars * usd)} }

func refresh(t *testing.T, b *budget.Book, s *fakeStore, now time.Time) bool {
	t.Helper()
	changed, err := b.Refresh(t.Context(), s, map[string]string{"a": "team", "b": "team"}, now)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// Each budget of a run stops what it should, and nothing else.
func TestScopes(t *testing.T) {
	ten := signalbox.Budget{NanoUSD: 10 * usd}
	for name, c := range map[string]struct {
		of     signalbox.Budgets
		closed []string // of the agents a, b and c
		except []string
		gate   string
	}{
		"none":                    {},
		"day":                     {of: signalbox.Budgets{Day: ten}, closed: []string{"a", "b", "c"}, gate: "budget of the day 2026-11-28 is used up: $12.00 of $10.00; it opens at 00:00 UTC"},
		"day, of tokens":          {of: signalbox.Budgets{Day: signalbox.Budget{Tokens: 100}}, closed: []string{"a", "b", "c"}, gate: "budget of the day 2026-11-28 is used up: 100 of 100 tokens; it opens at 00:00 UTC"},
		"day, enough":             {of: signalbox.Budgets{Day: signalbox.Budget{NanoUSD: 13 * usd, Tokens: 101}}},
		"agent":                   {of: signalbox.Budgets{Agents: map[string]signalbox.Budget{"a": ten}}, closed: []string{"a"}, gate: "budget of agent a for 2026-11-28 is used up: $12.00 of $10.00; it opens at 00:00 UTC"},
		"any agent":               {of: signalbox.Budgets{Agents: map[string]signalbox.Budget{"*": ten}}, closed: []string{"a"}, gate: "budget of agent a for 2026-11-28 is used up: $12.00 of $10.00; it opens at 00:00 UTC"},
		"any but one":             {of: signalbox.Budgets{Agents: map[string]signalbox.Budget{"*": ten, "a": {}}}},
		"account":                 {of: signalbox.Budgets{Accounts: map[string]signalbox.Budget{"team": ten}}, closed: []string{"a", "b"}, gate: "budget of account team for 2026-11-28 is used up: $12.00 of $10.00; it opens at 00:00 UTC"},
		"user, by address":        {of: signalbox.Budgets{Users: map[string]signalbox.Budget{"ann@example.org": ten}}, except: []string{"ann@example.org"}, gate: "budget of user ann@example.org for 2026-11-28 is used up: $12.00 of $10.00; it opens at 00:00 UTC"},
		"user, by key":            {of: signalbox.Budgets{Users: map[string]signalbox.Budget{"user:ann": ten}}, except: []string{"user:ann"}, gate: "budget of user user:ann for 2026-11-28 is used up: $12.00 of $10.00; it opens at 00:00 UTC"},
		"any user":                {of: signalbox.Budgets{Users: map[string]signalbox.Budget{"*": ten}}, except: []string{"ann@example.org"}, gate: "budget of user ann@example.org for 2026-11-28 is used up: $12.00 of $10.00; it opens at 00:00 UTC"},
		"nobody is no other user": {of: signalbox.Budgets{Users: map[string]signalbox.Budget{"bob@example.org": ten}}},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := budget.NewBook(c.of), &fakeStore{}
			ended, running := taskOf(1, "a", "ann"), taskOf(2, "a", "ann")
			s.finish(&ended, noon, &signalbox.Result{CostUSD: 7, InputTokens: 60, OutputTokens: 20})
			s.tasks = []signalbox.Task{running}
			if daily := c.of.Daily(); b.Due(noon) != daily || refresh(t, b, s, noon) || b.Due(noon) {
				t.Error("it is not known what was spent, or something is used up already")
			}
			why := b.Report(&running, signalbox.Spent{NanoUSD: 5 * usd, InputTokens: 20}, noon)
			if want := strings.TrimSuffix(c.gate, "; it opens at 00:00 UTC"); want == "" && why != "" || want != "" && why != "the "+want {
				t.Errorf("the run is stopped: %q", why)
			}
			var closed, except []string
			for _, agent := range []string{"a", "b", "c"} {
				account := map[string]string{"a": "team", "b": "team"}[agent]
				no, users := b.Claims(agent, account, noon)
				if except = users; no {
					closed = append(closed, agent)
				}
			}
			if !slices.Equal(closed, c.closed) || !slices.Equal(except, c.except) {
				t.Errorf("closed are %v, left out %v", closed, except)
			}
			waiting := signalbox.Task{Owner: "user:ann", OwnerEmail: "ann@example.org"}
			g := b.HoldingGate(&waiting, "a", "team", noon)
			if (g == nil) != (c.gate == "") || g != nil && (g.Text != c.gate || g.Kind != signalbox.GateBudget || !g.Until.Equal(noon.Add(12*time.Hour))) {
				t.Errorf("gate %+v", g)
			}
			if n := len(b.Gates(noon)); n != len(c.except)+min(1, len(c.closed)) {
				t.Errorf("%d gates", n)
			}
			if changed := refresh(t, b, s, noon); changed != (c.gate != "") {
				t.Errorf("that it is used up is news: %v", changed)
			}
			waiting.IgnoreGates, running.IgnoreGates = true, true
			if b.HoldingGate(&waiting, "a", "team", noon) != nil || b.Report(&running, spent(6), noon) != "" {
				t.Error("what runs anyway is kept")
			}
			if b.HoldingGate(&signalbox.Task{Owner: "user:ann", Mode: signalbox.ModeTool}, "a", "team", noon) != nil {
				t.Error("a tool call is kept")
			}
			tomorrow := noon.Add(12 * time.Hour)
			s.tasks = nil
			if b.Due(tomorrow) != c.of.Daily() || refresh(t, b, s, tomorrow) != (c.gate != "") || len(b.Gates(tomorrow)) > 0 {
				t.Errorf("the next day: %+v", b.Gates(tomorrow))
			}
		})
	}
}

func TestLeftIsTheLeastOfAll(t *testing.T) {
	b := budget.NewBook(signalbox.Budgets{
		Day: signalbox.Budget{NanoUSD: 100 * usd}, Users: map[string]signalbox.Budget{"*": {NanoUSD: 20 * usd, Tokens: 1000}},
		Agents: map[string]signalbox.Budget{"a": {NanoUSD: 9 * usd}},
	})
	s := &fakeStore{}
	run, other := taskOf(1, "a", "ann"), taskOf(2, "b", "ann")
	run.Budget, run.Spent = signalbox.Budget{NanoUSD: 8 * usd}, spent(2)
	s.tasks = []signalbox.Task{run, other}
	refresh(t, b, s, noon)
	want := func(usdLeft float64, tokens int64) {
		t.Helper()
		if got := b.Left(&run, noon); got != (signalbox.Budget{NanoUSD: int64(usdLeft * usd), Tokens: tokens}) {
			t.Errorf("left: %s, want %g and %d tokens", got, usdLeft, tokens)
		}
	}
	want(6, 1000) // the task's budget
	b.Report(&other, signalbox.Spent{NanoUSD: 15 * usd, OutputTokens: 300}, noon)
	want(5, 700) // the user's budget
	b.Report(&run, spent(4), noon)
	want(5, 700) // its own reports do not count against itself
	b.Report(&other, spent(30), noon)
	want(1e-9, 700) // nothing is left, and 0 would mean no limit
	run.IgnoreGates = true
	if got := b.Left(&run, noon); got != (signalbox.Budget{NanoUSD: 6 * usd}) {
		t.Errorf("anyway: %s", got)
	}
}

// A run that ends during a refresh is never counted twice, and at most until the next refresh counted as
// less.
func TestARunThatEndsDuringARefreshCountsOnce(t *testing.T) {
	for name, order := range map[string]struct{ before, between, after string }{
		"stored before, told between": {"store", "tell", ""},
		"stored before, told after":   {"store", "", "tell"},
		"stored between, told after":  {"", "store", "tell"},
		"stored and told between":     {"", "store tell", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := budget.NewBook(signalbox.Budgets{Day: signalbox.Budget{NanoUSD: 100 * usd}}), &fakeStore{}
			run := taskOf(1, "a", "ann")
			s.tasks = []signalbox.Task{run}
			refresh(t, b, s, noon)
			b.Report(&run, spent(3), noon)
			var used signalbox.Usage
			do := func(what string) {
				if strings.Contains(what, "store") {
					used = s.finish(&run, noon, &signalbox.Result{CostUSD: 4})
				}
				if strings.Contains(what, "tell") {
					b.Ended(&run, used)
				}
				if sum := b.Rows(noon)[0].Spent; sum.NanoUSD > 4*usd {
					t.Errorf("after %q: %g is counted of 4", what, sum.USD())
				}
			}
			do(order.before)
			s.usageRead = func() { do(order.between) }
			refresh(t, b, s, noon)
			s.usageRead = nil
			do(order.after)
			refresh(t, b, s, noon)
			if sum := b.Rows(noon)[0].Spent; sum != spent(4) {
				t.Errorf("counted: %g of 4", sum.USD())
			}
		})
	}
}

func TestReportsOfRunsThatAreOver(t *testing.T) {
	b, s := budget.NewBook(signalbox.Budgets{Day: signalbox.Budget{NanoUSD: 10 * usd}}), &fakeStore{}
	run := taskOf(1, "a", "ann")
	s.tasks = []signalbox.Task{run}
	refresh(t, b, s, noon)
	b.Report(&run, spent(3), noon)
	b.Ended(&run, s.finish(&run, noon, &signalbox.Result{CostUSD: 3}))
	if why := b.Report(&run, spent(9), noon); why != "" || b.Rows(noon)[0].Spent != spent(3) {
		t.Errorf("a late report counts: %q %+v", why, b.Rows(noon))
	}
	again := run
	again.Fence = 2
	b.Began(&again)
	b.Ended(&run, signalbox.Usage{UsageKey: signalbox.UsageKey{Day: signalbox.DayOf(noon)}, Spent: spent(9)})
	b.Report(&again, spent(1), noon)
	b.Report(&again, spent(0.5), noon) // less than before: it was reported late
	if b.Rows(noon)[0].Spent != spent(4) {
		t.Errorf("%+v", b.Rows(noon))
	}
}

func TestAStoreThatDoesNotAnswerChangesNothing(t *testing.T) {
	b, s := budget.NewBook(signalbox.Budgets{Day: signalbox.Budget{NanoUSD: usd}}), &fakeStore{err: fmt.Errorf("no store")}
	if _, err := b.Refresh(t.Context(), s, nil, noon); err == nil || !b.Due(noon) {
		t.Errorf("%v", err)
	}
}

func TestRows(t *testing.T) {
	b, s := budget.NewBook(signalbox.Budgets{
		Day: signalbox.Budget{NanoUSD: 100 * usd}, Users: map[string]signalbox.Budget{"*": {NanoUSD: usd}, "bob@example.org": {}},
		Agents: map[string]signalbox.Budget{"z": {Tokens: 5}, "*": {Tokens: 7}},
	}), &fakeStore{}
	for _, owner := range []string{"ann", "bob"} {
		ended := taskOf(1, "a", owner)
		s.finish(&ended, noon, &signalbox.Result{CostUSD: 2, InputTokens: 1})
	}
	nobody := signalbox.Task{ID: "queue-9", Agent: "a"}
	s.finish(&nobody, noon, &signalbox.Result{CostUSD: 2})
	refresh(t, b, s, noon)
	var got []string
	for _, r := range b.Rows(noon) {
		got = append(got, fmt.Sprintf("%s: %s %v", r.Name, r.Budget.Of(r.Spent), r.Gate != nil))
	}
	if want := []string{"the day: $6.00 of $100.00 false", "user ann@example.org: $2.00 of $1.00 true", "agent a: 2 of 7 tokens false", "agent z: 0 of 5 tokens false"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// For any order of starts, spending, reports, ends and stops: if each run stays within what it was told is
// left, and is stopped when the book says so, no request begins on a budget that is used up by the reports.
// So only the requests in flight can exceed a budget.
func TestNoRequestBeginsOnABudgetThatIsUsedUp(t *testing.T) {
	bounds := map[string]int64{"day": 60 * usd, "user:ann": 25 * usd, "user:bob": 25 * usd, "a": 30 * usd, "team": 45 * usd}
	of := signalbox.Budgets{
		Day: signalbox.Budget{NanoUSD: bounds["day"]}, Users: map[string]signalbox.Budget{"*": {NanoUSD: bounds["user:ann"]}},
		Agents: map[string]signalbox.Budget{"a": {NanoUSD: bounds["a"]}}, Accounts: map[string]signalbox.Budget{"team": {NanoUSD: bounds["team"]}},
	}
	rapid.Check(t, func(t *rapid.T) {
		b, s, now := budget.NewBook(of), &fakeStore{}, noon
		type live struct {
			task             signalbox.Task
			left             signalbox.Budget
			spent, requested int64 // reported; the request in flight
		}
		runs, reported, n := map[string]*live{}, map[string]int64{}, int64(0)
		on := func(r *live) []string { return []string{"day", r.task.Owner, r.task.Agent, "team"} }
		answered := func(r *live) {
			for _, name := range on(r) {
				reported[name] += r.requested
			}
			r.spent, r.requested = r.spent+r.requested, 0
		}
		end := func(r *live, told bool) {
			answered(r)
			used := s.finish(&r.task, now, &signalbox.Result{CostUSD: float64(r.spent) / usd})
			if told {
				b.Ended(&r.task, used)
			}
			delete(runs, r.task.ID)
		}
		read := func() {
			if _, err := b.Refresh(context.Background(), s, map[string]string{"a": "team", "b": "team"}, now); err != nil {
				t.Fatal(err)
			}
		}
		stop := func() { // until nothing is to be stopped: what a run reports at its end counts
			for again := true; again; {
				again = false
				for _, id := range slices.Sorted(maps.Keys(runs)) {
					if r := runs[id]; b.Report(&r.task, signalbox.Spent{NanoUSD: r.spent}, now) != "" {
						end(r, true)
						again = true
					}
				}
			}
		}
		read()
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				agent, owner := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "agent"), rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "owner")
				closed, except := b.Claims(agent, "team", now)
				if closed || slices.Contains(except, owner+"@example.org") || len(runs) >= 4 {
					return
				}
				n++
				r := &live{task: taskOf(n, agent, owner)}
				s.tasks = append(s.tasks, r.task)
				b.Began(&r.task)
				r.left = b.Left(&r.task, now)
				runs[r.task.ID] = r
			},
			"request": func(t *rapid.T) {
				for _, id := range slices.Sorted(maps.Keys(runs)) {
					r := runs[id]
					if r.requested > 0 || r.spent >= r.left.NanoUSD { // one is in flight, or its agent has ended it
						continue
					}
					for _, name := range on(r) {
						if bound, has := bounds[name]; has && reported[name] >= bound {
							t.Fatalf("a request begins though %d of %d of %s are used up", reported[name], bound, name)
						}
					}
					r.requested = rapid.Int64Range(1, 12*usd).Draw(t, "request")
				}
			},
			"answer": func(t *rapid.T) {
				for _, id := range slices.Sorted(maps.Keys(runs)) {
					answered(runs[id])
					b.Report(&runs[id].task, signalbox.Spent{NanoUSD: runs[id].spent}, now)
				}
				stop()
			},
			"end": func(t *rapid.T) {
				if len(runs) > 0 {
					end(runs[rapid.SampledFrom(slices.Sorted(maps.Keys(runs))).Draw(t, "run")], rapid.Bool().Draw(t, "told"))
				}
				read()
				stop()
			},
			"restart": func(*rapid.T) { // the agents report again what their runs have used
				b = budget.NewBook(of)
				read()
				stop()
			},
		})
	})
}
