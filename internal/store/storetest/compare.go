package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Compare runs random histories of verbs on two or more kinds of store. After each verb, all stores must give
// the same answer, and the same answers to all reads. The functions open new, empty stores; Compare closes
// them. The others are compared with the first one: the memory store is the reference. A store that is
// Several is used by its processes in turn.
//
// A failure prints the shortest history found and a seed that repeats it;
// -rapid.checks and -rapid.steps make the search longer.
func Compare(t *testing.T, open ...func(t *testing.T) store.Store) {
	t.Helper()
	if len(open) < 2 {
		t.Fatal("one store is compared with nothing")
	}
	steps, histories := 0, 0
	var kinds []string
	rapid.Check(t, func(rt *rapid.T) {
		p := newPair(t, open)
		defer p.close(rt)
		for range 2 { // the next run starts with what this one left
			rt.Repeat(p.verbs())
		}
		steps, histories, kinds = steps+p.steps, histories+1, p.kinds()
	})
	if t.Failed() {
		return
	}
	if steps == 0 {
		t.Fatal("not one step was compared")
	}
	t.Logf("%d histories with %d steps were the same on %s", histories, steps, strings.Join(kinds, ", "))
}

// verbs are the steps of a history. Steps that move tasks forward are listed more than once, so that
// histories reach ended tasks, pages and withheld slots.
func (p *pair) verbs() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":       p.checkReads,
		"submit": p.submit, "submit 2": p.submit, "submit 3": p.submit,
		"claim": p.claim, "claim 2": p.claim,
		"turn": p.turn, "turn 2": p.turn, "turn 3": p.turn,
		"progress": p.progress, "progress 2": p.progress,
		"account": p.account, "remove account": p.removeAccount, "gate": p.gate,
		"landing": p.landing, "landing 2": p.landing,
		"restore": p.restore,
		"event":   p.event, "stale": p.stale, "renew": p.renew, "free": p.free, "wake": p.wake, "agent": p.agent,
		"session": p.session, "said late": p.keepStale, "credential": p.credential, "audit": p.audit, "chat": p.chat,
		"schedule": p.schedule, "schedule 2": p.schedule,
		"old usage": p.restoreUsage,
		"beat":      p.beat, "tickets": p.tickets,
		"pause": p.pause, "note": p.note, "prune": p.prune, "time": p.time, "pages": p.pages, "pages 2": p.pages,
	}
}

// pair is stores with the same history.
type pair struct {
	ctx    context.Context
	a      store.Store // the first one
	others []store.Store
	now    time.Time
	n      int                // tasks submitted
	fired  int                // runs of schedules with a unique name
	called int                // calls that were in a tool queue
	old    []signalbox.Change // made earlier, stored or not
	seen   map[string]any     // results of the reads when the invariants were last checked
	pruned store.EndedCursor  // end of the last Prune
	steps  int
}

func newPair(t *testing.T, open []func(t *testing.T) store.Store) *pair {
	p := &pair{ctx: context.Background(), a: open[0](t), now: start}
	for _, other := range open[1:] {
		p.others = append(p.others, other(t))
	}
	return p
}

// Several is a store that more than one process has open.
type Several interface {
	store.Store
	// Process returns the store of process n, counted modulo their number.
	Process(n int) store.Store
}

// inTurn returns the store of one process for two steps, then of the next: the first step finds what another
// process wrote, the second its own.
func (p *pair) inTurn(s store.Store) store.Store {
	if several, ok := s.(Several); ok {
		return several.Process(p.steps / 2)
	}
	return s
}

func (p *pair) all() []store.Store { return append([]store.Store{p.a}, p.others...) }

func (p *pair) kinds() (list []string) {
	for _, s := range p.all() {
		list = append(list, s.Info().Kind)
	}
	return list
}

func (p *pair) close(t *rapid.T) {
	for _, s := range p.all() {
		if err := s.Close(); err != nil {
			t.Errorf("Close of %s: %v", s.Info().Kind, err)
		}
	}
}

// both calls a verb on all stores and wants the same result.
func both[T any](t *rapid.T, p *pair, what string, call func(s store.Store) (T, error)) (T, error) {
	p.steps++
	x, err := call(p.a)
	for _, other := range p.others {
		y, err2 := call(p.inTurn(other))
		if outcome(err) != outcome(err2) {
			t.Fatalf("%s: %s says %v, %s %v", what, p.a.Info().Kind, err, other.Info().Kind, err2)
		}
		if d := diff(x, y); d != "" {
			t.Fatalf("%s: the answers differ (-%s +%s):\n%s", what, p.a.Info().Kind, other.Info().Kind, d)
		}
	}
	return x, err
}

// outcome is the part of an error that stores must agree on, which is not its text.
func outcome(err error) string {
	if errors.Is(err, store.ErrStale) {
		return "stale"
	}
	return string(signalbox.CodeOf(err))
}

// checkReads compares all reads and checks the invariants of the first store. The others have the same reads,
// so they hold there, too.
func (p *pair) checkReads(t *rapid.T) {
	var reads sync.WaitGroup
	read := make([]map[string]any, len(p.others))
	for n, other := range p.others {
		reads.Go(func() { read[n] = surveyOf(p.ctx, p.inTurn(other), p.now, p.n) })
	}
	x := surveyOf(p.ctx, p.a, p.now, p.n)
	reads.Wait()
	for n, other := range p.others {
		if d := diff(x, read[n]); d != "" {
			t.Fatalf("the reads differ (-%s +%s):\n%s", p.a.Info().Kind, other.Info().Kind, d)
		}
	}
	if reflect.DeepEqual(x, p.seen) {
		return // these rows were checked before
	}
	p.seen = x
	checkTickets(t, x)
	if err := Invariants(p.ctx, p.a); err != nil {
		t.Fatal(err)
	}
}

func pick[T any](t *rapid.T, name string, from ...T) T { return rapid.SampledFrom(from).Draw(t, name) }

// soon is a time close to now, or zero.
func (p *pair) soon(t *rapid.T, name string) time.Time {
	switch d := pick(t, name, 0, -time.Minute, time.Second, time.Minute); d {
	case 0:
		return time.Time{}
	default:
		return p.now.Add(d)
	}
}

// anyID is the id of some task, sometimes of one that does not exist.
func (p *pair) anyID(t *rapid.T) string { return id(rapid.IntRange(1, p.n+1).Draw(t, "task")) }

// knownID is the id of a task that the stores know. Ids of pruned tasks are not used again: ids are unique,
// and a change of the first task would match the second.
func (p *pair) knownID(t *rapid.T, otherwise string) string {
	known := p.anyID(t)
	if _, err := p.a.Task(p.ctx, known); err != nil {
		return otherwise
	}
	return known
}

func (p *pair) submit(t *rapid.T) { p.store(t, p.anySubmission(t)) }

func (p *pair) anySubmission(t *rapid.T) store.Submission {
	p.n++
	name := id(p.n)
	if rapid.IntRange(0, 19).Draw(t, "same id") == 0 {
		name = p.knownID(t, name)
	}
	priority := rapid.IntRange(-2, 2).Draw(t, "priority")
	key := pick(t, "key", "", "", "", "k1", "k2")
	s := store.Submission{
		Task: signalbox.Task{
			Mode: pick(t, "mode", "", "", signalbox.ModeChat, signalbox.ModeBypass, signalbox.ModeTool), Owner: pick(t, "owner", "", "user:ann"),
			ParentID: pick(t, "parent", "", "", id(1), id(2)), ID: name, State: signalbox.Pending, Queue: pick(t, "queue", someQueues...),
			Limit: pick(t, "limit", "work", "work", "chat:a"), Priority: priority, Bias: time.Duration(priority) * time.Minute,
			NotBefore: p.soon(t, "not before"), WaitUntil: p.soon(t, "wait until"),
			SessionID: pick(t, "session", someSessions...), SessionMode: signalbox.SessionRequire,
			OnLost:      pick(t, "on lost", signalbox.LostFail, signalbox.LostRequeue),
			MaxAttempts: rapid.IntRange(1, 3).Draw(t, "max attempts"), HasEnv: rapid.Bool().Draw(t, "env"),
			Source: pick(t, "source", signalbox.SourceAPI, signalbox.SourceScheduler), SourceJob: pick(t, "job", "", "nightly"), Preview: pick(t, "preview", "Ä fix", "b%", ""),
			IdempotencyKey: key, IdempotencyHash: pick(t, "hash", "h1", "h1", "h2"), CreatedAt: p.now,
		},
		Request:       signalbox.Request{Prompt: fmt.Sprint("do ", name), Model: pick(t, "model", "", "m")},
		Cap:           pick(t, "cap", 0, 0, 0, 3),
		FollowSession: rapid.Bool().Draw(t, "follow"),
		Room:          p.room(t),
		Now:           p.now,
	}
	if s.Task.Mode == signalbox.ModeTool {
		s.Task.Tool, s.Request.Prompt = pick(t, "tool", "report", "build"), ""
		s.Request.Arguments, s.Request.TimeoutMS = json.RawMessage(`{"n":"`+name+`"}`), pick[int64](t, "timeout", 0, 1500)
	}
	s.Task.Needs = pick(t, "needs", nil, nil, &[]signalbox.Need{{Resource: "db", N: 1}}, &[]signalbox.Need{{Resource: "db", N: 2}, {Resource: "port", N: 1}})
	s.Task.Workplace = pick(t, "workplace", "", "", signalbox.WorkplaceFolder, signalbox.WorkplaceOther)
	if rapid.IntRange(0, 2).Draw(t, "lands") == 0 {
		s.Task.Landing = &signalbox.Landing{LandWish: p.wish(t), State: signalbox.LandingWanted, By: "ann", At: p.now, Since: p.now}
	}
	if s.Task.HasEnv {
		s.Request.SealedEnv = []byte("sealed " + name)
	}
	if rapid.IntRange(0, 3).Draw(t, "of a release that counted") > 0 {
		s.Task.RequestSize = s.Request.Size()
	}
	return s
}

func (p *pair) store(t *rapid.T, s store.Submission) {
	_, _ = both(t, p, "Submit", func(to store.Store) (store.Submitted, error) {
		got, err := to.Submit(p.ctx, s)
		if place := got.Position; place.N > 0 { // a store may return it
			if asked, err := to.Position(p.ctx, got.Task.ID); err != nil || asked != place {
				t.Fatalf("Submit says that the place in line is %+v, and Position %+v (%v)", place, asked, err)
			}
		}
		got.Position = store.Position{}
		return got, err
	})
}

func (p *pair) claim(t *rapid.T) {
	agent := pick(t, "agent", someAgents...)
	c := store.ClaimRequest{
		Agent: agent, AgentURL: "http://" + agent, Slots: rapid.IntRange(0, 3).Draw(t, "slots"),
		Queues:     pick(t, "queues", []string{"agent:" + agent, "pool:k", "work"}, []string{"work"}, someQueues, nil),
		FenceAbove: pick[int64](t, "fence above", 0, 0, 0, 10, 100), Expires: p.now.Add(time.Minute), Now: p.now,
		Isolated: rapid.IntRange(0, 4).Draw(t, "isolated") == 0, Fleet: pick(t, "fleet", 0, 0, 0, 1, 3),
		Account: pick(t, "account", append([]string{"", ""}, someAccounts...)...), Closed: rapid.IntRange(0, 9).Draw(t, "closed") == 0,
		Folder: pick(t, "folder", "", "", "shop"), Workplace: pick(t, "workplace", signalbox.WorkplaceFolder, signalbox.WorkplaceOther),
		Resources: map[string]signalbox.Resource{"db": {Capacity: 2}, "port": {Capacity: 2, Values: []string{"3001", "3002"}}},
		Except: store.Except{
			Sources: pick(t, "reserved", nil, nil, []signalbox.Source{signalbox.SourceScheduler}),
			Owners:  pick(t, "owners", nil, nil, []string{"user:ann"}),
		},
	}
	_, _ = both(t, p, "Claim", func(to store.Store) (store.Claimed, error) { return to.Claim(p.ctx, c) })
}

// apply stores a change, and keeps it to store it again when it is stale.
func (p *pair) apply(t *rapid.T, c signalbox.Change) {
	p.old = append(p.old, c)
	_, _ = both(t, p, "Apply "+string(c.Entry.Kind), func(to store.Store) (signalbox.Task, error) { return to.Apply(p.ctx, c, p.now) })
}
