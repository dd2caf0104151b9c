package push

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// An agent that does not know queue_id cannot say which of its runs is a task
// whose reply was lost. A run there is believed to be the task only where that is
// proven: it shows the whole prompt, it began in the time of the offer, and no
// other run can be meant. What cannot be excluded either leaves the outcome
// unknown.

// plainTask is what an agent without queue_id tells of a run: a list shows the
// beginning of its prompt, and some show all of it with the run itself.
type plainTask struct {
	api.AgentTaskStatus
	Prompt        string `json:"prompt"`
	PromptPreview string `json:"prompt_preview"`
}

// unsureError says that the agent ran something since the offer that may be
// the task, and does not tell whether it is.
type ambiguousError struct {
	run     string // the agent's id of it, "" where it named none
	running bool   // it still runs
}

func (e ambiguousError) Error() string {
	what := "something that it does not name"
	if e.run != "" {
		what = e.run
	}
	return "its agent ran " + execution.SanitizeText(what) + " since the offer, which may be this task, and does not tell whether it is"
}

// findPlain looks for the task at an agent without queue_id among what it runs
// and ran. Apart from the proven one its answer is errNeverSeen or unsureError.
func (r *run) findPlain(ctx context.Context, t signalbox.Task) (api.AgentTaskStatus, error) {
	s, err := r.endpoint().conn.status(ctx)
	if err != nil {
		return api.AgentTaskStatus{}, err
	}
	if s.Fencing {
		r.d.applyStatus(r.lane, s)
		return api.AgentTaskStatus{}, errNeverSeen
	}
	others, err := r.othersAtAgent(ctx, t)
	if err != nil {
		return api.AgentTaskStatus{}, err
	}
	seen, err := r.runsAtAgent(ctx, s)
	if err != nil {
		return api.AgentTaskStatus{}, err
	}
	var candidates []plainTask
	proven := false
	for _, c := range seen {
		if others[c.TaskID] && c.TaskID != "" {
			continue
		}
		c, fits, err := r.compare(ctx, t, c)
		if err != nil {
			return api.AgentTaskStatus{}, err
		}
		if fits != excluded {
			candidates = append(candidates, c)
			proven = fits == matches
		}
	}
	switch {
	case len(candidates) == 0:
		return api.AgentTaskStatus{}, errNeverSeen
	case len(candidates) == 1 && proven:
		return candidates[0].AgentTaskStatus, nil
	}
	first := candidates[0]
	return api.AgentTaskStatus{}, ambiguousError{first.TaskID, slices.ContainsFunc(candidates, func(c plainTask) bool { return !execution.Ended(c.State) })}
}

// historyDepth is how much is asked for of an agent's history: all that the
// work-queue seed keeps.
const historyDepth = 100

// runsAtAgent lists what a plain agent runs and ran, as far as it tells: what
// its status names, what its status named before, and its history.
func (r *run) runsAtAgent(ctx context.Context, s api.AgentStatus) (list []plainTask, err error) {
	known := map[string]bool{}
	for _, c := range currentTasks(&s) {
		p := plainTask{PromptPreview: c.PromptPreview}
		p.TaskID, p.State = c.ID, "working"
		if !c.StartedAt.IsZero() {
			p.StartedAt = &c.StartedAt
		}
		list, known[c.ID] = append(list, p), true
	}
	h, err := r.endpoint().conn.history(ctx, historyDepth)
	keeps := !keepsNoHistory(err)
	if err != nil && keeps {
		return nil, err
	}
	for _, e := range h {
		if e.TaskID != "" && !known[e.TaskID] {
			list, known[e.TaskID] = append(list, e), true
		}
	}
	if s.State == "working" && len(currentTasks(&s)) == 0 {
		p := plainTask{}
		p.State = "working"
		list = append(list, p)
		r.seenBefore[""] = true
	} else if keeps {
		delete(r.seenBefore, "") // its history names by now what it did not
	}
	for _, id := range slices.Sorted(maps.Keys(r.seenBefore)) {
		if !known[id] && (id != "" || s.State != "working") {
			p := plainTask{}
			p.TaskID, p.State = id, "completed" // it is asked for, if it has a name
			list = append(list, p)
		}
	}
	for _, c := range currentTasks(&s) {
		r.seenBefore[c.ID] = true
	}
	return list, nil
}

// unkept reports whether an agent said that it keeps no history.
func keepsNoHistory(err error) bool {
	status := statusOf(err)
	return status/100 == 4 || status == http.StatusNotImplemented
}

// fit says whether a run of an agent can be the task.
type fit int

const (
	excluded fit = iota
	possible     // nothing excludes it
	matches      // whole prompt, within the time of the offer
)

// compare decides whether a run is the task, asking for the whole of it where
// what was listed does not exclude it.
func (r *run) compare(ctx context.Context, t signalbox.Task, c plainTask) (plainTask, fit, error) {
	fits := r.fits(t, c)
	if fits == excluded || c.TaskID == "" {
		return c, fits, nil
	}
	whole, known, err := r.lookUp(ctx, c.TaskID, execution.Ended(c.State) && fits != matches)
	if err != nil || !known {
		return c, fits, err
	}
	if whole.StartedAt == nil {
		whole.StartedAt = c.StartedAt
	}
	if whole.PromptPreview == "" {
		whole.PromptPreview = c.PromptPreview
	}
	return whole, r.fits(t, whole), nil
}

// lookUp asks a plain agent for one of its runs, by GET /task/{id}, and where
// that shows no prompt and prompt asks for it, by GET /history/{id}.
func (r *run) lookUp(ctx context.Context, id string, prompt bool) (p plainTask, known bool, err error) {
	for _, where := range []string{"/task/", "/history/"} {
		q, err := r.endpoint().conn.plainTask(ctx, where, id)
		switch {
		case err == nil && !known:
			p, known = q, true
		case err == nil:
			p.Prompt, p.PromptPreview = q.Prompt, cmp.Or(p.PromptPreview, q.PromptPreview)
		case !known && !keepsNoHistory(err):
			return p, false, err
		}
		if known && (p.Prompt != "" || !prompt || !execution.Ended(p.State)) {
			break
		}
	}
	return p, known, nil
}

// fits compares what is known of a run with the task.
func (r *run) fits(t signalbox.Task, c plainTask) fit {
	prompt := r.request.Prompt
	switch {
	case c.StartedAt != nil && !mayHaveStarted(*c.StartedAt, t):
		return excluded
	case c.Prompt != "" && c.Prompt != prompt, !previewMatches(c.PromptPreview, prompt):
		return excluded
	case c.Prompt != prompt && c.PromptPreview != prompt:
		return possible
	case c.StartedAt == nil || c.StartedAt.After(t.DispatchedAt.Add(r.d.opts.DispatchTimeout+skew)):
		return possible // someone may have sent the same prompt
	}
	return matches
}

// skew is how far two clocks may be apart.
const skew = 2 * time.Second

// began reports whether something that an agent started at this time can be
// the task: after its claim, as far as two clocks can tell.
func mayHaveStarted(at time.Time, t signalbox.Task) bool {
	return !at.Before(t.DispatchedAt.Add(-skew))
}

// shows reports whether a preview can be that of a prompt. Agents cut it where
// they like, in the middle of a character too, and mark that with dots.
func previewMatches(preview, prompt string) bool {
	preview = strings.TrimRight(strings.TrimSpace(preview), ".… \uFFFD")
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return strings.HasPrefix(words(prompt), words(preview))
}

// othersAtAgent lists the agent's ids of other tasks that it got from here.
func (r *run) othersAtAgent(ctx context.Context, t signalbox.Task) (map[string]bool, error) {
	inFlight, err := r.d.Engine.Read().InFlight(ctx)
	if err != nil {
		return nil, err
	}
	page, err := r.d.Engine.Read().History(ctx, store.HistoryQuery{Agent: t.Agent, Limit: 100})
	if err != nil {
		return nil, err
	}
	others := map[string]bool{}
	r.d.Mu.Lock()
	for _, id := range r.lane.endedIDs {
		others[id] = true
	}
	r.d.Mu.Unlock()
	for _, o := range append(inFlight, page.Tasks...) {
		if o.ID != t.ID && o.Agent == t.Agent && o.TaskID != "" {
			others[o.TaskID] = true
		}
	}
	return others, nil
}

// maxPast is how many executions of an agent are remembered: as many as are
// asked for of its history.
const maxEndedIDs = historyDepth

// past notes what the agent called a run that leaves. The row does not say it any
// more where the task goes back to its line. Mu is held.
func (l *lane) recordEnded(r *run) {
	if r.agentTask == "" || l.Row.Fencing {
		return // who knows fences is asked by them
	}
	if l.endedIDs = append(l.endedIDs, r.agentTask); len(l.endedIDs) > maxEndedIDs {
		l.endedIDs = l.endedIDs[1:]
	}
}

// unknownOutcome ends an execution of which nobody can say whether it was: its
// task may have run, so on_lost decides.
func (r *run) unknownOutcome(ctx context.Context, unsure ambiguousError) {
	message := fmt.Sprintf("the reply of agent %s was lost, and whether the task ran is not known: %v; look there before you submit it again",
		r.lane.Name, unsure)
	r.loseAs(ctx, func(t signalbox.Task, withhold bool) (signalbox.Task, error) {
		return r.d.Engine.LoseUnaccepted(ctx, t, message, withhold)
	})
}

// fromHistory completes the last word on a run that stands in the history of a
// plain agent, whose list has no answers.
func (r *run) fromHistory(ctx context.Context, listed plainTask) (api.AgentTaskStatus, error) {
	whole, known, err := r.lookUp(ctx, listed.TaskID, false)
	if err != nil || !known || !execution.Ended(whole.State) {
		return listed.AgentTaskStatus, err
	}
	return whole.AgentTaskStatus, nil
}

// inHistory looks for a run that its agent no longer knows by its id among what
// it keeps of the past.
func (r *run) inHistory(ctx context.Context) (s api.AgentTaskStatus, found bool, err error) {
	h, err := r.endpoint().conn.history(ctx, historyDepth)
	if keepsNoHistory(err) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	for _, e := range h {
		if e.TaskID == r.endpoint().id && execution.Ended(e.State) {
			s, err = r.fromHistory(ctx, e)
			return s, err == nil, err
		}
	}
	return s, false, nil
}

// plainTask asks for a run at path /task/ or /history/.
func (c *conn) plainTask(ctx context.Context, path, id string) (p plainTask, err error) {
	err = c.call(ctx, 0, http.MethodGet, path+url.PathEscape(id), nil, &p)
	if err == nil && p.State == "" {
		err = fmt.Errorf("answer about the task names no state")
	}
	p.TaskID = cmp.Or(p.TaskID, id)
	return p, err
}
