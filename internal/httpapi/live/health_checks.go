package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// How long a condition may last before it is a finding.
const (
	unconfirmedAfter = 10 * time.Second // a cancel that the agent has not confirmed
	fullAfter        = 30 * time.Second // a call that waits for a full tool queue
	outlastedAfter   = 10 * time.Minute // a run that also takes outlastedFactor times as long as three in four others
	outlastedFactor  = 3
	unservedAfter    = 5 * time.Second // a task that no agent can take: an agent may just be starting
)

// checker collects findings, and the time at which the same checks would have another
// result only because of the clock.
type checker struct {
	now        time.Time
	maxSilence time.Duration // maximum time without a sign of life of an agent that runs a task
	account    string        // why the account of the agent blocks tasks; "" if it is open
	findings   []finding
	due        time.Time // zero: never
}

func (c *checker) add(f finding) { c.findings = append(c.findings, f) }

// dueAt sets due to t, unless it is earlier already.
func (c *checker) dueAt(t time.Time) {
	if c.due.IsZero() || t.Before(c.due) {
		c.due = t
	}
}

// ago formats roughly how long ago t was, and sets due to when the text will change.
func (c *checker) ago(t time.Time) string {
	text, validFor := roughDuration(c.now.Sub(t))
	c.dueAt(c.now.Add(validFor))
	return text
}

// olderThan reports whether t is more than d ago. If not, it sets due to when it will be.
func (c *checker) olderThan(t time.Time, d time.Duration) bool {
	if c.now.Sub(t) > d {
		return true
	}
	c.dueAt(t.Add(d + 1))
	return false
}

// checkAgent sets the findings of an agent. Its Face must be set.
func (c *checker) checkAgent(a *agentState) {
	switch a.out.Face {
	case faceDown:
		c.checkDown(a.out)
	case faceClosed: // see checkGates
	case faceStuck:
		c.checkStuck(a)
	case faceCancelling:
		c.checkCancels(a.out)
	default:
		c.checkOutlasted(a)
	}
	c.checkNotes(a.out)
	c.checkWithheld(a.out)
	if a.live.Full != "" && a.live.Up {
		c.add(agentFinding(a.out, "agent_full", levelWarning, "takes no tasks: "+a.live.Full,
			"signalbox workspaces lists its worktrees, signalbox workspaces discard NAME removes one; it takes tasks again when there is room"))
	}
	a.findings = c.findings
}

func agentFinding(a *api.LiveAgent, kind, level, text, cure string) finding {
	return finding{agent: a.Name, Attention: api.Attention{Kind: kind, Level: level, Subject: a.Name, Text: text, Cure: cure}}
}

// checkDown checks an agent that is down. An agent that registered itself is a finding
// only if tasks depend on it.
func (c *checker) checkDown(a *api.LiveAgent) {
	heard := "was never heard from"
	if a.LastHeard != nil {
		heard = "has not been heard from for " + c.ago(*a.LastHeard)
	}
	start := "start it again; signalbox agents says where it was"
	switch {
	case len(a.Current) > 0:
		f := agentFinding(a, "agent_silent", levelError, fmt.Sprintf("%s and holds %s", heard, a.Current[0].QueueID),
			start+"; signalbox release "+a.Name+" gives up what it holds")
		f.TaskID = a.Current[0].QueueID
		c.addSince(f, a.LastHeard)
	case a.Waiting > 0:
		f := agentFinding(a, "agent_down", levelError, fmt.Sprintf("%s, and %s for it alone", heard, view.Counted(a.Waiting, "task waits", "tasks wait")),
			start+", or signalbox clear "+a.Name)
		c.addSince(f, a.LastHeard)
	case a.Source == string(signalbox.AgentFromConfig) || a.Source == string(signalbox.AgentChild):
		f := agentFinding(a, "agent_down", levelWarning, heard, start)
		c.addSince(f, a.LastHeard)
	}
}

// addSince adds a finding that began at since; nil: unknown.
func (c *checker) addSince(f finding, since *time.Time) {
	if since != nil {
		f.Since = *since
	}
	c.add(f)
}

func (c *checker) checkStuck(a *agentState) {
	if c.silent(a) {
		f := agentFinding(a.out, "agent_silent", levelError, "works and has not been heard from for "+c.ago(a.live.LastHeard),
			"look at its host; signalbox release "+a.out.Name+" gives up what it holds")
		if len(a.runs) > 0 {
			f.TaskID = a.runs[0].ID
		}
		c.addSince(f, &a.live.LastHeard)
		return
	}
	for i, t := range a.runs {
		last := a.lastProgress(t, &a.out.Current[i])
		if last.IsZero() || !c.olderThan(last, stuckAfter) {
			continue
		}
		f := agentFinding(a.out, "stuck", levelWarning, fmt.Sprintf("has printed nothing for %s in %s", c.ago(last), t.ID),
			"signalbox logs "+t.ID+" shows what it did last, signalbox cancel "+t.ID+" stops it")
		f.TaskID = t.ID
		c.addSince(f, &last)
	}
}

// checkOutlasted checks for runs that take far longer than earlier ones.
func (c *checker) checkOutlasted(a *agentState) {
	usual := a.out.Typical
	if usual == nil {
		return
	}
	limit := max(outlastedAfter, time.Duration(outlastedFactor*usual.HighSeconds*float64(time.Second)))
	for _, t := range a.runs {
		if t.State != signalbox.Working || t.StartedAt.IsZero() || !c.olderThan(t.StartedAt, limit) {
			continue
		}
		f := agentFinding(a.out, "outlasted", levelWarning, fmt.Sprintf("has run %s for %s, and three in four of its runs end within %s",
			t.ID, c.ago(t.StartedAt), roughly(time.Duration(usual.HighSeconds*float64(time.Second)))),
			"signalbox logs "+t.ID+" shows what it does, signalbox cancel "+t.ID+" stops it")
		f.TaskID = t.ID
		c.addSince(f, &t.StartedAt)
	}
}

func (c *checker) checkCancels(a *api.LiveAgent) {
	for i := range a.Current {
		row := &a.Current[i]
		if row.CancelledAt == nil || !c.olderThan(*row.CancelledAt, unconfirmedAfter-1) {
			continue
		}
		f := agentFinding(a, "cancel_unconfirmed", levelWarning, fmt.Sprintf("has not confirmed the cancel of %s for %s", row.QueueID, c.ago(*row.CancelledAt)),
			"signalbox release "+a.Name+" takes the slot away from it")
		f.TaskID = row.QueueID
		c.addSince(f, row.CancelledAt)
	}
}

// checkNotes checks for runs whose agents report a problem.
func (c *checker) checkNotes(a *api.LiveAgent) {
	for i := range a.Current {
		row := &a.Current[i]
		if row.Note == "" {
			continue
		}
		f := agentFinding(a, "run_trouble", levelWarning, fmt.Sprintf("cannot go on with %s: %s", row.QueueID, strings.TrimRight(row.Note, ".")),
			"it tries again by itself until its run timeout; signalbox logs "+row.QueueID+" shows how often, signalbox cancel "+row.QueueID+" stops it")
		f.TaskID = row.QueueID
		c.add(f)
	}
}

func (c *checker) checkWithheld(a *api.LiveAgent) {
	for _, r := range append(a.Running[:len(a.Running):len(a.Running)], a.Isolated...) {
		if r.Withheld {
			f := agentFinding(a, "withheld", levelWarning, fmt.Sprintf("may still run %s, which is lost here: its slot is not given to another", r.QueueID),
				"it clears by itself when the agent says that it is idle; signalbox release "+a.Name+" forces it")
			f.TaskID = r.QueueID
			c.add(f)
		}
	}
}

// checkQueues checks for queues that are full, paused or not served by an agent.
func (r *refresh) checkQueues(c *checker) {
	counts, limit := r.snapshot.Counts, r.state.totals.MaxSize
	if n := counts.Limits[signalbox.LimitWork]; n >= limit {
		c.add(finding{Attention: api.Attention{
			Kind: "queue_full", Level: levelError, Subject: "The queue", Text: fmt.Sprintf("is full: %d of %d tasks wait, and more are refused", n, limit),
			Cure: "signalbox cancel what is no longer needed, start another agent, or raise queue.max_size",
		}})
	}
	for _, p := range r.pauses {
		c.checkPause(p)
	}
	for _, name := range sortedNames(r.queueNames) {
		head := r.snapshot.Heads[name]
		first := slices.IndexFunc(head, func(t signalbox.Task) bool { return t.State == signalbox.Pending })
		if first >= 0 && r.pauseOf(name) == nil {
			r.checkUnserved(c, name, &head[first])
		}
	}
}

// checkPause adds a note for a pause, unless it ends automatically.
func (c *checker) checkPause(p signalbox.Pause) {
	if p.UntilMS != 0 {
		return
	}
	f := finding{Attention: api.Attention{
		Kind: "paused", Level: levelInfo, Subject: p.Queue, Since: time.UnixMilli(p.AtMS).UTC(),
		Text: "is " + pauseText(&api.Pause{By: p.By, Reason: p.Reason}), Cure: "signalbox resume " + p.Queue,
	}}
	if name, one := signalbox.OnlyAgent(p.Queue); one {
		f.agent, f.Subject = name, name
	}
	if p.Queue == "" {
		f.Subject, f.Cure = "Every queue", "signalbox resume"
	}
	c.add(f)
}

// checkUnserved checks that an agent that is up serves a queue. first is the first task in
// the queue that is not parked.
func (r *refresh) checkUnserved(c *checker, queue string, first *signalbox.Task) {
	if signalbox.IsExecutor(queue+"@") || r.now.Sub(first.CreatedAt) < unservedAfter {
		return
	}
	for _, a := range r.agents {
		if a.live.Up && a.live.Serves(queue) {
			return
		}
	}
	text := fmt.Sprintf("has %s and no agent that is connected to take them", view.Counted(r.snapshot.Counts.Queues[queue], "task", "tasks"))
	f := finding{Attention: api.Attention{
		Kind: "no_agent", Level: levelError, Subject: "Queue " + queue, Text: text, Since: first.CreatedAt,
		Cure: "start one with signalbox agent, or signalbox up for all that are installed; signalbox agents shows those that are known", TaskID: first.ID,
	}}
	if name, one := signalbox.OnlyAgent(queue); one {
		f.agent = name
	}
	c.add(f)
}

// checkTools checks tool queues and the servers of tools.
func (r *refresh) checkTools(c *checker) {
	for i := range r.toolQueues {
		q := &r.toolQueues[i]
		if q.InUse < q.Concurrent || len(q.Waiters) == 0 {
			continue
		}
		first := q.Waiters[0].Since.UTC()
		if waits := r.now.Sub(first); waits >= fullAfter {
			c.add(finding{Attention: api.Attention{
				Kind: "capacity_full", Level: levelInfo, Subject: q.Name, Since: first,
				Text: fmt.Sprintf("is full (%d of %d in use), and %s, the first for %s", q.InUse, q.Concurrent, view.Counted(q.Depth, "call waits", "calls wait"), roughly(waits)),
				Cure: "signalbox tools queues shows who holds it; raise its concurrent if it can take more",
			}})
		}
	}
	if r.cfg.Tools == nil {
		return
	}
	for _, server := range r.cfg.Tools.Servers() {
		if server.State == gateway.StateFailed {
			c.add(finding{Attention: api.Attention{
				Kind: "tool_down", Level: levelWarning, Subject: server.Name, Since: server.Since.UTC(),
				Text: "is down: " + cmp.Or(httpio.Clip(server.Error), "it gives no reason"), Cure: "signalbox tools servers says how it is; it is started again by itself",
			}})
		}
	}
}
