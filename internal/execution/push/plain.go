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

// A plain agent does not know queue_id, so it cannot say which of its runs is a task whose
// reply was lost. A run is taken for the task only if that is certain: it shows the whole
// prompt, started within the time of the offer, and no other run is possible. If a run
// cannot be excluded either, the outcome is unknown.

// plainTask is a plain agent's entry for a run. Lists show the beginning of the prompt; some agents show the
// whole prompt in the entry of a single run.
type plainTask struct {
	api.AgentTaskStatus
	Prompt        string `json:"prompt"`
	PromptPreview string `json:"prompt_preview"`
}

// ambiguousError: since the offer the agent has run something that may be the task.
type ambiguousError struct {
	run     string // the agent's id of it, "" where it named none
	running bool   // it is still running
}

func (e ambiguousError) Error() string {
	what := "something that it does not name"
	if e.run != "" {
		what = e.run
	}
	return "its agent ran " + execution.SanitizeText(what) + " since the offer, which may be this task, and does not tell whether it is"
}

// findPlain looks for the task at a plain agent among its current and past runs. Unless one
// is certainly the task it returns errNeverSeen or ambiguousError.
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

// historyDepth is how much of an agent's history is read: all that the work-queue seed
// keeps.
const historyDepth = 100

// runsAtAgent lists the known runs of a plain agent: those in its status, those that its
// status named before, and its history.
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
		delete(r.seenBefore, "") // its history now names what its status did not
	}
	for _, id := range slices.Sorted(maps.Keys(r.seenBefore)) {
		if !known[id] && (id != "" || s.State != "working") {
			p := plainTask{}
			p.TaskID, p.State = id, "completed" // it is looked up, if it has an id
			list = append(list, p)
		}
	}
	for _, c := range currentTasks(&s) {
		r.seenBefore[c.ID] = true
	}
	return list, nil
}

// keepsNoHistory reports whether an agent said that it keeps no history.
func keepsNoHistory(err error) bool {
	status := statusOf(err)
	return status/100 == 4 || status == http.StatusNotImplemented
}

// fit says whether a run of an agent can be the task.
type fit int

const (
	excluded fit = iota
	possible     // not excluded
	matches      // whole prompt, within the time of the offer
)

// compare decides whether a run is the task. It looks the run up if its listing does not
// exclude it.
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

// lookUp reads one run of a plain agent from /task/{id}, and, if that shows no prompt and
// one is wanted, from /history/{id}.
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

// fits compares a run with the task.
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
		return possible // someone else may have sent the same prompt
	}
	return matches
}

// skew is the assumed maximum difference between two clocks.
const skew = 2 * time.Second

// mayHaveStarted reports whether a run started at this time can be the task: after its
// claim, allowing for skew.
func mayHaveStarted(at time.Time, t signalbox.Task) bool {
	return !at.Before(t.DispatchedAt.Add(-skew))
}

// previewMatches reports whether a preview can be that of a prompt. Agents cut previews
// anywhere, even within a character, and append dots.
func previewMatches(preview, prompt string) bool {
	preview = strings.TrimRight(strings.TrimSpace(preview), ".… \uFFFD")
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return strings.HasPrefix(words(prompt), words(preview))
}

// othersAtAgent lists the agent's ids of other tasks from here.
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

// maxEndedIDs is as many as are read of an agent's history.
const maxEndedIDs = historyDepth

// recordEnded remembers the agent's id of a run that ends here; the row loses it when the
// task is requeued. Mu is held.
func (l *lane) recordEnded(r *run) {
	if r.agentTask == "" || l.Row.Fencing {
		return // agents with fences are asked by fence
	}
	if l.endedIDs = append(l.endedIDs, r.agentTask); len(l.endedIDs) > maxEndedIDs {
		l.endedIDs = l.endedIDs[1:]
	}
}

// unknownOutcome ends an execution that may or may not have run: on_lost decides.
func (r *run) unknownOutcome(ctx context.Context, unsure ambiguousError) {
	message := fmt.Sprintf("the reply of agent %s was lost, and whether the task ran is not known: %v; look there before you submit it again",
		r.lane.Name, unsure)
	r.loseAs(ctx, func(t signalbox.Task, withhold bool) (signalbox.Task, error) {
		return r.d.Engine.LoseUnaccepted(ctx, t, message, withhold)
	})
}

// fromHistory completes a final report from a plain agent's history, whose list lacks
// answers.
func (r *run) fromHistory(ctx context.Context, listed plainTask) (api.AgentTaskStatus, error) {
	whole, known, err := r.lookUp(ctx, listed.TaskID, false)
	if err != nil || !known || !execution.Ended(whole.State) {
		return listed.AgentTaskStatus, err
	}
	return whole.AgentTaskStatus, nil
}

// inHistory looks in the agent's history for a run that it no longer knows by its id.
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

// plainTask reads a run from path, /task/ or /history/.
func (c *conn) plainTask(ctx context.Context, path, id string) (p plainTask, err error) {
	err = c.call(ctx, 0, http.MethodGet, path+url.PathEscape(id), nil, &p)
	if err == nil && p.State == "" {
		err = fmt.Errorf("answer about the task names no state")
	}
	p.TaskID = cmp.Or(p.TaskID, id)
	return p, err
}
