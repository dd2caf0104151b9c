package storetest

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func historyRules() []rule {
	return []rule{
		{"ended tasks are listed newest end first", historyOrder},
		{"each filter selects", historyFilters},
		{"filters are combined", historyCombined},
		{"pages have no gaps and nothing twice, equal ends too", historyPages},
		{"a task that ends between two pages changes nothing behind the cursor", historyGrows},
		{"the limit of a page is 1 to 1,000", historyLimit},
		{"an invalid cursor is refused", historyBadCursor},
		{"without ended tasks the page is empty and has no next", historyEmpty},
		{"only ended tasks are listed", historyOnlyEnded},
	}
}

// history reads all pages.
func (b *fixture) history(q store.HistoryQuery) []string {
	b.Helper()
	var all []string
	for range 10_000 {
		page, err := b.History(b.ctx, q)
		b.must(err)
		if len(page.Tasks) > q.Limit {
			b.Fatalf("a page of %d has %d tasks", q.Limit, len(page.Tasks))
		}
		all = append(all, ids(page.Tasks)...)
		if page.Next == "" {
			return all
		}
		q.Before = page.Next
	}
	b.Fatal("the history has no end")
	return nil
}

func historyOrder(b *fixture) {
	b.submits(4)
	for _, n := range []int{2, 4, 1} {
		b.pass(time.Second)
		b.happen(id(n), signalbox.Event{Kind: signalbox.EventCancel})
	}
	b.pass(-time.Minute) // sorted by EndedAt
	b.happen(id(3), signalbox.Event{Kind: signalbox.EventCancel})
	b.same("history", b.history(store.HistoryQuery{Limit: 10}), []string{id(1), id(4), id(2), id(3)})
	page, err := b.History(b.ctx, store.HistoryQuery{Limit: 10})
	b.must(err)
	b.same("row", page.Tasks[0], b.task(id(1)))
}

// historyOf ends five tasks in five ways, one second apart.
func historyOf(b *fixture) {
	options := func(n int, queue string, source signalbox.Source, job, session, preview string) option {
		return func(s *store.Submission) {
			s.Task.Queue, s.Task.Source, s.Task.SourceJob, s.Task.SessionID, s.Task.Preview = queue, source, job, session, preview
			if n < 3 {
				s.Task.Mode, s.Task.Tool = signalbox.ModeTool, []string{"", "report", "other"}[n]
			}
		}
	}
	for n, o := range []option{
		options(1, "work", "cli", "", "", "Fix the Ärger in main.go"),
		options(2, "work", "scheduler", "nightly", "s", "100% done"),
		options(3, "agent:a", "api", "", "s", "nothing"),
		options(4, "pool:k", "api", "hourly", "", "FIX it"),
		options(5, "work", "web", "", "", ""),
	} {
		b.submit(o)
		b.pass(time.Second)
		switch n + 1 {
		case 1, 2:
			b.run([]string{"x", "a"}[n])
		case 3:
			b.claimID("a", id(3))
			b.happen(id(3), signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonExitNonzero})
		case 4:
			b.happen(id(4), signalbox.Event{Kind: signalbox.EventWaitTimeout})
		case 5:
			b.happen(id(5), signalbox.Event{Kind: signalbox.EventCancel})
		}
	}
}

func historyFilters(b *fixture) {
	historyOf(b)
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	for _, c := range []struct {
		name  string
		query store.HistoryQuery
		want  []int
	}{
		{"state", store.HistoryQuery{State: signalbox.Completed}, []int{2, 1}},
		{"reason", store.HistoryQuery{Reason: signalbox.ReasonWaitTimeout}, []int{4}},
		{"agent", store.HistoryQuery{Agent: "a"}, []int{3, 2}},
		{"queue", store.HistoryQuery{Queue: "work"}, []int{5, 2, 1}},
		{"source", store.HistoryQuery{Source: "api"}, []int{4, 3}},
		{"job", store.HistoryQuery{SourceJob: "nightly"}, []int{2}},
		{"session", store.HistoryQuery{SessionID: "s"}, []int{3, 2}},
		{"mode", store.HistoryQuery{Mode: signalbox.ModeTool}, []int{2, 1}},
		{"tool", store.HistoryQuery{Tool: "report"}, []int{1}},
		{"text", store.HistoryQuery{Text: "fix"}, []int{4, 1}},
		{"text, letters of either case", store.HistoryQuery{Text: "äRGER"}, []int{1}},
		{"text as it is", store.HistoryQuery{Text: "0% d"}, []int{2}},
		{"text is no pattern", store.HistoryQuery{Text: "F%x"}, nil},
		{"text is no pattern", store.HistoryQuery{Text: "n_thing"}, nil},
		{"since, that moment too", store.HistoryQuery{Since: at(3)}, []int{5, 4, 3}},
		{"until, not that moment", store.HistoryQuery{Until: at(3)}, []int{2, 1}},
		{"since and until", store.HistoryQuery{Since: at(2), Until: at(4)}, []int{3, 2}},
		{"nothing fits", store.HistoryQuery{Agent: "nobody"}, nil},
	} {
		for _, limit := range []int{1, 2, 10} {
			c.query.Limit = limit
			b.same(fmt.Sprintf("%s, pages of %d", c.name, limit), b.history(c.query), numbers(c.want))
		}
	}
}

func numbers(list []int) []string {
	var names []string
	for _, n := range list {
		names = append(names, id(n))
	}
	return names
}

func historyCombined(b *fixture) {
	historyOf(b)
	q := store.HistoryQuery{State: signalbox.Completed, Agent: "a", Queue: "work", Text: "DONE", Limit: 5}
	b.same("history", b.history(q), []string{id(2)})
	q.SessionID = "other"
	b.same("history", b.history(q), []string(nil))
}

func historyPages(b *fixture) {
	for n := range 20 {
		t := b.submit(inQueue([]string{"work", "pool:k"}[n%2]))
		b.happen(t.ID, signalbox.Event{Kind: signalbox.EventCancel})
		if n%5 == 4 {
			b.pass(time.Second)
		}
	}
	for _, queue := range []string{"", "work"} {
		want := b.history(store.HistoryQuery{Queue: queue, Limit: 1000})
		b.same("length", len(want), map[string]int{"": 20, "work": 10}[queue])
		for _, size := range []int{1, 2, 3, 10, 20} {
			b.same(fmt.Sprintf("pages of %d", size), b.history(store.HistoryQuery{Queue: queue, Limit: size}), want)
		}
	}
	b.same("of one end, the last submitted first", b.history(store.HistoryQuery{Limit: 3})[:3], []string{id(20), id(19), id(18)})
}

func historyGrows(b *fixture) {
	for range 4 {
		b.happen(b.submit().ID, signalbox.Event{Kind: signalbox.EventCancel})
	}
	page, err := b.History(b.ctx, store.HistoryQuery{Limit: 2})
	b.must(err)
	b.pass(time.Second)
	b.happen(b.submit().ID, signalbox.Event{Kind: signalbox.EventCancel})
	rest := b.history(store.HistoryQuery{Limit: 2, Before: page.Next})
	b.same("history", append(ids(page.Tasks), rest...), []string{id(4), id(3), id(2), id(1)})
}

func historyLimit(b *fixture) {
	for _, limit := range []int{-1, 0, 1001} {
		_, err := b.History(b.ctx, store.HistoryQuery{Limit: limit})
		b.refused(err, signalbox.CodeValidation)
	}
	b.history(store.HistoryQuery{Limit: 1000})
}

func historyBadCursor(b *fixture) {
	b.happen(b.submit().ID, signalbox.Event{Kind: signalbox.EventCancel})
	for _, cursor := range []string{"x", "-", "'; DROP TABLE tasks; --", "1-2-3-4-5 x", "\x00"} {
		_, err := b.History(b.ctx, store.HistoryQuery{Limit: 1, Before: cursor})
		b.refused(err, signalbox.CodeValidation)
	}
}

func historyEmpty(b *fixture) {
	page, err := b.History(b.ctx, store.HistoryQuery{Limit: 1})
	b.must(err)
	b.same("page", page, store.HistoryPage{})
}

func historyOnlyEnded(b *fixture) {
	b.submits(3)
	b.claim("a")
	b.accept(b.claim("b").ID)
	b.same("history", b.history(store.HistoryQuery{Limit: 10}), []string(nil))
}
