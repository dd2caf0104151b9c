package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// openTest opens a backend, and closes it at the end of the test.
func openTest(tb testing.TB, url string) *Backend {
	tb.Helper()
	g, err := Open(context.Background(), Options{URL: url})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := g.Close(); err != nil {
			tb.Error(err)
		}
	})
	return g.(*Backend)
}

// process is a process whose batches a test writes by hand.
type process struct {
	testing.TB
	*Backend
	name   string
	number int64
	at     verbs.Counters
	queued int
}

func newProcess(tb testing.TB, g *Backend, name string) *process {
	tb.Helper()
	p := &process{TB: tb, Backend: g, name: name}
	p.load(verbs.Want{})
	return p
}

func (p *process) load(w verbs.Want) *verbs.Loaded {
	p.Helper()
	w.Writer = p.name
	l, err := p.Load(context.Background(), &w)
	if err != nil {
		p.Fatal(err)
	}
	p.at, p.number = l.Counters, l.Number
	return l
}

// delta begins a batch.
func (p *process) delta() *verbs.Delta {
	d := &verbs.Delta{Writer: p.name, Number: p.number + 1, From: p.at, To: p.at}
	d.To.Moment++
	return d
}

// commit writes a batch, which must succeed.
func (p *process) commit(d *verbs.Delta) {
	p.Helper()
	if err := p.try(d); err != nil {
		p.Fatal(err)
	}
}

func (p *process) try(d *verbs.Delta) error {
	err := p.Commit(context.Background(), d)
	if err == nil {
		p.at, p.number = d.To, d.Number
	}
	return err
}

// submit adds new tasks of the queue work to a batch.
func (p *process) submit(d *verbs.Delta, n int, change ...func(t *signalbox.Task)) []*signalbox.Task {
	var made []*signalbox.Task
	for range n {
		d.To.Seq++
		d.To.Place++
		d.To.Entry++
		t := &signalbox.Task{
			ID: fmt.Sprintf("queue-%016d", d.To.Seq), Seq: d.To.Seq, Rev: 1, State: signalbox.Pending, Queue: "work", Limit: "work",
			Place: d.To.Place, Ready: true, EnqueuedAt: start, CreatedAt: start, Source: signalbox.SourceAPI, Preview: "say hello", MaxAttempts: 3,
			OnLost: signalbox.LostFail, SessionMode: signalbox.SessionRequire,
		}
		for _, f := range change {
			f(t)
		}
		made = append(made, t)
		d.Tasks = append(d.Tasks, verbs.TaskChange{After: t})
		d.Requests = append(d.Requests, verbs.RequestRow{Seq: t.Seq, Request: signalbox.Request{Prompt: "say hello to everyone in the house", SealedEnv: nil}})
		d.Entries = append(d.Entries, signalbox.SubmitEntry(t, start))
	}
	p.queued += n
	p.counts(d)
	return made
}

func (p *process) counts(d *verbs.Delta) {
	d.Queues = []verbs.QueueChange{{Queue: "work", QueueCount: verbs.QueueCount{Waiting: p.queued, Ready: p.queued}}}
	d.Limits = []verbs.LimitChange{{Limit: "work", N: p.queued}}
}

// claim gives a task a slot.
func (p *process) claim(d *verbs.Delta, t *signalbox.Task, slot int) *signalbox.Task {
	after := *t
	d.To.Fence++
	d.To.Entry++
	after.Rev++
	after.State, after.Ready, after.Agent, after.AgentURL = signalbox.Dispatching, false, "alpha", "http://127.0.0.1:9000"
	after.Slot, after.Fence, after.DispatchedAt, after.Claims = slot, d.To.Fence, start, 1
	d.Tasks = append(d.Tasks, verbs.TaskChange{Before: t, After: &after})
	d.Slots = append(d.Slots, verbs.SlotChange{Agent: "alpha", Slot: slot, After: &signalbox.Slot{
		Agent: "alpha", Slot: slot, TaskID: t.ID, Fence: after.Fence, Expires: start.Add(time.Minute),
	}})
	d.Entries = append(d.Entries, signalbox.Entry{At: start, Kind: signalbox.EventClaim, QueueID: t.ID, State: after.State, Queue: t.Queue, Agent: "alpha", Fence: after.Fence})
	p.queued--
	p.counts(d)
	return &after
}

// finish ends a task.
func (p *process) finish(d *verbs.Delta, t *signalbox.Task) *signalbox.Task {
	after := *t
	d.To.Entry++
	after.Rev++
	after.State, after.Reason, after.Message = signalbox.Completed, signalbox.ReasonCompleted, "completed"
	after.StartedAt, after.EndedAt = start, start.Add(time.Second)
	d.Tasks = append(d.Tasks, verbs.TaskChange{Before: t, After: &after})
	d.Results = append(d.Results, verbs.ResultRow{Seq: t.Seq, Result: signalbox.Result{Output: "hello to everyone in the house"}})
	d.Slots = append(d.Slots, verbs.SlotChange{Agent: t.Agent, Slot: t.Slot})
	d.Entries = append(d.Entries, signalbox.Entry{At: start, Kind: signalbox.EventFinish, QueueID: t.ID, State: after.State, Reason: after.Reason, Queue: t.Queue, Agent: "alpha", Fence: t.Fence})
	return &after
}

func TestCommittedBatchIsLoaded(t *testing.T) {
	p := newProcess(t, openTest(t, testserver.Postgres(t)), "one")
	d := p.delta()
	made := p.submit(d, 3)
	p.commit(d)
	l := p.load(verbs.Want{
		Tasks: []string{made[1].ID, "nobody", made[0].ID}, Lines: []verbs.LineWant{{Queue: "work", N: 2}}, Queues: []string{"none", "work"},
		Limits: []string{"work"}, Requests: []int64{made[2].Seq},
	})
	if l.Moment != 1 || l.Number != 1 || l.Seq != 3 || l.Tasks[1] != nil || *l.Tasks[0] != *made[1] || *l.Tasks[2] != *made[0] {
		t.Errorf("loaded %+v", l)
	}
	if len(l.Lines[0]) != 2 || *l.Lines[0][0] != *made[0] || l.Queues[1].Waiting != 3 || l.Limits[0] != 3 || l.Requests[0].Prompt == "" {
		t.Errorf("loaded %+v", l)
	}
	d = p.delta()
	running := p.claim(d, made[0], 0)
	p.commit(d)
	if flying, err := p.InFlight(t.Context()); err != nil || len(flying) != 1 || flying[0] != *running {
		t.Errorf("in flight %+v (%v)", flying, err)
	}
	d = p.delta()
	ended := p.finish(d, running)
	p.commit(d)
	if got, err := p.Ended(t.Context(), store.EndedCursor{EndedMS: 1 << 60}, 10); err != nil || len(got) != 1 || got[0] != *ended {
		t.Errorf("ended %+v (%v)", got, err)
	}
	if w, err := p.Whole(t.Context(), ended.ID); err != nil || w.Result == nil || w.Result.Output == "" {
		t.Errorf("result %+v (%v)", w.Result, err)
	}
	if s, _, err := p.Snapshot(t.Context(), 5); err != nil || s.Counts.Pending != 2 || len(s.Heads["work"]) != 2 || s.Entry != 5 {
		t.Errorf("snapshot %+v (%v)", s, err)
	}
	if e, err := p.Entries(t.Context(), 2, 10); err != nil || len(e) != 3 || e[0].Seq != 3 || e[2].Writer != "one" {
		t.Errorf("entries %+v (%v)", e, err)
	}
}

func contains(text, part string) bool { return strings.Contains(text, part) }
