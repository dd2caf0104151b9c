package execution

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Outcome parses an agent's final report. lost says that the execution did not end by
// itself: the agent was restarted, or a newer fence voided it.
func Outcome(s api.AgentTaskStatus, kind string, now time.Time) (o engine.Outcome, lost bool) {
	o = engine.Outcome{Result: result(s), Account: AccountNews(kind, s.Account, now), Limit: limitOf(&s, now)}
	if len(s.TaskID) <= MaxAgentID {
		o.TaskID = s.TaskID
	}
	if signalbox.ValidSessionID(s.SessionID) {
		o.SessionID = s.SessionID
	}
	kind, message := "", ""
	if s.Error != nil {
		kind, message = s.Error.Type, SanitizeText(s.Error.Message)
	}
	o.Message = message
	if s.State == "completed" && message == "" {
		o.Message = SanitizeText(s.Note)
	}
	switch {
	case s.State == "completed" && !abortedKinds[kind]:
		o.Reason = signalbox.ReasonCompleted
	case s.State == "cancelled" || kind == "cancelled":
		o.Reason = signalbox.ReasonCancelled
	case kind == "timeout" || s.State == "timeout":
		o.Reason = signalbox.ReasonRunTimeout
	case kind == "interrupted":
		o.Reason, lost = signalbox.ReasonInterrupted, true
	case kind == "stale_fence":
		o.Reason, lost = signalbox.ReasonLost, true
	case kind == "budget":
		o.Reason = signalbox.ReasonBudget
	case kind == "checks":
		o.Reason = signalbox.ReasonChecks
	case kind == "exit_nonzero":
		o.Reason = signalbox.ReasonExitNonzero
	default:
		o.Reason = signalbox.ReasonAgentError
	}
	if o.Message == "" && o.Reason == signalbox.ReasonAgentError {
		o.Message = fmt.Sprintf("agent reports %q without a message", SanitizeText(cmp.Or(kind, s.State)))
	}
	if o.Reason == signalbox.ReasonExitNonzero && o.Message == "" && s.ExitCode != nil {
		o.Message = fmt.Sprintf("command exited with code %d", *s.ExitCode)
	}
	return o, lost
}

// abortedKinds are the error types of a run that was ended from outside, or whose work did not pass: even with state
// completed it is not a success.
var abortedKinds = map[string]bool{"cancelled": true, "timeout": true, "interrupted": true, "stale_fence": true, "budget": true, "checks": true}

// Aborted reports whether a run ended because it was void or its agent was restarted; such
// a report is not worth keeping.
func Aborted(s *api.AgentTaskStatus) bool {
	return s.Error != nil && (s.Error.Type == "interrupted" || s.Error.Type == "stale_fence")
}

// StaleReport is an agent's final report on a void run.
func StaleReport(fence int64, agent string, at time.Time, state string, o engine.Outcome) signalbox.Stale {
	r := *o.Result
	r.Changes, r.Checked = r.Changes.Summary(), r.Checked.Summary()
	return signalbox.Stale{
		Fence: fence, Agent: agent, TaskID: o.TaskID, At: at, State: state, Message: cmp.Or(o.Message, state), Result: r,
	}
}

// maxDuration bounds a reported duration, in seconds; longer ones do not fit a
// time.Duration either.
const maxDuration = 10 * 365 * 24 * 3600

func result(s api.AgentTaskStatus) *signalbox.Result {
	r := &signalbox.Result{
		Output: clip(s.Output, signalbox.OutputBytes), ExitCode: s.ExitCode, CostUSD: max(0, s.CostUSD), ToolCount: max(0, s.ToolCount),
	}
	if s.DurationSeconds > 0 && s.DurationSeconds < maxDuration { // else its clock jumped
		r.DurationSeconds = s.DurationSeconds
	}
	if s.TokenUsage != nil {
		r.InputTokens, r.OutputTokens = max(0, s.TokenUsage.Input), max(0, s.TokenUsage.Output)
	}
	r.Model = strings.ToValidUTF8(s.Model[:min(len(s.Model), signalbox.MaxModel)], "")
	if s.Error != nil {
		r.ErrorType = SanitizeText(s.Error.Type)
	}
	r.Changes, r.Checked = changes(s.Changes), checked(s.Checks)
	if s.Landed != nil {
		l := signalbox.Landed(*s.Landed)
		l.Sanitize()
		r.Landed = &l
	}
	return r
}

// changes parses what an agent reports that a run has changed; nil for nil.
func changes(c *api.Changes) *signalbox.Changes {
	if c == nil {
		return nil
	}
	out := &signalbox.Changes{
		Workspace: c.Workspace, Dir: c.Dir, Branch: c.Branch, Base: c.Base, Head: c.Head, Commits: c.Commits, Uncommitted: c.Uncommitted,
		BaseBranch: c.BaseBranch, FilesChanged: c.FilesChanged, Insertions: c.Insertions, Deletions: c.Deletions, Patch: c.Patch, PatchBytes: c.PatchBytes,
	}
	for _, f := range c.Files[:min(len(c.Files), signalbox.MaxChangedFiles)] {
		out.Files = append(out.Files, signalbox.ChangedFile{
			Path: f.Path, From: f.From, Status: signalbox.ChangeStatus(f.Status), Insertions: f.Insertions, Deletions: f.Deletions, Binary: f.Binary,
		})
	}
	out.Sanitize()
	return out
}

// checked parses what an agent reports about the checks of a run; nil for nil.
func checked(c *api.AgentChecks) *signalbox.Checked {
	if c == nil {
		return nil
	}
	out := &signalbox.Checked{State: signalbox.CheckState(c.State), Rounds: c.Rounds, Message: c.Message}
	for _, r := range c.Results[:min(len(c.Results), signalbox.MaxChecks)] {
		out.Results = append(out.Results, signalbox.CheckResult{
			Name: r.Name, State: signalbox.CheckState(r.State), ExitCode: r.ExitCode, Seconds: r.Seconds, Output: r.Output,
		})
	}
	out.Sanitize()
	return out
}

// clip keeps the last n bytes, at a rune boundary: the end of an answer matters most.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := len(s) - n
	for cut < len(s) && s[cut]&0xc0 == 0x80 {
		cut++
	}
	return s[cut:]
}
