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
// the last attempt keeps. The director keeps only the end of it, so each piece comes from
// the agent.
func (h *Outputs) wholeLog(w http.ResponseWriter, r *http.Request, id string, after int64) error {
	if httpio.WantsStream(r) || httpio.Param(r, "wait") != "" {
		return signalbox.Invalid("whole", "the whole log comes in pieces, as JSON: give only after, which is next of the previous piece")
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

// askable returns an error if no agent can be asked for a file of a task's run.
func (h *Outputs) askable(ctx context.Context, t *signalbox.Task, file string) error {
	if signalbox.IsExecutor(t.Agent) {
		return httpio.Refuse(signalbox.CodeUnsupported, "leave out whole: the director has all of the log that is kept", "task %s is a tool call, which the director itself runs", t.ID)
	}
	if t.Agent == "" || t.TaskID == "" {
		return httpio.Refuse(signalbox.CodeConflict, "signalbox why shows what a waiting task waits for", "task %s has not run on an agent", t.ID)
	}
	a, err := h.Engine.Agent(ctx, t.Agent)
	if err == nil && a.Source == signalbox.AgentPull {
		return httpio.Refuse(signalbox.CodeUnsupported, onItsHost(t, file), "agent %s pulls its tasks, and accepts no connections", t.Agent)
	}
	return nil
}

// onItsHost describes where an agent keeps a file of a run.
func onItsHost(t *signalbox.Task, file string) string {
	return fmt.Sprintf("on the agent's host it is the file runs/%s/%s in the agent's data folder, as long as the agent keeps it", httpio.Clip(t.TaskID), file)
}

// withCure adds a hint to the error of an agent.
func withCure(err error, t *signalbox.Task, file string) error {
	if _, ok := errors.AsType[*httpio.Refusal](err); ok {
		return err // it has a hint already
	}
	plain, ok := errors.AsType[*signalbox.Error](err)
	if !ok {
		return err
	}
	if plain.Code == signalbox.CodeNotFound {
		return &httpio.Refusal{Err: plain, Hint: "an agent keeps the files of its last 100 tasks; leave out whole for the part of the log that the director keeps"}
	}
	return &httpio.Refusal{Err: plain, Hint: "try again when signalbox agents shows it; " + onItsHost(t, file), RetryAfter: 5}
}
