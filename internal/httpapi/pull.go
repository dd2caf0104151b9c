package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// Pull serves the agents that pull their tasks; *pull.Lanes implements it.
type Pull interface {
	// Claim waits until there is an answer for an agent that asks for a task.
	Claim(ctx context.Context, name string, c api.PullClaim, wait time.Duration) (api.PullAnswer, error)
	// Report returns when an agent's report about a task is stored.
	Report(ctx context.Context, name, id string, r api.PullReport) (api.PullReported, error)
	// Heartbeat records a heartbeat of an agent, and returns the tasks that it must
	// stop. ok is false if the agent does not pull.
	Heartbeat(ctx context.Context, name string, b api.Heartbeat) (stop []api.PullStop, ok bool, err error)
	// Answers reports whether there was a recent request of an agent. ok is that of
	// Heartbeat.
	Answers(name string) (there, ok bool)
	// Output is Runs.Output for tasks of these agents.
	Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool)
}

// pullHeartbeatSeconds is the heartbeat interval, in seconds, of an agent that pulls, while
// it claims nothing.
const pullHeartbeatSeconds = 5

// maxReport limits a report in bytes: an answer of 1 MiB, the end of a log and the beginning of
// a patch, with escaped characters, and the names of 1,000 files.
const maxReport = 12 << 20

// pullHandlers serve agents that pull their tasks.
type pullHandlers struct {
	pull    Pull // nil: no agent can pull
	forward *forward.Forwarder
	life    context.Context
}

// claim is POST /api/agents/{name}/claim.
func (h *pullHandlers) claim(w http.ResponseWriter, r *http.Request) error {
	name, err := h.puller(r)
	if err != nil {
		return err
	}
	wait, err := httpio.Wait(r)
	if err != nil {
		return err
	}
	var c api.PullClaim
	if err := httpio.Decode(w, r, &c, false); err != nil {
		return err
	}
	ctx, cancel := httpio.Until(r.Context(), h.life)
	defer cancel()
	claimed, err := h.pull.Claim(ctx, name, c, wait)
	if err != nil {
		return registerAgain(err)
	}
	return httpio.Answer(w, http.StatusOK, claimed)
}

// report is POST /api/agents/{name}/tasks/{id}/report.
func (h *pullHandlers) report(w http.ResponseWriter, r *http.Request) error {
	name, err := h.puller(r)
	if err != nil {
		return err
	}
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	var rep api.PullReport
	if err := httpio.DecodeUpTo(w, r, maxReport, &rep, false); err != nil {
		return err
	}
	if reported, ok := h.reportToHolder(r, name, rep); ok {
		return httpio.Answer(w, http.StatusOK, reported)
	}
	reported, err := h.pull.Report(r.Context(), name, id, rep)
	if err != nil {
		return registerAgain(err)
	}
	return httpio.Answer(w, http.StatusOK, reported)
}

// reportToHolder forwards a report that has only output to the director that holds the
// agent, so that one director has the whole log of a task, whichever director the agent
// reports to. If that director does not answer, the log is kept here for now.
func (h *pullHandlers) reportToHolder(r *http.Request, name string, rep api.PullReport) (answer api.PullReported, ok bool) {
	if rep.Output == nil || rep.Accepted != nil || rep.Refused != nil || rep.Finished != nil || rep.Unknown {
		return answer, false
	}
	holder, elsewhere := h.forward.RemoteHolder(r.Context(), name)
	if !elsewhere {
		return answer, false
	}
	err := h.forward.Ask(r.Context(), holder, httpio.Outgoing{Method: http.MethodPost, Path: r.URL.EscapedPath(), Body: rep}, 0, &answer)
	return answer, err == nil
}

// puller is the name of the agent in the path, if this director serves agents that pull.
func (h *pullHandlers) puller(r *http.Request) (string, error) {
	name := r.PathValue("name")
	switch {
	case signalbox.IsExecutor(name):
		return "", noAgent(name)
	case !signalbox.ValidName(name):
		return "", signalbox.Errorf(signalbox.CodeNotFound, "%q is not the name of an agent", httpio.Clip(name))
	case h.pull == nil:
		return "", httpio.Refuse(signalbox.CodeUnsupported, "ask another director", "this director serves no agents that pull")
	}
	return name, nil
}

// registerAgain adds a hint to the error for an agent that the director does not know, or
// knows as another instance.
func registerAgain(err error) error {
	switch code := signalbox.CodeOf(err); code {
	case signalbox.CodeConflict:
		return httpio.Refuse(code, "register again", "%v", err)
	}
	return err
}
