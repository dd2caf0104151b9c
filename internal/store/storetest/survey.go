package storetest

import (
	"fmt"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// survey is all that the reads of a store say about the tasks 1 to n and all
// else, by the name of the read.
func survey(b *box, n int) map[string]any {
	b.Helper()
	all := map[string]any{}
	say := func(name string, value any, err error) {
		if err != nil {
			value = fmt.Sprintf("error %s", signalbox.CodeOf(err))
		}
		all[name] = value
	}
	for i := 1; i <= n; i++ {
		surveyTask(b, id(i), say)
	}
	for _, queue := range []string{"", "work", "pool:k", "agent:a", "agent:b"} {
		list, err := b.Waiting(b.ctx, queue, store.Cursor{}, 1000)
		say("Waiting "+queue, list, err)
	}
	for _, session := range []string{"s", "r", ""} {
		list, err := b.SessionTasks(b.ctx, session, 1000)
		say("SessionTasks "+session, list, err)
		held, err := b.Session(b.ctx, session)
		say("Session "+session, held, err)
	}
	for _, agent := range []string{"a", "b"} {
		took, err := b.Durations(b.ctx, agent, 1000)
		say("Durations "+agent, took, err)
	}
	surveyLists(b, say)
	return all
}

func surveyTask(b *box, id string, say func(string, any, error)) {
	t, err := b.Task(b.ctx, id)
	say("Task "+id, t, err)
	request, err := b.Request(b.ctx, id)
	say("Request "+id, request, err)
	result, err := b.Result(b.ctx, id)
	say("Result "+id, result, err)
	place, err := b.Position(b.ctx, id)
	if place.Approximate {
		place.N = 0 // an estimate is each store's own
	}
	say("Position "+id, place, err)
}

func surveyLists(b *box, say func(string, any, error)) {
	counts, err := b.Counts(b.ctx)
	say("Counts", counts, err)
	flying, err := b.InFlight(b.ctx)
	say("InFlight", flying, err)
	late, err := b.Overdue(b.ctx, b.now, 1000)
	say("Overdue", late, err)
	page, err := b.History(b.ctx, store.HistoryQuery{Limit: 1000})
	say("History", page.Tasks, err)
	agents, err := b.Agents(b.ctx)
	say("Agents", agents, err)
	slots, err := b.Slots(b.ctx)
	say("Slots", slots, err)
	pauses, err := b.Pauses(b.ctx)
	say("Pauses", pauses, err)
	entries, err := b.Journal(b.ctx, 0, 1000)
	say("Journal", entries, err)
	oldest, newest, err := b.JournalRange(b.ctx)
	say("JournalRange", [2]int64{oldest, newest}, err)
	found, err := b.Find(b.ctx, "queue-0", 1000)
	say("Find", found, err)
}
