package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// wholeLog is GET /api/queue/{id}/output?whole=true: a piece of the log that the agent of
// the last attempt keeps, of which the director has the end alone. Each piece is asked of
// the agent; nothing is kept here.
func (h *Outputs) wholeLog(w http.ResponseWriter, r *http.Request, id string, after int64) error {
	if httpio.WantsStream(r) || httpio.Param(r, "wait") != "" {
		return signalbox.Invalid("whole", "the whole log comes piece by piece, as JSON: ask with after alone, which is next of the piece before")
	}
	ctx, cancel := httpio.Until(r.Context(), h.Life)
	defer cancel()
	t, err := h.Engine.Read().Task(ctx, id)
	if err != nil {
		return err
	}
	if err := h.askable(ctx, &t, "output.log"); err != nil {
		return err
	}
	piece, err := h.Runs.WholeLog(ctx, &t, after)
	if err != nil {
		return withCure(err, &t, "output.log")
	}
	return httpio.Answer(w, http.StatusOK, api.Output{
		QueueID: id, State: string(t.State), Seq: piece.Seq, Text: piece.Text, Next: piece.Next, Truncated: piece.Truncated, Done: piece.Done,
	})
}

// askable returns why no agent can be asked for a file of a task's run.
func (h *Outputs) askable(ctx context.Context, t *signalbox.Task, file string) error {
	if signalbox.IsExecutor(t.Agent) {
		return httpio.Refuse(signalbox.CodeUnsupported, "leave out whole: the director has all that is kept of it", "task %s is a tool call, which the director itself runs", t.ID)
	}
	if t.Agent == "" || t.TaskID == "" {
		return httpio.Refuse(signalbox.CodeConflict, "signalbox why says what a waiting task waits for", "task %s has run at no agent", t.ID)
	}
	a, err := h.Engine.Agent(ctx, t.Agent)
	if err == nil && a.Source == signalbox.AgentPull {
		return httpio.Refuse(signalbox.CodeUnsupported, onItsHost(t, file), "agent %s asks for its tasks itself, and nobody can connect to it", t.Agent)
	}
	return nil
}

// onItsHost says where an agent keeps a file of a run.
func onItsHost(t *signalbox.Task, file string) string {
	return fmt.Sprintf("on the agent's host it is the file runs/%s/%s in the data folder of the agent, as long as that keeps it", httpio.Clip(t.TaskID), file)
}

// withCure adds to the error of an agent what can be done.
func withCure(err error, t *signalbox.Task, file string) error {
	if _, ok := errors.AsType[*httpio.Refusal](err); ok {
		return err // it says it already
	}
	plain, ok := errors.AsType[*signalbox.Error](err)
	if !ok {
		return err
	}
	if plain.Code == signalbox.CodeNotFound {
		return &httpio.Refusal{Err: plain, Hint: "an agent keeps the files of its last 100 tasks; leave out whole for what the director keeps of a log"}
	}
	return &httpio.Refusal{Err: plain, Hint: "try again when signalbox agents shows it; " + onItsHost(t, file), RetryAfter: 5}
}
