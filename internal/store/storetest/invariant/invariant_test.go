package invariant_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/invariant"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// liar is a store with one falsified read.
type liar struct {
	store.Reader
	waiting func([]signalbox.Task) []signalbox.Task
	flying  func([]signalbox.Task) []signalbox.Task
	parked  func([]signalbox.Task) []signalbox.Task
	lands   func([]signalbox.Task) []signalbox.Task
	logins  func([]signalbox.Account) []signalbox.Account
	ended   func([]signalbox.Task) []signalbox.Task
	slots   func([]signalbox.Slot) []signalbox.Slot
	agents  func([]signalbox.Agent) []signalbox.Agent
	counts  func(*store.Counts)
	journal func([]signalbox.Entry) []signalbox.Entry
	talks   func([]signalbox.Session) []signalbox.Session
	audit   func([]signalbox.Audit) []signalbox.Audit
	plans   func([]signalbox.Schedule) []signalbox.Schedule
	open    func([]signalbox.ScheduleRun) []signalbox.ScheduleRun
}

func bend[T any](f func([]T) []T, list []T, err error) ([]T, error) {
	if f == nil {
		return list, err
	}
	return f(list), err
}

func (l liar) Waiting(ctx context.Context, queue string, after store.Cursor, limit int) ([]signalbox.Task, error) {
	list, err := l.Reader.Waiting(ctx, queue, after, limit)
	if len(list) == 0 {
		return list, err
	}
	return bend(l.waiting, list, err)
}

func (l liar) InFlight(ctx context.Context) ([]signalbox.Task, error) {
	list, err := l.Reader.InFlight(ctx)
	return bend(l.flying, list, err)
}

func (l liar) Parked(ctx context.Context, kind signalbox.GateKind, name string) ([]signalbox.Task, error) {
	list, err := l.Reader.Parked(ctx, kind, name)
	return bend(l.parked, list, err)
}

func (l liar) Landings(ctx context.Context) ([]signalbox.Task, error) {
	list, err := l.Reader.Landings(ctx)
	return bend(l.lands, list, err)
}

func (l liar) Accounts(ctx context.Context) ([]signalbox.Account, error) {
	list, err := l.Reader.Accounts(ctx)
	return bend(l.logins, list, err)
}

func (l liar) History(ctx context.Context, q store.HistoryQuery) (store.HistoryPage, error) {
	page, err := l.Reader.History(ctx, q)
	page.Tasks, err = bend(l.ended, page.Tasks, err)
	return page, err
}

func (l liar) Slots(ctx context.Context) ([]signalbox.Slot, error) {
	list, err := l.Reader.Slots(ctx)
	return bend(l.slots, list, err)
}

func (l liar) Agents(ctx context.Context) ([]signalbox.Agent, error) {
	list, err := l.Reader.Agents(ctx)
	return bend(l.agents, list, err)
}

func (l liar) Counts(ctx context.Context) (store.Counts, error) {
	c, err := l.Reader.Counts(ctx)
	if l.counts != nil {
		l.counts(&c)
	}
	return c, err
}

func (l liar) Journal(ctx context.Context, after int64, limit int) ([]signalbox.Entry, error) {
	list, err := l.Reader.Journal(ctx, after, limit)
	if len(list) == 0 {
		return list, err
	}
	return bend(l.journal, list, err)
}

func (l liar) Sessions(ctx context.Context, q store.SessionQuery) (store.SessionPage, error) {
	page, err := l.Reader.Sessions(ctx, q)
	page.Sessions, err = bend(l.talks, page.Sessions, err)
	return page, err
}

func (l liar) AuditLog(ctx context.Context, q store.AuditQuery) ([]signalbox.Audit, error) {
	list, err := l.Reader.AuditLog(ctx, q)
	if len(list) == 0 {
		return list, err
	}
	return bend(l.audit, list, err)
}

func (l liar) Schedules(ctx context.Context) ([]signalbox.Schedule, error) {
	list, err := l.Reader.Schedules(ctx)
	return bend(l.plans, list, err)
}

func (l liar) OpenRuns(ctx context.Context) ([]signalbox.ScheduleRun, error) {
	list, err := l.Reader.OpenRuns(ctx)
	return bend(l.open, list, err)
}

// busy returns a store with tasks in every place: 1 has ended and lands next, 2 was lost and withholds slot 0
// of agent a, 3 runs there in slot 1, 4 waits for the end of 3 in their session, 5, whose work is to land,
// and 6 wait for nothing, 7 for its time, 8 and 9 are parked, and 10 waits for the end of 9 in their session.
// Two accounts are open. Agent a has two sessions, the last used of which is current, and three audit rows.
// There are two schedules with an open run each.
func busy(t *testing.T) store.Store {
	t.Helper()
	ctx, s := context.Background(), memory.New(memory.Options{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.PutAgent(ctx, signalbox.Agent{Name: "a", Slots: 2}, signalbox.Entry{At: noon}))
	for n, id := range []string{"old", "new"} {
		at := noon.Add(time.Duration(n) * time.Minute)
		must(s.PutSession(ctx, signalbox.Session{}, signalbox.Session{ID: id, Agent: "a", LastUsed: at, Current: n == 1}, signalbox.Entry{At: noon}))
	}
	for range 3 {
		_, err := s.AppendAudit(ctx, signalbox.Audit{At: noon, Action: "submit"})
		must(err)
	}
	for _, name := range []string{"x", "y"} {
		run := signalbox.ScheduleRun{ID: "r", Status: signalbox.RunHeld}
		_, err := s.PutSchedule(ctx, signalbox.Schedule{ID: "sched-" + name, Name: name}, []signalbox.ScheduleRun{run}, signalbox.Entry{})
		must(err)
	}
	for n := 1; n <= 7; n++ {
		task := signalbox.Task{ID: strconv.Itoa(n), State: signalbox.Pending, Queue: "work", Limit: "work", MaxAttempts: 3, CreatedAt: noon}
		if n == 3 || n == 4 {
			task.SessionID = "s"
		}
		if n == 1 || n == 5 {
			task.Landing = &signalbox.Landing{LandWish: signalbox.LandWish{Onto: "main"}, State: signalbox.LandingWanted, At: noon}
		}
		if n == 7 {
			task.NotBefore = noon.Add(time.Hour)
		}
		_, err := s.Submit(ctx, store.Submission{Task: task, Now: noon})
		must(err)
	}
	happen := func(ev signalbox.Event) {
		t.Helper()
		claimed, err := s.Claim(ctx, store.ClaimRequest{Agent: "a", Slots: 2, Queues: []string{"work"}, Now: noon})
		must(err)
		task := claimed.Task
		for _, ev := range []signalbox.Event{{Kind: signalbox.EventAccept}, ev} {
			if ev.Kind == "" {
				return
			}
			ev.Now, ev.Fence = noon, task.Fence
			c, err := signalbox.Next(task, ev)
			must(err)
			task, err = s.Apply(ctx, c, noon)
			must(err)
		}
	}
	happen(signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted})
	happen(signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Withhold: true})
	happen(signalbox.Event{})
	for _, name := range []string{"max", "pro"} {
		_, err := s.ChangeAccount(ctx, signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: name, Now: noon})
		must(err)
	}
	for n := 8; n <= 10; n++ {
		task := signalbox.Task{ID: strconv.Itoa(n), State: signalbox.Pending, Queue: "agent:b", Limit: "work", CreatedAt: noon}
		if n > 8 {
			task.SessionID = "p"
		}
		_, err := s.Submit(ctx, store.Submission{Task: task, Now: noon})
		must(err)
		if n == 10 {
			continue
		}
		got, err := s.Claim(ctx, store.ClaimRequest{Agent: "b", Slots: 1, Queues: []string{"agent:b"}, Now: noon})
		must(err)
		at := noon.Add(time.Duration(n) * time.Second)
		c, err := signalbox.Next(got.Task, signalbox.Event{Kind: signalbox.EventPark, Now: at, Fence: got.Task.Fence, Parking: &signalbox.Parking{Gate: signalbox.Gate{Kind: signalbox.GateTime}}})
		must(err)
		_, err = s.Apply(ctx, c, at)
		must(err)
	}
	return s
}

func TestCheckFindsNothingInASoundStore(t *testing.T) {
	for _, s := range []store.Store{memory.New(memory.Options{}), busy(t)} {
		if err := invariant.Check(context.Background(), s); err != nil {
			t.Error(err)
		}
	}
}

func TestCheckReportsReadErrors(t *testing.T) {
	s := memory.New(memory.Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := invariant.Check(context.Background(), s); signalbox.CodeOf(err) != signalbox.CodeUnavailable {
		t.Errorf("got %v", err)
	}
}

type (
	tasks  = []signalbox.Task
	plans  = []signalbox.Schedule
	runs   = []signalbox.ScheduleRun
	logins = []signalbox.Account
)

// change falsifies one task of a list.
func change(id string, f func(*signalbox.Task)) func(tasks) tasks {
	return func(list tasks) tasks {
		for i := range list {
			if list[i].ID == id {
				f(&list[i])
			}
		}
		return list
	}
}

// Each lie is one possible fault of a store, and must be found.
func TestCheckFinds(t *testing.T) {
	unready := func(t *signalbox.Task) { t.Ready = false }
	ready := func(t *signalbox.Task) { t.Ready = true }
	lands := func(state signalbox.LandingState) func(*signalbox.Task) {
		return func(t *signalbox.Task) {
			landing := *t.Landing
			landing.State, t.Landing = state, &landing
		}
	}
	for _, c := range []struct {
		fault, said string
		lie         liar
	}{
		{"a slot row is missing", "holds 0 slots", liar{slots: func(l []signalbox.Slot) []signalbox.Slot { return l[:1] }}},
		{"a slot row is left over", "does not run there", liar{slots: func(l []signalbox.Slot) []signalbox.Slot { l[0].Withheld = false; return l }}},
		{"a slot has another fence than its task", "does not run there", liar{slots: func(l []signalbox.Slot) []signalbox.Slot { l[1].Fence += 7; return l }}},
		{"a running task's slot is withheld", "is withheld", liar{slots: func(l []signalbox.Slot) []signalbox.Slot { l[1].Withheld = true; return l }}},
		{"a slot has two rows", "two rows", liar{slots: func(l []signalbox.Slot) []signalbox.Slot { return append(l, l[1]) }}},
		{"an agent runs too many", "runs 1 tasks in 0 slots", liar{agents: func(l []signalbox.Agent) []signalbox.Agent { l[0].Slots = 0; return l }}},
		{"a task is in no place", "not those of the rows", liar{waiting: func(l tasks) tasks { return l[1:] }}},
		{"a task is in two places", "listed twice", liar{flying: func(l tasks) tasks {
			return append(l, signalbox.Task{ID: "5", State: signalbox.Working, Fence: 9, Agent: "a"})
		}}},
		{"a list has a task of another state", "is listed as", liar{waiting: change("5", func(t *signalbox.Task) { t.State = signalbox.Working })}},
		{"a count is wrong", "not those of the rows", liar{counts: func(c *store.Counts) { c.Limits["work"]++ }}},
		{"the oldest is another", "oldest", liar{counts: func(c *store.Counts) { c.Oldest = noon.Add(1) }}},
		{"a free task is not ready", "waits for nothing", liar{waiting: change("5", unready)}},
		{"a session's task is ready while another runs", "while another one runs", liar{waiting: change("4", ready)}},
		{"nothing of a session is ready", "nothing of it is ready", liar{waiting: change("5", func(t *signalbox.Task) { t.SessionID, t.Ready = "r", false })}},
		{"two of a session are ready", "both ready", liar{waiting: func(l tasks) tasks {
			return change("6", func(t *signalbox.Task) { t.SessionID = "r" })(change("5", func(t *signalbox.Task) { t.SessionID = "r" })(l))
		}}},
		{"a turn behind a parked one is ready", "stands before it", liar{waiting: change("10", ready)}},
		{"a parked task is on no list of a gate", "not listed so", liar{parked: func(l tasks) tasks { return l[:1] }}},
		{"a list of a gate has one too many", "listed as parked, or twice", liar{parked: func(l tasks) tasks { return append(l, l[1]) }}},
		{"a list of a gate has one that is not parked", "listed as parked, or twice", liar{parked: change("8", func(t *signalbox.Task) { t.State = signalbox.Pending })}},
		{"a list of a gate is out of order", "parked: 9 stands before 8", liar{parked: func(l tasks) tasks { return tasks{l[1], l[0]} }}},
		{"a task is parked at no gate", "at no gate", liar{waiting: change("8", func(t *signalbox.Task) { t.Parking = nil })}},
		{"a landing is on no list", "listed as open: false", liar{lands: func(tasks) tasks { return nil }}},
		{"the list of landings has one too many", "listed as landing, or twice", liar{lands: func(l tasks) tasks { return append(l, l[0]) }}},
		{"the list of landings has one that has landed", "listed as landing, or twice", liar{lands: change("1", lands(signalbox.LandingLanded))}},
		{"the list of landings is out of order", "landings: 1 stands before 1", liar{lands: func(l tasks) tasks {
			later, landing := l[0], *l[0].Landing
			landing.At, later.Landing = noon.Add(time.Second), &landing
			return tasks{later, l[0]}
		}}},
		{"a wish outlives its task", "still only wanted to land", liar{lands: func(tasks) tasks { return nil }, ended: change("1", lands(signalbox.LandingWanted))}},
		{"a task that waits has landed", "its landing is landed already", liar{waiting: change("5", lands(signalbox.LandingLanded))}},
		{"a parked task waits for a time", "a time of its own", liar{waiting: change("8", func(t *signalbox.Task) { t.WaitUntil = noon })}},
		{"an account is listed twice", "stands before", liar{logins: func(l logins) logins { return append(l, l[1]) }}},
		{"an account in no state", "unknown state", liar{logins: func(l logins) logins { l[0].State = ""; return l }}},
		{"an open account is being tried", "goes first", liar{logins: func(l logins) logins { l[0].Probe.Fence = 3; return l }}},
		{"a task in flight is ready", "and ready", liar{flying: change("3", ready)}},
		{"an end without a message", "without a message", liar{ended: change("1", func(t *signalbox.Task) { t.Message = "" })}},
		{"an end that kept its environment", "kept its environment", liar{ended: change("1", func(t *signalbox.Task) { t.HasEnv = true })}},
		{"an end with a reason of another state", "ended completed with reason", liar{ended: change("1", func(t *signalbox.Task) { t.Reason = signalbox.ReasonLost })}},
		{"two tasks in one place in line", "does not follow", liar{waiting: change("6", func(t *signalbox.Task) { t.Place = 5 })}},
		{"an enqueueing before an earlier one", "does not follow", liar{waiting: change("7", func(t *signalbox.Task) { t.EnqueuedAt = noon.Add(-time.Hour) })}},
		{"two current sessions of an agent", "both current", liar{talks: func(l []signalbox.Session) []signalbox.Session { l[1].Current = true; return l }}},
		{"a session in two places", "listed twice", liar{talks: func(l []signalbox.Session) []signalbox.Session { return append(l, l[1]) }}},
		{"sessions out of order", "stands before", liar{talks: func(l []signalbox.Session) []signalbox.Session { return []signalbox.Session{l[1], l[0]} }}},
		{"a session without a state", "unknown state", liar{talks: func(l []signalbox.Session) []signalbox.Session { l[0].State = ""; return l }}},
		{"a schedule is listed twice", "listed twice", liar{plans: func(l plans) plans { return append(l, l[1]) }}},
		{"two schedules have one name", "stands before", liar{plans: func(l plans) plans { l[1].Name = l[0].Name; return l }}},
		{"a schedule without a revision", "has revision 0", liar{plans: func(l plans) plans { l[0].Rev = 0; return l }}},
		{"a firing of no schedule", "there is no schedule sched-x", liar{plans: func(l plans) plans { return l[1:] }}},
		{"a decided firing among the open ones", "listed as open", liar{open: func(l runs) runs { l[0].Status = signalbox.RunQueued; return l }}},
		{"an open firing is listed twice", "listed twice", liar{open: func(l runs) runs { return append(l, l[0]) }}},
		{"a changed row of the audit log", "row 2 was changed", liar{audit: func(l []signalbox.Audit) []signalbox.Audit { l[1].Action = "x"; return l }}},
		{"a row of the audit log is missing", "1 rows are missing", liar{audit: func(l []signalbox.Audit) []signalbox.Audit { return append(l[:1:1], l[2:]...) }}},
		{"the end of the audit log is missing", "its head is row 3", liar{audit: func(l []signalbox.Audit) []signalbox.Audit {
			if l[0].Seq == 3 {
				return nil
			}
			return l[:2]
		}}},
		{"a gap in the journal", "follows", liar{journal: func(l []signalbox.Entry) []signalbox.Entry { return append(l[:2:2], l[3:]...) }}},
		{"a journal with another range", "its range says", liar{journal: func(l []signalbox.Entry) []signalbox.Entry { return l[1:] }}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			c.lie.Reader = busy(t)
			err := invariant.Check(context.Background(), c.lie)
			if err == nil || !strings.Contains(err.Error(), c.said) {
				t.Errorf("found %v, want something that %q", err, c.said)
			}
		})
	}
}

// anew is a store whose journal continues far above, as after a loss, after its first two entries.
type anew struct {
	store.Reader
	generation int64
}

const raised = 1_000_007

func (a anew) Generation() int64 { return a.generation }

func (a anew) Journal(ctx context.Context, after int64, limit int) ([]signalbox.Entry, error) {
	if after > raised {
		after -= raised
	}
	list, err := a.Reader.Journal(ctx, after, limit)
	for i := range list {
		if list[i].Seq > 2 {
			list[i].Seq += raised
		}
	}
	return list, err
}

func (a anew) JournalRange(ctx context.Context) (oldest, newest int64, err error) {
	oldest, newest, err = a.Reader.JournalRange(ctx)
	return oldest, newest + raised, err
}

// The journal of a server that lost something has a gap for each new generation, and no more.
func TestAGenerationMayLeaveAGapInTheJournal(t *testing.T) {
	r := busy(t)
	if err := invariant.Check(context.Background(), anew{r, 2}); err != nil {
		t.Error(err)
	}
	if err := invariant.Check(context.Background(), anew{r, 1}); err == nil || !strings.Contains(err.Error(), "follows 2") {
		t.Errorf("found %v", err)
	}
}
