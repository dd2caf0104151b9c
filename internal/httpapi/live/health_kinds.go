package live

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// From when on something needs a person.
const (
	unconfirmedAfter = 10 * time.Second // a cancel
	fullAfter        = 30 * time.Second // a call that waits for a tool queue
	unservedAfter    = 5 * time.Second  // a task that nobody could take: an agent may just be starting
)

// judge says what needs a person, and when it would say something else by time
// alone.
type judge struct {
	now     time.Time
	silence time.Duration // for how long an agent at work may not be heard
	all     []attention
	due     time.Time // zero: never
}

func (j *judge) add(a attention) { j.all = append(j.all, a) }

// at notes that something is said otherwise then.
func (j *judge) at(t time.Time) {
	if j.due.IsZero() || t.Before(j.due) {
		j.due = t
	}
}

// ago says roughly how long ago something was.
func (j *judge) ago(t time.Time) string {
	text, next := coarsely(j.now.Sub(t))
	j.at(j.now.Add(next))
	return text
}

// past reports whether something is longer ago than that.
func (j *judge) past(t time.Time, longer time.Duration) bool {
	if j.now.Sub(t) > longer {
		return true
	}
	j.at(t.Add(longer + 1))
	return false
}

// agent judges an agent.
func (j *judge) agent(a *liveAgent) {
	switch a.out.Face {
	case faceDown:
		j.down(a.out)
	case faceClosed:
		j.closed(a.out)
	case faceStuck:
		j.stuck(a)
	case faceCancelling:
		j.unconfirmed(a.out)
	}
	j.trouble(a.out)
	j.withheld(a.out)
	a.attention = j.all
}

func ofAgent(a *api.LiveAgent, kind, level, text, cure string) attention {
	return attention{agent: a.Name, Attention: api.Attention{Kind: kind, Level: level, Subject: a.Name, Text: text, Cure: cure}}
}

// down is an agent that is gone. Where nothing hangs on one that came by
// itself, that is nobody's business.
func (j *judge) down(a *api.LiveAgent) {
	heard := "was never heard from"
	if a.LastHeard != nil {
		heard = "has not been heard from for " + j.ago(*a.LastHeard)
	}
	start := "start it again; signalbox agents says where it was"
	switch {
	case len(a.Current) > 0:
		at := ofAgent(a, "agent_silent", levelError, fmt.Sprintf("%s and holds %s", heard, a.Current[0].QueueID),
			start+"; signalbox release "+a.Name+" gives up what it holds")
		at.TaskID = a.Current[0].QueueID
		j.since(&at, a.LastHeard)
	case a.Waiting > 0:
		at := ofAgent(a, "agent_down", levelError, fmt.Sprintf("%s, and %s for it alone", heard, view.Counted(a.Waiting, "task waits", "tasks wait")),
			start+", or signalbox clear "+a.Name)
		j.since(&at, a.LastHeard)
	case a.Source == string(signalbox.AgentFromConfig) || a.Source == string(signalbox.AgentChild):
		at := ofAgent(a, "agent_down", levelWarning, heard, start)
		j.since(&at, a.LastHeard)
	}
}

// closed is an agent that fails in a way which speaks of itself.
func (j *judge) closed(a *api.LiveAgent) {
	c, next := a.Closed, "the next task tries it"
	if !c.RetryAt.IsZero() {
		next = "it is tried again at " + c.RetryAt.Format("15:04:05 MST")
	}
	at := ofAgent(a, "agent_closed", levelError,
		fmt.Sprintf("takes no task: %s; %s", strings.TrimSuffix(httpio.Clip(c.Reason), "."), next),
		"look at its host and its log; it is opened again by itself when it takes a task")
	at.Since = c.Since
	j.add(at)
}

func (j *judge) since(a *attention, t *time.Time) {
	if t != nil {
		a.Since = *t
	}
	j.add(*a)
}

func (j *judge) stuck(a *liveAgent) {
	if j.silent(a) {
		at := ofAgent(a.out, "agent_silent", levelError, "works and has not been heard from for "+j.ago(a.live.LastHeard),
			"look at its host; signalbox release "+a.out.Name+" gives up what it holds")
		if len(a.runs) > 0 {
			at.TaskID = a.runs[0].ID
		}
		j.since(&at, &a.live.LastHeard)
		return
	}
	for i, t := range a.runs {
		last := a.lastSign(t, &a.out.Current[i])
		if last.IsZero() || !j.past(last, stuckAfter) {
			continue
		}
		at := ofAgent(a.out, "stuck", levelWarning, fmt.Sprintf("has printed nothing for %s in %s", j.ago(last), t.ID),
			"signalbox logs "+t.ID+" shows what it did last, signalbox cancel "+t.ID+" stops it")
		at.TaskID = t.ID
		j.since(&at, &last)
	}
}

func (j *judge) unconfirmed(a *api.LiveAgent) {
	for i := range a.Current {
		row := &a.Current[i]
		if row.CancelledAt == nil || !j.past(*row.CancelledAt, unconfirmedAfter-1) {
			continue
		}
		at := ofAgent(a, "cancel_unconfirmed", levelWarning, fmt.Sprintf("has not confirmed the cancel of %s for %s", row.QueueID, j.ago(*row.CancelledAt)),
			"signalbox release "+a.Name+" takes the slot away from it")
		at.TaskID = row.QueueID
		j.since(&at, row.CancelledAt)
	}
}

// trouble is a run that gets on with nothing, by its agent's own word.
func (j *judge) trouble(a *api.LiveAgent) {
	for i := range a.Current {
		row := &a.Current[i]
		if row.Note == "" {
			continue
		}
		at := ofAgent(a, "run_trouble", levelWarning, fmt.Sprintf("cannot go on with %s: %s", row.QueueID, strings.TrimRight(row.Note, ".")),
			"it tries again by itself until its run timeout; signalbox logs "+row.QueueID+" shows how often, signalbox cancel "+row.QueueID+" stops it")
		at.TaskID = row.QueueID
		j.add(at)
	}
}

func (j *judge) withheld(a *api.LiveAgent) {
	for _, r := range append(a.Running[:len(a.Running):len(a.Running)], a.Isolated...) {
		if r.Withheld {
			at := ofAgent(a, "withheld", levelWarning, fmt.Sprintf("may still run %s, which is lost here: its slot is not given to another", r.QueueID),
				"it clears by itself when the agent says that it is idle; signalbox release "+a.Name+" forces it")
			at.TaskID = r.QueueID
			j.add(at)
		}
	}
}

// judgeQueues judges the lines: full, paused, or served by nobody.
func (l *refresh) judgeQueues(j *judge) {
	counts, limit := l.snapshot.Counts, l.state.totals.MaxSize
	if n := counts.Limits[signalbox.LimitWork]; n >= limit {
		j.add(attention{Attention: api.Attention{
			Kind: "queue_full", Level: levelError, Subject: "The queue", Text: fmt.Sprintf("is full: %d of %d tasks wait, and more are refused", n, limit),
			Cure: "signalbox cancel what is no longer needed, start another agent, or raise queue.max_size",
		}})
	}
	for _, p := range l.pauses {
		j.paused(p)
	}
	for _, name := range sortedNames(l.lines) {
		if head := l.snapshot.Heads[name]; len(head) > 0 && l.pauseOf(name) == nil {
			l.judgeUnserved(j, name, &head[0])
		}
	}
}

// paused is a pause that nobody has given an end.
func (j *judge) paused(p signalbox.Pause) {
	if p.UntilMS != 0 {
		return
	}
	at := attention{Attention: api.Attention{
		Kind: "paused", Level: levelWarning, Subject: p.Queue, Since: time.UnixMilli(p.AtMS).UTC(),
		Text: "is " + pauseText(&api.Pause{By: p.By, Reason: p.Reason}), Cure: "signalbox resume " + p.Queue,
	}}
	if name, one := signalbox.OnlyAgent(p.Queue); one {
		at.agent, at.Subject = name, name
	}
	if p.Queue == "" {
		at.Subject, at.Cure = "Every queue", "signalbox resume"
	}
	j.add(at)
}

// judgeUnserved judges a line that may have no agent to take from it.
func (l *refresh) judgeUnserved(j *judge, queue string, first *signalbox.Task) {
	if signalbox.IsExecutor(queue+"@") || l.now.Sub(first.CreatedAt) < unservedAfter {
		return
	}
	for _, a := range l.agents {
		if a.live.Up && a.live.Serves(queue) {
			return
		}
	}
	text := fmt.Sprintf("has %s and no agent that is connected to take them", view.Counted(l.snapshot.Counts.Queues[queue], "task", "tasks"))
	at := attention{Attention: api.Attention{
		Kind: "no_agent", Level: levelError, Subject: "Queue " + queue, Text: text, Since: first.CreatedAt,
		Cure: "start one with signalbox agent, or signalbox up for all that are installed; signalbox agents shows those that are known", TaskID: first.ID,
	}}
	if name, one := signalbox.OnlyAgent(queue); one {
		at.agent = name
	}
	j.add(at)
}

// judgeTools judges tool queues and what provides tools.
func (l *refresh) judgeTools(j *judge) {
	for i := range l.queues {
		q := &l.queues[i]
		if q.InUse < q.Concurrent || len(q.Waiters) == 0 {
			continue
		}
		first := q.Waiters[0].Since.UTC()
		if waits := l.now.Sub(first); waits >= fullAfter {
			j.add(attention{Attention: api.Attention{
				Kind: "capacity_full", Level: levelWarning, Subject: q.Name, Since: first,
				Text: fmt.Sprintf("is full (%d of %d in use), and %s, the first for %s", q.InUse, q.Concurrent, view.Counted(q.Depth, "call waits", "calls wait"), roughly(waits)),
				Cure: "signalbox tools queues shows who holds it; raise its concurrent if it can take more",
			}})
		}
	}
	if l.cfg.Tools == nil {
		return
	}
	for _, server := range l.cfg.Tools.Servers() {
		if server.State == gateway.StateFailed {
			j.add(attention{Attention: api.Attention{
				Kind: "tool_down", Level: levelWarning, Subject: server.Name, Since: server.Since.UTC(),
				Text: "is down: " + cmp.Or(httpio.Clip(server.Error), "it gives no reason"), Cure: "signalbox tools servers says how it is; it is started again by itself",
			}})
		}
	}
}
