package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// wasSent reports whether a request without an answer may have arrived.
func wasSent(err error) (sent, unreachable bool) {
	var gone *client.UnreachableError
	if !errors.As(err, &gone) {
		return false, false
	}
	return gone.Sent, true
}

// linDeck is what a submitter does, shuffled, so that each kind of request
// occurs in every history.
var linDeck = []string{"submit", "submit", "submit", "submit", "again", "other", "cancel", "cancel", "read", "read"}

// submits is one submitter.
func (l *linLine) submits(who int, rng *rand.Rand, rounds int) {
	n := 0
	for range rounds {
		l.submitNew(who, rng, &n) // so that later requests have a task
		for _, i := range rng.Perm(len(linDeck)) {
			if l.t.Failed() { // there may be none
				return
			}
			switch what := linDeck[i]; what {
			case "submit":
				l.submitNew(who, rng, &n)
			case "again", "other":
				in := pickOf(l, rng, func() []linIn { return l.keys })
				if what == "other" {
					in.body += " otherwise"
				}
				l.submit(who, in)
			default:
				l.about(who, what, pickOf(l, rng, func() []string { return l.ids }))
			}
		}
	}
}

func pickOf[T any](l *linLine, rng *rand.Rand, list func() []T) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := list()
	return all[rng.IntN(len(all))]
}

func (l *linLine) submitNew(who int, rng *rand.Rand, n *int) {
	*n++
	key := fmt.Sprintf("%s-%d-%d", l.kind, who, *n)
	in := linIn{verb: "submit", key: key, body: "task " + key, prio: 10 * (rng.IntN(4) / 3)}
	l.submit(who, in)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = append(l.keys, in)
}

func (l *linLine) submit(who int, in linIn) {
	_, _ = l.until(who, in, func(ctx context.Context) (linOut, error) {
		got, err := l.c.Submit(ctx, api.SubmitRequest{Prompt: in.body, Kind: l.kind, Priority: in.prio}, client.SubmitOptions{IdempotencyKey: in.key})
		return linOut{id: got.QueueID, state: got.State, replayed: got.Replayed}, err
	})
}

// about reads or cancels a task, or lets it run anyway.
func (l *linLine) about(who int, verb, id string) {
	in := linIn{verb: verb, id: id}
	called := l.now()
	out, err := l.until(who, in, func(ctx context.Context) (linOut, error) {
		if verb == "read" {
			task, err := l.c.Task(ctx, id)
			return linOut{id: task.QueueID, state: task.State, fence: task.Fence}, err
		}
		if verb == "unpark" {
			task, err := l.c.Unpark(ctx, id)
			return linOut{id: task.QueueID, state: task.State}, err
		}
		got, err := l.c.Cancel(ctx, id)
		return linOut{id: got.QueueID, state: got.State, begun: got.WasDispatched}, err
	})
	if err == nil && (verb == "cancel" && out.begun || verb == "unpark") {
		// The cancel and the read of the state are two operations.
		seen := l.ask(l.reader(), linIn{verb: "read", id: id})
		seen.op.Call = called
		seen.answered(nil, linOut{id: id, state: out.state, fence: fenceUnsaid})
	}
}

// reader is a separate client, for reads beside another request.
func (l *linLine) reader() int { return int(l.clients.Add(1)) - 1 }

// linAgent is a pulling agent with one slot.
type linAgent struct {
	*linLine
	who      int
	name     string
	instance string
	rng      *rand.Rand
	manners  []int // shuffled: how it handles the next tasks
	turned   bool  // it was busy for the last one: after a second time it would be backed off
}

func (l *linLine) agent(n int, rng *rand.Rand) *linAgent {
	a := &linAgent{linLine: l, who: l.reader(), name: fmt.Sprintf("%s-agent-%d", l.kind, n), rng: rng}
	a.instance = a.name + "-instance"
	_, err := l.c.RegisterAgent(l.ctx(), api.RegisterAgent{Name: a.name, Kind: l.kind, Slots: 1, Fencing: true, Pull: true, Instance: a.instance})
	if err != nil {
		l.t.Fatal(err)
	}
	return a
}

// work takes tasks until none is left and no more will come.
func (a *linAgent) work(over *atomic.Bool) {
	for !a.t.Failed() {
		last := over.Load()
		got, ok := a.claim()
		switch {
		case !ok:
		case got.Task != nil:
			a.run(got.Task)
		case len(got.Ask) > 0: // its task was cancelled before it heard of it
			a.report(linIn{verb: "forgot", id: got.Ask[0].QueueID, fence: got.Ask[0].Fence})
		case last:
			return
		}
	}
}

// claim makes one request: a claim whose answer was lost is a separate claim.
func (a *linAgent) claim() (api.PullAnswer, bool) {
	ctx, cancel := context.WithTimeout(a.t.Context(), long)
	defer cancel()
	asked := a.ask(a.who, linIn{verb: "claim", agent: a.name})
	got, err := a.c.Claim(ctx, a.name, api.PullClaim{Instance: a.instance, Slots: 1}, 100*time.Millisecond)
	out := linOut{}
	switch {
	case got.Task != nil:
		out = linOut{id: got.Task.QueueID, body: got.Task.Prompt, fence: got.Task.Fence}
	case len(got.Ask) > 0:
		out = linOut{id: got.Ask[0].QueueID, fence: got.Ask[0].Fence, ask: true}
	}
	return got, asked.answered(err, out)
}

// run handles a task in one of several ways, each of which occurs.
func (a *linAgent) run(t *api.AgentTask) {
	if len(a.manners) == 0 {
		a.manners = a.rng.Perm(6)
	}
	manner := a.manners[0]
	a.manners = a.manners[1:]
	if manner == 0 && (a.turned || t.Resume != nil) { // at the back, a task that was let go first is still ahead
		manner = 4
	}
	words := []string{"completed", "failed", "cancelled"}
	in := linIn{id: t.QueueID, fence: t.Fence, taskID: fmt.Sprintf("task-%08x", t.Fence), word: words[a.rng.IntN(3)]}
	say := func(verb string) bool { in.verb = verb; return a.report(in) }
	switch manner {
	case 0: // to the back of the queue
		say("busy")
		a.turned = true
		return
	case 1: // back to its place, and then it still reports on it
		say("forgot")
		say("finish")
		return
	}
	if say("accept") {
		a.turned = false
	}
	if manner == 5 { // it continues later, when someone lets it
		say("park")
		say("park")
		a.about(a.who, "unpark", t.QueueID)
		return
	}
	say("finish")
	switch manner {
	case 2: // repeated, and with another result
		in.word = words[a.rng.IntN(3)]
		say("finish")
	case 3: // for an earlier execution
		in.fence--
		say("finish")
	}
}

// never is when the gate of a parked task opens by itself: not during the test.
var never = time.Now().Add(24 * time.Hour)

// report returns whether the director accepted the agent's report.
func (a *linAgent) report(in linIn) bool {
	in.agent = a.name
	rep := api.PullReport{Instance: a.instance, Fence: in.fence}
	switch in.verb {
	case "accept":
		rep.Accepted = &api.PullAccepted{TaskID: in.taskID}
	case "busy":
		rep.Refused = &api.PullRefused{Status: 409, Error: "agent_busy", Message: "busy"}
	case "forgot":
		rep.Unknown = true
	case "park":
		rep.Finished = &api.AgentTaskStatus{
			TaskID: in.taskID, State: "failed", Error: &api.AgentError{Type: "overloaded", Message: "overloaded"},
			Limit: &api.AgentLimit{Source: "event", Text: "overloaded", ResetsAt: &never, Began: true},
		}
	case "finish":
		rep.Finished = &api.AgentTaskStatus{TaskID: in.taskID, State: in.word, Output: in.word}
		if in.word != "completed" {
			rep.Finished.Error = &api.AgentError{Type: map[string]string{"failed": "exit_nonzero", "cancelled": "cancelled"}[in.word], Message: "it " + in.word}
		}
	}
	_, err := a.until(a.who, in, func(ctx context.Context) (linOut, error) {
		_, err := a.c.Report(ctx, a.name, in.id, rep)
		return linOut{}, err
	})
	return err == nil
}
