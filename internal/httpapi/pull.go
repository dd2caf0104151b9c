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

// Pull serves the agents that nobody can connect to; *pull.Lanes does.
type Pull interface {
	// Claim waits until there is something to say to an agent that asks for a
	// task.
	Claim(ctx context.Context, name string, c api.PullClaim, wait time.Duration) (api.PullAnswer, error)
	// Report returns when what an agent says of a task is stored.
	Report(ctx context.Context, name, id string, r api.PullReport) (api.PullReported, error)
	// Heartbeat notes that an agent was heard, and returns what it shall stop.
	// ok is false where the agent is not one that pulls.
	Heartbeat(ctx context.Context, name string, b api.Heartbeat) (stop []api.PullStop, ok bool, err error)
	// Answers reports whether an agent was heard lately. ok as of Heartbeat.
	Answers(name string) (there, ok bool)
	// Output is Runs.Output for the tasks of these agents.
	Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool)
}

// pullHeartbeatSeconds is how often, in seconds, an agent that pulls beats while it claims
// nothing.
const pullHeartbeatSeconds = 5

// maxReport bounds a report in bytes: an answer of 1 MiB, the end of a log and the beginning of
// a patch, each with its characters escaped, and the names of 1,000 files.
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

// reportToHolder hands a report of output alone to the director that holds the
// agent, so that the log of a task is at one of them, whichever its agent speaks
// to. Where that one does not answer, the log is kept here for the while.
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

// registerAgain adds to the error of an agent that the director does not know,
// or knows as another, what it can do.
func registerAgain(err error) error {
	switch code := signalbox.CodeOf(err); code {
	case signalbox.CodeConflict:
		return httpio.Refuse(code, "register again", "%v", err)
	}
	return err
}
