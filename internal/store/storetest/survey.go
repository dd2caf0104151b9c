package storetest

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// survey is the result of all reads of a store, by name of the read.
type survey struct {
	ctx context.Context
	r   store.Reader
	mu  sync.Mutex
	all map[string]any
}

// surveyOf reads the tasks 1 to n and everything else, concurrently, since a read from a server is mostly
// waiting.
func surveyOf(ctx context.Context, r store.Reader, now time.Time, n int) map[string]any {
	s := survey{ctx: ctx, r: r, all: map[string]any{}}
	var reads sync.WaitGroup
	for i := 1; i <= n; i++ {
		reads.Go(func() { s.task(id(i)) })
	}
	reads.Go(s.lines)
	reads.Go(func() { s.lists(now) })
	reads.Wait()
	return s.all
}

// say records the result of a read. An empty list becomes nil, so that equal surveys are deeply equal.
func (s *survey) say(name string, value any, err error) {
	if err != nil {
		value = fmt.Sprintf("error %s", signalbox.CodeOf(err))
	} else if v := reflect.ValueOf(value); (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		value = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[name] = value
}

func (s *survey) task(id string) {
	t, err := s.r.Task(s.ctx, id)
	s.say("Task "+id, t, err)
	request, err := s.r.Request(s.ctx, id)
	s.say("Request "+id, request, err)
	result, err := s.r.Result(s.ctx, id)
	s.say("Result "+id, result, err)
	stales, err := s.r.Stales(s.ctx, id)
	s.say("Stales "+id, stales, err)
	children, err := s.r.Children(s.ctx, id, 1000)
	s.say("Children "+id, children, err)
	place, err := s.r.Position(s.ctx, id)
	if place.Approximate {
		place.N = 0 // estimates differ between stores
	}
	s.say("Position "+id, place, err)
	whole, err := s.r.Whole(s.ctx, id)
	if whole.Position.Approximate {
		whole.Position.N = 0
	}
	s.say("Whole "+id, whole, err)
}

// The queues, sessions, agents and accounts of cases and histories.
var (
	someQueues   = []string{"work", "pool:k", "agent:a", "agent:b", "bypass:a", "commands"}
	someSessions = []string{"", "s", "r"}
	someAgents   = []string{"a", "b", "commands@local"}
	someAccounts = []string{"", "max", "pro"}
)

func (s *survey) lines() {
	for _, queue := range append([]string{""}, someQueues...) {
		list, err := s.r.Waiting(s.ctx, queue, store.Cursor{}, 1000)
		s.say("Waiting "+queue, list, err)
	}
	for _, session := range someSessions {
		list, err := s.r.SessionTasks(s.ctx, session, 1000)
		s.say("SessionTasks "+session, list, err)
		held, err := s.r.Session(s.ctx, session)
		s.say("Session "+session, held, err)
	}
	for _, agent := range someAgents {
		took, err := s.r.Durations(s.ctx, agent, 1000)
		s.say("Durations "+agent, took, err)
	}
}

func (s *survey) lists(now time.Time) {
	counts, err := s.r.Counts(s.ctx)
	s.say("Counts", counts, err)
	lengths, err := s.r.Lengths(s.ctx, slices.Sorted(maps.Keys(counts.Queues))...)
	s.say("Lengths", lengths, err)
	flying, err := s.r.InFlight(s.ctx)
	s.say("InFlight", flying, err)
	late, err := s.r.Overdue(s.ctx, now, 1000)
	s.say("Overdue", late, err)
	page, err := s.r.History(s.ctx, store.HistoryQuery{Limit: 1000})
	s.say("History", page.Tasks, err)
	agents, err := s.r.Agents(s.ctx)
	s.say("Agents", agents, err)
	accounts, err := s.r.Accounts(s.ctx)
	s.say("Accounts", accounts, err)
	holds, err := s.r.Holds(s.ctx)
	s.say("Holds", holds, err)
	landings, err := s.r.Landings(s.ctx)
	s.say("Landings", landings, err)
	parked, err := s.r.Parked(s.ctx, "", "")
	s.say("Parked", parked, err)
	for _, name := range someAccounts {
		parked, err = s.r.Parked(s.ctx, signalbox.GateAccount, name)
		s.say("Parked at account "+name, parked, err)
	}
	slots, err := s.r.Slots(s.ctx)
	s.say("Slots", slots, err)
	pauses, err := s.r.Pauses(s.ctx)
	s.say("Pauses", pauses, err)
	sessions, err := s.r.Sessions(s.ctx, store.SessionQuery{Limit: 1000})
	s.say("Sessions", sessions.Sessions, err)
	tokens, err := s.r.Tokens(s.ctx)
	s.say("Tokens", tokens, err)
	users, err := s.r.Users(s.ctx)
	s.say("Users", users, err)
	used, err := s.r.Usage(s.ctx, everyUsage)
	s.say("Usage", used, err)
	log, err := s.r.AuditLog(s.ctx, store.AuditQuery{Limit: 1000})
	s.say("AuditLog", log, err)
	head, err := s.r.AuditHead(s.ctx)
	s.say("AuditHead", head, err)
	entries, err := s.r.Journal(s.ctx, 0, 1000)
	s.say("Journal", entries, err)
	oldest, newest, err := s.r.JournalRange(s.ctx)
	s.say("JournalRange", [2]int64{oldest, newest}, err)
	s.schedules()
	s.peers()
	shot, err := s.r.Snapshot(s.ctx, 3)
	s.say("Snapshot", shot, err)
	found, err := s.r.Find(s.ctx, "queue-0", 1000)
	s.say("Find", found, err)
}

func (s *survey) schedules() {
	list, err := s.r.Schedules(s.ctx)
	s.say("Schedules", list, err)
	for _, one := range list {
		row, err := s.r.Schedule(s.ctx, one.ID)
		s.say("Schedule "+one.ID, row, err)
		runs, err := s.r.ScheduleRuns(s.ctx, one.ID, 1000)
		s.say("ScheduleRuns "+one.ID, runs, err)
	}
	open, err := s.r.OpenRuns(s.ctx)
	s.say("OpenRuns", open, err)
}
