package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// errNeverSeen is the agent's word that it does not know the task.
var errNeverSeen = errors.New("agent has never seen it")

// The pause between two questions that were not answered grows from
// firstDelay to maxDelay.
const (
	firstDelay = 100 * time.Millisecond
	maxDelay   = 2 * time.Second
)

// errElsewhere is the word of an agent at another address than the one that
// got the task.
var errElsewhere = errors.New("the agent that has the name now does not know the task, and the address that got it is still in use")

// ask finds out what became of a task that was sent without an answer, or
// claimed by a director that is gone. cause says what happened to the answer;
// nil means that nobody knows whether it was sent.
//
// "Never seen" is believed the second time: an offer that was sent can still
// lie in the queue of a socket when the first question is answered. One that
// comes later than that is refused by an agent that knows fences; see believed.
func (r *run) ask(ctx context.Context, cause error) {
	unseen := 0
	for delay := firstDelay; ctx.Err() == nil; delay = min(2*delay, maxDelay) {
		s, err := r.find(ctx)
		switch {
		case err == nil:
			r.heard()
			r.found(ctx, s)
			return
		case errors.Is(err, errNeverSeen):
			r.heard()
			if unseen++; unseen > 1 && r.believed(ctx, unseen) {
				r.neverSeen(ctx, cause)
				return
			}
			if !r.sleep(ctx, r.d.opts.Confirm) {
				return
			}
			continue
		case r.silence() >= r.d.engine.ExecutionTTL():
			r.lose(ctx, signalbox.ReasonLost, r.silenceMessage(err))
			return
		}
		r.d.probe(r.lane)
		if !r.sleep(ctx, delay) {
			return
		}
	}
}

// maxUnheard is how often an agent is asked in vain for its promise.
const maxUnheard = 10

// believed reports whether the task can be sent back after an agent has said so
// often that it never saw it. Whoever sent the offer may have stood still since
// it decided to, and may send it yet: an agent that knows fences promises to
// refuse it. One that cannot promise is believed as it is.
func (r *run) believed(ctx context.Context, times int) bool {
	if !r.fencing() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, r.d.opts.AskTimeout)
	defer cancel()
	v := api.AgentVoid{Fence: r.fence, Slot: r.slot, Director: r.d.id, Isolated: r.isolated}
	if r.isolated {
		v.Slot -= signalbox.FirstIsolatedSlot
	}
	err := r.conn().void(ctx, r.taskID, v)
	// Otherwise the offer came in between, or nobody knows.
	return err == nil || unknown(err) || times > maxUnheard
}

func (r *run) silenceMessage(err error) string {
	ttl := r.d.engine.ExecutionTTL()
	return fmt.Sprintf("agent %s has been silent for %s: the slot lease (execution_ttl) of %s ran out; what came last: %v",
		r.lane.name, max(r.silence(), ttl).Round(time.Second), ttl, err)
}

// found goes on with a task that the agent knows.
func (r *run) found(ctx context.Context, s api.AgentTaskStatus) {
	if ended(s.State) {
		r.ended(ctx, s)
		return
	}
	r.accept(ctx, s.TaskID, s.SessionID)
}

// neverSeen sends the task back. It costs an attempt where it was sent from
// here; where the director that claimed it is gone, it may never have been.
func (r *run) neverSeen(ctx context.Context, cause error) {
	if cause == nil {
		r.settle(ctx, func(t signalbox.Task) (signalbox.Task, error) {
			return r.d.engine.Unsent(ctx, t, "the director was restarted before the task reached its agent")
		})
		return
	}
	r.refuse(ctx, fmt.Sprintf("%v, and the agent has never seen the task", cause))
}

// find asks the agent about the task: by queue_id, or, of an agent that does
// not know those, by what it runs and ran.
func (r *run) find(ctx context.Context) (api.AgentTaskStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, r.d.opts.AskTimeout)
	defer cancel()
	t := r.row()
	s, err := r.conn().task(ctx, t.ID, 0)
	switch {
	case err == nil && (s.Fence == t.Fence || s.Fence == 0) && s.TaskID != "":
		return s, nil
	case err == nil: // an earlier attempt of the same task
		return s, errNeverSeen
	case !unknown(err):
		return s, err
	case r.elsewhere(ctx, err):
		return s, errElsewhere
	case r.fencing():
		return s, errNeverSeen
	}
	return r.findPlain(ctx, t)
}

// unknown reports whether an agent said that it knows no task of that id.
// One that checks the form of its ids does not say 404 to a queue_id.
func unknown(err error) bool {
	switch statusOf(err) {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusGone, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// findPlain looks for the task at an agent without queue_id among what it
// runs and ran: what no other task of ours was, began after the claim and, as
// far as it shows it, has this prompt, is the task.
func (r *run) findPlain(ctx context.Context, t signalbox.Task) (api.AgentTaskStatus, error) {
	s, err := r.conn().status(ctx)
	if err != nil {
		return api.AgentTaskStatus{}, err
	}
	if s.Fencing {
		r.d.learn(r.lane, s)
		return api.AgentTaskStatus{}, errNeverSeen
	}
	others, err := r.othersAtAgent(ctx, t)
	if err != nil {
		return api.AgentTaskStatus{}, err
	}
	for _, c := range currentTasks(&s) {
		if !others[c.ID] && began(c.StartedAt, t) && shows(c.PromptPreview, r.claimed.Request.Prompt) {
			return r.conn().task(ctx, c.ID, 0)
		}
	}
	h, err := r.conn().history(ctx, 10)
	if statusOf(err) != 0 {
		return api.AgentTaskStatus{}, errNeverSeen // it keeps no history: what it does not run, it does not know
	}
	if err != nil {
		return api.AgentTaskStatus{}, err
	}
	for _, e := range h.Entries {
		if e.TaskID != "" && !others[e.TaskID] && e.StartedAt != nil && began(*e.StartedAt, t) {
			return e, nil
		}
	}
	return api.AgentTaskStatus{}, errNeverSeen
}

// othersAtAgent lists the agent's ids of other tasks that it got from here.
func (r *run) othersAtAgent(ctx context.Context, t signalbox.Task) (map[string]bool, error) {
	flying, err := r.d.engine.Read().InFlight(ctx)
	if err != nil {
		return nil, err
	}
	page, err := r.d.engine.Read().History(ctx, store.HistoryQuery{Agent: t.Agent, Limit: 100})
	if err != nil {
		return nil, err
	}
	others := r.d.pastOf(r.lane)
	for _, o := range append(flying, page.Tasks...) {
		if o.ID != t.ID && o.Agent == t.Agent && o.TaskID != "" {
			others[o.TaskID] = true
		}
	}
	return others, nil
}

// maxPast is how many executions of an agent are remembered: as many as are
// asked for of its history, and more.
const maxPast = 100

// past notes what the agent called a run that leaves. The row does not say it any
// more where the task goes back to its line. Dispatcher.mu is held.
func (l *lane) past(r *run) {
	if r.agentTask == "" || l.row.Fencing {
		return // who knows fences is asked by them
	}
	if l.earlier = append(l.earlier, r.agentTask); len(l.earlier) > maxPast {
		l.earlier = l.earlier[1:]
	}
}

func (d *Dispatcher) pastOf(l *lane) map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := map[string]bool{}
	for _, id := range l.earlier {
		ids[id] = true
	}
	return ids
}

// began reports whether something that an agent started at this time can be
// the task: after its claim, as far as two clocks can tell.
func began(at time.Time, t signalbox.Task) bool {
	const skew = 2 * time.Second
	return !at.Before(t.DispatchedAt.Add(-skew))
}

// shows reports whether a preview can be that of a prompt. Agents cut it where
// they like, and mark that with dots.
func shows(preview, prompt string) bool {
	preview = strings.TrimRight(strings.TrimSpace(preview), ".… ")
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return strings.HasPrefix(words(prompt), words(preview))
}
