package director

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// From when on something needs a person.
const (
	unconfirmedAfter = 10 * time.Second // a cancel
	fullAfter        = 30 * time.Second // a call that waits for a tool queue
	unservedAfter    = 5 * time.Second  // a task that nobody could take: an agent may just be starting
)

// judge looks for what needs a person.
type judge struct {
	view  *view
	scene *scene
	add   func(attention)
}

func (j *judge) agents() {
	for _, p := range j.scene.order {
		if p.agent == nil {
			continue
		}
		a := p.agent
		switch a.Face {
		case faceDown:
			j.down(a)
		case faceClosed:
			j.closed(a)
		case faceStuck:
			j.stuck(a)
		case faceCancelling:
			j.unconfirmed(a)
		}
		j.trouble(a)
		j.withheld(a)
	}
}

func (j *judge) agent(a *api.LiveAgent, kind, level, text, cure string) attention {
	return attention{agent: a.Name, Attention: api.Attention{Kind: kind, Level: level, Subject: a.Name, Text: text, Cure: cure}}
}

// down is an agent that is gone. Where nothing hangs on one that came by
// itself, that is nobody's business.
func (j *judge) down(a *api.LiveAgent) {
	heard := "was never heard from"
	if a.LastHeard != nil {
		heard = "has not been heard from for " + roughly(j.view.now.Sub(*a.LastHeard))
	}
	start := "start it again; signalbox agents says where it was"
	switch {
	case len(a.Current) > 0:
		at := j.agent(a, "agent_silent", levelError, fmt.Sprintf("%s and holds %s", heard, a.Current[0].QueueID),
			start+"; signalbox release "+a.Name+" gives up what it holds")
		at.TaskID = a.Current[0].QueueID
		j.since(&at, a.LastHeard)
	case a.Waiting > 0:
		at := j.agent(a, "agent_down", levelError, fmt.Sprintf("%s, and %s for it alone", heard, counted(a.Waiting, "task waits", "tasks wait")),
			start+", or signalbox clear "+a.Name)
		j.since(&at, a.LastHeard)
	case a.Source == string(signalbox.AgentFromConfig) || a.Source == string(signalbox.AgentChild):
		at := j.agent(a, "agent_down", levelWarning, heard, start)
		j.since(&at, a.LastHeard)
	}
}

// closed is an agent that fails in a way which speaks of itself.
func (j *judge) closed(a *api.LiveAgent) {
	c, next := a.Closed, "the next task tries it"
	if !c.RetryAt.IsZero() {
		next = "it is tried again at " + c.RetryAt.Format("15:04:05 MST")
	}
	at := j.agent(a, "agent_closed", levelError,
		fmt.Sprintf("takes no task: %s; %s", strings.TrimSuffix(clip(c.Reason), "."), next),
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

func (j *judge) stuck(a *api.LiveAgent) {
	heard := j.view.live[a.Name].LastHeard
	if silent := j.view.now.Sub(heard); !heard.IsZero() && silent > j.view.silence() {
		at := j.agent(a, "agent_silent", levelError, "works and has not been heard from for "+roughly(silent),
			"look at its host; signalbox release "+a.Name+" gives up what it holds")
		if len(a.Current) > 0 {
			at.TaskID = a.Current[0].QueueID
		}
		j.since(&at, &heard)
		return
	}
	for i := range a.Current {
		row := &a.Current[i]
		last := cmp.Or(row.LastProgress, row.StartedAt)
		waits := row.Call != nil && row.Call.Waiting // for a tool, which is not the agent's fault
		if row.State != string(signalbox.Working) || waits || last == nil || j.view.now.Sub(*last) <= stuckAfter {
			continue
		}
		at := j.agent(a, "stuck", levelWarning, fmt.Sprintf("has printed nothing for %s in %s", roughly(j.view.now.Sub(*last)), row.QueueID),
			"signalbox logs "+row.QueueID+" shows what it did last, signalbox cancel "+row.QueueID+" stops it")
		at.TaskID = row.QueueID
		j.since(&at, last)
	}
}

func (j *judge) unconfirmed(a *api.LiveAgent) {
	for i := range a.Current {
		row := &a.Current[i]
		if row.CancelledAt == nil || j.view.now.Sub(*row.CancelledAt) < unconfirmedAfter {
			continue
		}
		at := j.agent(a, "cancel_unconfirmed", levelWarning, fmt.Sprintf("has not confirmed the cancel of %s for %s", row.QueueID, roughly(j.view.now.Sub(*row.CancelledAt))),
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
		at := j.agent(a, "run_trouble", levelWarning, fmt.Sprintf("cannot go on with %s: %s", row.QueueID, strings.TrimRight(row.Note, ".")),
			"it tries again by itself until its run timeout; signalbox logs "+row.QueueID+" shows how often, signalbox cancel "+row.QueueID+" stops it")
		at.TaskID = row.QueueID
		j.add(at)
	}
}

func (j *judge) withheld(a *api.LiveAgent) {
	for _, r := range append(a.Running[:len(a.Running):len(a.Running)], a.Isolated...) {
		if r.Withheld {
			at := j.agent(a, "withheld", levelWarning, fmt.Sprintf("may still run %s, which is lost here: its slot is not given to another", r.QueueID),
				"it clears by itself when the agent says that it is idle; signalbox release "+a.Name+" forces it")
			at.TaskID = r.QueueID
			j.add(at)
		}
	}
}

// queues judges the lines: full, paused, or served by nobody.
func (j *judge) queues() {
	counts, limit := j.view.shot.Counts, j.scene.totals.MaxSize
	if n := counts.Limits[signalbox.LimitWork]; n >= limit {
		j.add(attention{Attention: api.Attention{
			Kind: "queue_full", Level: levelError, Subject: "The queue", Text: fmt.Sprintf("is full: %d of %d tasks wait, and more are refused", n, limit),
			Cure: "signalbox cancel what is no longer needed, start another agent, or raise queue.max_size",
		}})
	}
	for _, p := range j.view.pauses {
		j.paused(p)
	}
	for _, p := range j.scene.order {
		if p.queue != nil && p.queue.Pause == nil && len(p.queue.Line) > 0 {
			j.unserved(p.queue)
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

// unserved is a line that no agent takes from.
func (j *judge) unserved(q *api.LiveQueue) {
	first := q.Line[0]
	if _, own := signalbox.ExecutorKind(q.Name + "@"); own || j.view.now.Sub(first.CreatedAt) < unservedAfter {
		return
	}
	for _, a := range j.view.live {
		if a.Up && a.Serves(q.Name) {
			return
		}
	}
	text := fmt.Sprintf("has %s and no agent that is connected to take them", counted(q.Waiting, "task", "tasks"))
	at := attention{Attention: api.Attention{
		Kind: "no_agent", Level: levelError, Subject: "Queue " + q.Name, Text: text, Since: first.CreatedAt,
		Cure: "start one with signalbox agent, or signalbox up for all that are installed; signalbox agents shows those that are known", TaskID: first.QueueID,
	}}
	if name, one := signalbox.OnlyAgent(q.Name); one {
		at.agent = name
	}
	j.add(at)
}

// tools judges tool queues and what provides tools.
func (j *judge) tools() {
	for i := range j.view.queues {
		q := &j.view.queues[i]
		if q.InUse < q.Concurrent || len(q.Waiters) == 0 {
			continue
		}
		first := q.Waiters[0].Since.UTC()
		if waits := j.view.now.Sub(first); waits >= fullAfter {
			j.add(attention{Attention: api.Attention{
				Kind: "capacity_full", Level: levelWarning, Subject: q.Name, Since: first,
				Text: fmt.Sprintf("is full (%d of %d in use), and %s, the first for %s", q.InUse, q.Concurrent, counted(q.Depth, "call waits", "calls wait"), roughly(waits)),
				Cure: "signalbox tools queues shows who holds it; raise its concurrent if it can take more",
			}})
		}
	}
	if j.view.eyes.d.cfg.Tools == nil {
		return
	}
	for _, server := range j.view.eyes.d.cfg.Tools.Servers() {
		if server.State == gateway.StateFailed {
			j.add(attention{Attention: api.Attention{
				Kind: "tool_down", Level: levelWarning, Subject: server.Name, Since: server.Since.UTC(),
				Text: "is down: " + cmp.Or(clip(server.Error), "it gives no reason"), Cure: "signalbox tools servers says how it is; it is started again by itself",
			}})
		}
	}
}
