package storetest

import (
	"cmp"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// event applies a random event to a random task, if Next allows it.
func (p *pair) event(t *rapid.T) {
	task, err := p.a.Task(p.ctx, p.anyID(t))
	if err != nil {
		return
	}
	ev := p.anyEvent(t, pick(t, "kind", signalbox.TaskEvents()...))
	ev.Fence = task.Fence + pick[int64](t, "fence", 0, 0, 0, 1)
	p.next(t, task, ev)
}

// progress moves an execution forward, which random events seldom do.
func (p *pair) progress(t *rapid.T) {
	flying, err := p.a.InFlight(p.ctx)
	if err != nil || len(flying) == 0 {
		return
	}
	task := rapid.SampledFrom(flying).Draw(t, "in flight")
	kind := signalbox.EventAccept
	if task.State != signalbox.Dispatching {
		kind = pick(t, "kind", signalbox.EventFinish, signalbox.EventFinish, signalbox.EventLost, signalbox.EventRelease, signalbox.EventStop,
			signalbox.EventPark, signalbox.EventPark)
	}
	ev := p.anyEvent(t, kind)
	ev.Fence = task.Fence
	p.next(t, task, ev)
}

// turn claims a task and moves it forward at once.
func (p *pair) turn(t *rapid.T) {
	p.claim(t)
	p.progress(t)
	p.progress(t)
}

func (p *pair) anyEvent(t *rapid.T, kind signalbox.EventKind) signalbox.Event {
	ev := signalbox.Event{
		Kind: kind, Now: p.now, Agent: "a", Slot: 0, TaskID: pick(t, "their id", "", "t1"),
		SessionID: pick(t, "session", someSessions...), Message: pick(t, "message", "", "because"),
		Delay: pick(t, "delay", 0, time.Second, time.Minute), Withhold: rapid.Bool().Draw(t, "withhold"),
		By: pick(t, "by", "", "me"), Queue: pick(t, "queue", someQueues...), IgnoreGates: rapid.Bool().Draw(t, "anyway"),
	}
	switch kind {
	case signalbox.EventFinish:
		ev.Reason = pick(t, "reason", signalbox.ReasonCompleted, signalbox.ReasonCompleted, signalbox.ReasonAgentError, signalbox.ReasonCancelled)
	case signalbox.EventStop:
		ev.Reason = pick(t, "reason", signalbox.ReasonRunTimeout, signalbox.ReasonStalled)
	case signalbox.EventEdit:
		ev.Edit = &signalbox.Edit{Order: pick(t, "order", signalbox.OrderKeep, signalbox.OrderBack, signalbox.OrderTop)}
		if rapid.Bool().Draw(t, "new request") {
			ev.Edit.Prompt = "p"
			ev.Edit.Request = &signalbox.Request{Prompt: pick(t, "prompt", "a", "b"), Queue: pick(t, "new queue", someQueues...)}
		}
		if rapid.Bool().Draw(t, "new rank") {
			one := 1
			ev.Edit.Priority, ev.Edit.Bias = &one, time.Minute
		}
	case signalbox.EventPark:
		ev.Parking = &signalbox.Parking{
			Gate: pick(t, "gate", closedMax, signalbox.Gate{Kind: signalbox.GateAccount, Name: "pro"}, signalbox.Gate{Kind: signalbox.GateTime, Until: p.now.Add(time.Minute)}),
			Next: pick(t, "next", "", "go on"), Began: rapid.Bool().Draw(t, "began"),
		}
	case signalbox.EventLost:
		ev.Reason = pick(t, "reason", signalbox.ReasonLost, signalbox.ReasonInterrupted)
	}
	if rapid.IntRange(0, 3).Draw(t, "tells of its account") == 0 {
		told := p.accountEvent(t)
		ev.Account = &told
	}
	if rapid.Bool().Draw(t, "result") {
		code := rapid.IntRange(0, 2).Draw(t, "exit code")
		ev.Result = &signalbox.Result{Output: "out", Tail: "tail", TailSeq: 7, ExitCode: &code, CostUSD: pick(t, "cost", 0, 0.1), Model: pick(t, "model", "", "m"), Answer: pick(t, "answer", "", `{"content":[]}`)}
	}
	return ev
}

// accountEvent is a random event of an account.
func (p *pair) accountEvent(t *rapid.T) signalbox.AccountEvent {
	ev := signalbox.AccountEvent{
		Kind: pick(t, "account's event", signalbox.AccountLimit, signalbox.AccountRefused, signalbox.AccountDue, signalbox.AccountDue,
			signalbox.AccountAnswered, signalbox.AccountOpened, signalbox.AccountClosedByPerson, signalbox.AccountReported),
		Account: pick(t, "account", "max", "max", "pro"), Now: p.now, Until: p.soon(t, "until"), Jitter: pick(t, "jitter", 0, time.Second),
		Window: pick(t, "window", "", "five_hour"), Reason: pick(t, "why", "", "limit reached"), Source: pick(t, "source", "event", "me"),
		Of: pick(t, "of", "", "claude"), Login: pick(t, "login", "", "ann"),
	}
	if rapid.Bool().Draw(t, "windows") {
		ev.Windows = []signalbox.AccountWindow{{Name: "five_hour", UsedPercent: pick(t, "used", 0, 99.5, 120), ResetsAt: p.soon(t, "resets")}}
	}
	return ev
}

func (p *pair) account(t *rapid.T) {
	ev := p.accountEvent(t)
	_, _ = both(t, p, "ChangeAccount", func(s store.Store) (store.AccountChange, error) { return s.ChangeAccount(p.ctx, ev) })
}

// removeAccount removes an account, with its current or an earlier row.
func (p *pair) removeAccount(t *rapid.T) {
	seen := signalbox.Account{Name: pick(t, "account", "max", "pro"), State: signalbox.AccountOpen}
	if all, err := p.a.Accounts(p.ctx); err == nil && len(all) > 0 && rapid.Bool().Draw(t, "as it is") {
		seen = all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
	}
	e := signalbox.Entry{At: p.now, Kind: signalbox.EventAccount, Account: seen.Name, Message: "removed"}
	_, _ = both(t, p, "RemoveAccount", func(s store.Store) (bool, error) { return true, s.RemoveAccount(p.ctx, seen, e) })
}

// gate opens the gate of a parked task, or ends it.
func (p *pair) gate(t *rapid.T) {
	if parked, err := p.a.Parked(p.ctx, "", ""); err == nil && len(parked) > 0 {
		kind := pick(t, "kind", signalbox.EventUnpark, signalbox.EventUnpark, signalbox.EventCancel, signalbox.EventMove, signalbox.EventUndeliverable)
		p.next(t, rapid.SampledFrom(parked).Draw(t, "parked"), p.anyEvent(t, kind))
	}
}

func (p *pair) wish(t *rapid.T) signalbox.LandWish {
	return signalbox.LandWish{Onto: pick(t, "onto", "main", "pr"), Method: pick(t, "method", "", "squash"), FastForward: rapid.Bool().Draw(t, "fast forward")}
}

// landing applies a random event to the landing of an ended task, usually of one that has a landing.
func (p *pair) landing(t *rapid.T) {
	task, err := p.a.Task(p.ctx, p.anyID(t))
	if open, failed := p.a.Landings(p.ctx); failed == nil && len(open) > 0 && rapid.IntRange(0, 3).Draw(t, "an open one") > 0 {
		task, err = rapid.SampledFrom(open).Draw(t, "landing"), nil
	}
	if err != nil || task.Rev == 1 { // the invariants recognize restored tasks by their revision
		return
	}
	ev := signalbox.LandingEvent{
		Kind: pick(t, "landing's event", signalbox.LandingEventKinds()...), Now: p.now, Wish: p.wish(t), By: "ann", Task: pick(t, "by task", id(7), id(8)),
		Done: signalbox.Landed{Commit: "c", Was: "b"}, Rounds: pick(t, "rounds", 0, 2), Text: pick(t, "text", "", "a.go is changed by both"),
	}
	if l := task.Landing; l != nil && rapid.Bool().Draw(t, "of its task") {
		ev.Task = cmp.Or(l.Turn, l.LandTask)
	}
	if c, ok, err := task.ChangeLanding(ev); err == nil && ok {
		p.apply(t, c)
	}
}

func (p *pair) next(t *rapid.T, task signalbox.Task, ev signalbox.Event) {
	if ev.Edit != nil {
		ev.Edit.Rev = task.Rev
	}
	if c, err := signalbox.Next(task, ev); err == nil {
		p.apply(t, c)
	}
}

// stale stores a change that was made earlier.
func (p *pair) stale(t *rapid.T) {
	if len(p.old) > 0 {
		p.apply(t, rapid.SampledFrom(p.old).Draw(t, "change"))
	}
}

// anySlot is the place of some slot row, sometimes with a wrong fence.
func (p *pair) anySlot(t *rapid.T) store.Lease {
	l := store.Lease{Agent: "a", Expires: p.now.Add(pick(t, "expires", time.Second, time.Hour))}
	if rows, err := p.a.Slots(p.ctx); err == nil && len(rows) > 0 {
		row := rapid.SampledFrom(rows).Draw(t, "slot")
		l.Agent, l.Slot, l.Fence = row.Agent, row.Slot, row.Fence
	}
	l.Fence += pick[int64](t, "fence", 0, 0, 0, 1)
	return l
}

func (p *pair) renew(t *rapid.T) {
	var leases []store.Lease
	for range rapid.IntRange(0, 3).Draw(t, "leases") {
		leases = append(leases, p.anySlot(t))
	}
	_, _ = both(t, p, "Renew", func(s store.Store) (int, error) { return s.Renew(p.ctx, leases) })
}

func (p *pair) free(t *rapid.T) {
	l := p.anySlot(t)
	if rows, err := p.a.Slots(p.ctx); err == nil && rapid.Bool().Draw(t, "withheld") {
		for _, row := range rows {
			if row.Withheld {
				l.Agent, l.Slot, l.Fence = row.Agent, row.Slot, row.Fence
			}
		}
	}
	_, _ = both(t, p, "FreeSlot", func(s store.Store) (bool, error) { return s.FreeSlot(p.ctx, l.Agent, l.Slot, l.Fence) })
}

func (p *pair) wake(t *rapid.T) {
	type woke struct {
		IDs  []string
		Next time.Time
	}
	limit := rapid.IntRange(0, 4).Draw(t, "limit")
	_, _ = both(t, p, "Wake", func(s store.Store) (woke, error) {
		woken, next, err := s.Wake(p.ctx, p.now, limit)
		return woke{woken, next}, err
	})
}

// agent adds, changes or removes an agent. All have the most slots that claim ever asks for, so that none
// runs more than it has.
func (p *pair) agent(t *rapid.T) {
	a := signalbox.Agent{
		Name: pick(t, "agent", someAgents...), Kind: pick(t, "kind", "k", "l"), Slots: 3, Fencing: rapid.Bool().Draw(t, "fencing"), Proof: rapid.Bool().Draw(t, "proof"),
		Source: signalbox.AgentRegistered, SealedToken: []byte(pick(t, "token", "", "t")), CreatedAt: p.now,
	}
	e := signalbox.Entry{At: p.now, Kind: signalbox.EventAgentAdded, Agent: a.Name}
	remove := rapid.IntRange(0, 2).Draw(t, "remove") == 0
	_, _ = both(t, p, "agent", func(s store.Store) (bool, error) {
		if remove {
			return remove, s.RemoveAgent(p.ctx, a.Name, e)
		}
		return remove, s.PutAgent(p.ctx, a, e)
	})
}

func (p *pair) pause(t *rapid.T) {
	queue := pick(t, "queue", "", "work", "pool:k", "agent:a")
	e := signalbox.Entry{At: p.now, Kind: signalbox.EventPaused, Queue: queue}
	if rapid.Bool().Draw(t, "resume") {
		_, _ = both(t, p, "Resume", func(s store.Store) (bool, error) { return s.Resume(p.ctx, queue, e) })
		return
	}
	pause := signalbox.Pause{Queue: queue, Reason: "r", By: "me", AtMS: p.now.UnixMilli()}
	if d := pick(t, "until", 0, time.Second, time.Minute); d > 0 {
		pause.UntilMS = p.now.Add(d).UnixMilli()
	}
	_, _ = both(t, p, "SetPause", func(s store.Store) (bool, error) { return true, s.SetPause(p.ctx, pause, e) })
}

func (p *pair) note(t *rapid.T) {
	e := signalbox.Entry{At: p.now, Kind: signalbox.EventAgentDown, Agent: pick(t, "agent", someAgents...), Message: "silent"}
	_, _ = both(t, p, "Note", func(s store.Store) (bool, error) { return true, s.Note(p.ctx, e) })
}

func (p *pair) prune(t *rapid.T) {
	how := store.Pruning{Limit: rapid.IntRange(0, 5).Draw(t, "limit"), After: p.pruned, Usage: signalbox.DayOf(p.now) - pick[signalbox.Day](t, "usage", -1, 0, 1, 400)}
	if rapid.Bool().Draw(t, "old") {
		how.Ended = p.now.Add(pick(t, "ended", -time.Hour, -time.Minute, 0, time.Second))
	}
	how.Bytes = pick[int64](t, "bytes", 0, 0, 1, 5000)
	if more := pick[int64](t, "owner's bytes", -1, 0, 1, 5000); more >= 0 {
		how.Owners = map[string]int64{"user:ann": more}
	}
	_, _ = both(t, p, "Kept", func(s store.Store) (map[string]int64, error) { return s.Kept(p.ctx) })
	did, _ := both(t, p, "Prune", func(s store.Store) (store.Pruned, error) { return s.Prune(p.ctx, how) })
	p.pruned = did.Next
}

// time moves the clock, sometimes backwards.
func (p *pair) time(t *rapid.T) {
	p.now = p.now.Add(pick(t, "step", time.Millisecond, time.Second, time.Minute, time.Hour, 20*time.Hour, -time.Second, -time.Hour))
}

// pages compares lists that are limited, filtered or continued.
func (p *pair) pages(t *rapid.T) {
	limit := rapid.IntRange(1, 4).Draw(t, "limit")
	queue := pick(t, "queue", append([]string{""}, someQueues...)...)
	_, _ = both(t, p, "Waiting in pages", func(s store.Store) ([][]string, error) { return p.waitingPages(s, queue, limit) })
	q := store.HistoryQuery{Limit: limit}
	if rapid.Bool().Draw(t, "filtered") {
		q.State, q.Agent = pick(t, "state", "", signalbox.Completed, signalbox.Cancelled), pick(t, "agent", "", "a")
		q.Mode, q.Tool = pick(t, "mode", "", signalbox.ModeTool), pick(t, "tool", "", "report")
		q.Queue, q.Source = queue, pick(t, "source", "", signalbox.SourceAPI)
		q.SessionID, q.Text = pick(t, "session", someSessions...), pick(t, "text", "", "ä", "%")
		q.Since, q.Until = p.soon(t, "since"), p.soon(t, "until")
	}
	_, _ = both(t, p, fmt.Sprintf("History %+v", q), func(s store.Store) ([]signalbox.Task, error) { return p.historyPages(s, q) })
	p.identityPages(t, limit)
	after := int64(rapid.IntRange(0, 30).Draw(t, "after"))
	_, _ = both(t, p, "Journal", func(s store.Store) ([]signalbox.Entry, error) { return s.Journal(p.ctx, after, limit) })
	_, _ = both(t, p, "Overdue", func(s store.Store) ([]signalbox.Task, error) { return s.Overdue(p.ctx, p.now, limit) })
	part := pick(t, "part", "queue-", "1", "0", "queue-00000000000000000000000001", "")
	_, _ = both(t, p, "Find", func(s store.Store) ([]string, error) { return s.Find(p.ctx, part, limit) })
	key := pick(t, "sought key", "", "k1", "k2", "k3")
	_, _ = both(t, p, "ByKey", func(s store.Store) (signalbox.Task, error) { return s.ByKey(p.ctx, key) })
	_, _ = both(t, p, "Durations", func(s store.Store) ([]time.Duration, error) { return s.Durations(p.ctx, "a", limit) })
}

func (p *pair) waitingPages(s store.Store, queue string, limit int) ([][]string, error) {
	var pages [][]string
	var after store.Cursor
	for {
		page, err := s.Waiting(p.ctx, queue, after, limit)
		if err != nil || len(page) == 0 {
			return pages, err
		}
		pages = append(pages, ids(page))
		after = store.CursorOf(&page[len(page)-1])
	}
}

// historyPages reads all pages as one list, since each store may cut it differently.
func (p *pair) historyPages(s store.Store, q store.HistoryQuery) ([]signalbox.Task, error) {
	var all []signalbox.Task
	for {
		page, err := s.History(p.ctx, q)
		all = append(all, page.Tasks...)
		if err != nil || page.Next == "" {
			return all, err
		}
		if page.Next == q.Before {
			return all, fmt.Errorf("the history does not get past the cursor %q", page.Next)
		}
		q.Before = page.Next
	}
}

// restore stores a task from another store, waiting or ended.
func (p *pair) restore(t *rapid.T) {
	s := p.anySubmission(t)
	r := store.Restored{Task: s.Task, Request: s.Request, Now: p.now}
	r.Task.EnqueuedAt = p.now.Add(-pick(t, "waited", 0, time.Second, time.Hour))
	if rapid.Bool().Draw(t, "ended") {
		r.Task.State, r.Task.Reason, r.Task.Message, r.Task.HasEnv = signalbox.Completed, signalbox.ReasonCompleted, "done", false
		r.Task.Agent, r.Task.Fence = "a", pick[int64](t, "fence", 1, 99)
		r.Task.EndedAt = p.now.Add(-pick(t, "ago", 0, time.Minute))
		r.Task.StartedAt = r.Task.EndedAt.Add(-time.Second)
		r.Request.SealedEnv = nil
		r.Result = &signalbox.Result{Output: "out"}
		r.Task.SettleLanding(p.now)
	}
	_, _ = both(t, p, "Restore", func(s store.Store) (signalbox.Task, error) { return s.Restore(p.ctx, r) })
}

// schedule adds, changes or removes a schedule, usually with the stored revision, with firings at a few
// instants.
func (p *pair) schedule(t *rapid.T) {
	name := pick(t, "id", "x", "y", "z")
	e := signalbox.Entry{At: p.now, Kind: pick(t, "kind", "", signalbox.EventScheduleFired, signalbox.EventScheduleChanged), Schedule: name}
	if rapid.IntRange(0, 9).Draw(t, "remove") == 0 {
		_, _ = both(t, p, "DeleteSchedule", func(s store.Store) (bool, error) { return s.DeleteSchedule(p.ctx, name, e) })
		return
	}
	row := aSchedule(name)
	row.ID, row.Name = name, pick(t, "name", name, name, name, "x")
	row.Cursor, row.LastStatus = p.soon(t, "cursor"), pick(t, "status", "", signalbox.RunQueued)
	if held, err := p.a.Schedule(p.ctx, name); err == nil {
		row.Rev = held.Rev
	}
	row.Rev += pick[int64](t, "revision", 0, 0, 0, 0, 1, -1)
	runs := p.firings(t)
	_, _ = both(t, p, "PutSchedule", func(s store.Store) (signalbox.Schedule, error) { return s.PutSchedule(p.ctx, row, runs, e) })
}

// firings returns none, a few, or more firings than are kept.
func (p *pair) firings(t *rapid.T) (runs []signalbox.ScheduleRun) {
	count := pick(t, "runs", 0, 1, 1, 1, 2, 40)
	for n := range count {
		name, at := fmt.Sprintf("r%d", rapid.IntRange(0, 9).Draw(t, "run")), p.now
		if count > 2 {
			p.fired++
			name, at = fmt.Sprintf("m%d", p.fired), at.Add(time.Duration(n)*time.Second)
		}
		run := aRun(name, at)
		if rapid.IntRange(0, 2).Draw(t, "open") == 0 {
			run = opened(name, at)
		}
		runs = append(runs, run)
	}
	return runs
}

// restoreUsage stores a row of usage from another store, sometimes with an existing key.
func (p *pair) restoreUsage(t *rapid.T) {
	u := aUsage(pick(t, "agent", someAgents...))
	u.Day = signalbox.DayOf(p.now) - pick[signalbox.Day](t, "days ago", 0, 1, 2)
	_, _ = both(t, p, "RestoreUsage", func(s store.Store) (bool, error) { return true, s.RestoreUsage(p.ctx, u) })
}
