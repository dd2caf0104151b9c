package stream

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

const (
	patchMedia = "text/x-diff" // content type of a patch
	patchFile  = "patch"       // name of a patch in the folder of a run
)

// Diff is GET /api/queue/{id}/diff: what the last run of a task changed, as JSON or as a patch.
func (h *Outputs) Diff(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	asPatch, err := wantsPatch(r)
	if err != nil {
		return err
	}
	got, err := h.Engine.Read().Whole(r.Context(), id)
	if err != nil {
		return err
	}
	t, c := &got.Task, got.Result.Changes
	switch {
	case !t.State.Terminal():
		return httpio.Refuse(signalbox.CodeConflict, "GET /api/queue/{id}?wait=5m waits for its end",
			"task %s is %s: its changes are known when it has ended", t.ID, t.State)
	case c == nil:
		return httpio.Refuse(signalbox.CodeNotFound, "Signalbox agents report the changes of runs in a git repository; other agents may report them at the end of a run",
			"the changes of task %s are not known", t.ID)
	case asPatch:
		ctx, cancel := httpio.Until(r.Context(), h.Life)
		defer cancel()
		return h.patch(ctx, w, r, t, c)
	}
	return httpio.Answer(w, http.StatusOK, api.Diff{QueueID: t.ID, State: string(t.State), Agent: t.Agent, Changes: view.Changes(c), Cut: c.Cut()})
}

// wantsPatch reports whether the caller wants a patch instead of JSON.
func wantsPatch(r *http.Request) (bool, error) {
	switch format := httpio.Param(r, "format"); format {
	case "":
		return strings.Contains(strings.ToLower(r.Header.Get("Accept")), patchMedia), nil
	case "json", "patch":
		return format == "patch", nil
	default:
		return false, signalbox.Invalid("format", "format must be json or patch, not %q", httpio.Clip(format))
	}
}

// patch answers with the whole patch: the stored one, or else the agent's. If the agent does
// not send it, the answer is the stored part, with a header that says what is missing and
// why.
func (h *Outputs) patch(ctx context.Context, w http.ResponseWriter, r *http.Request, t *signalbox.Task, c *signalbox.Changes) error {
	head := w.Header()
	head.Set("Content-Type", patchMedia)
	head.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": t.ID + ".patch"}))
	send := func(from io.Reader, size int64) error {
		head.Set("Content-Length", strconv.FormatInt(size, 10))
		if r.Method == http.MethodHead {
			return nil
		}
		if n, err := io.CopyN(slowWriter{w}, from, size); err != nil {
			h.Logger.Warn("a patch was cut off", "queue_id", t.ID, "agent", t.Agent, "bytes", n, "of", size, "error", err)
			panic(http.ErrAbortHandler) // a partial patch must not look complete
		}
		return nil
	}
	cut := c.Cut()
	if cut != "" {
		err := h.askable(ctx, t, patchFile)
		if err == nil {
			var whole io.ReadCloser
			if whole, err = h.Runs.Patch(ctx, t, c.PatchBytes); err == nil {
				defer whole.Close()
				return send(whole, c.PatchBytes)
			}
		}
		if c.Patch == "" {
			head.Del("Content-Disposition")
			return withCure(err, t, patchFile)
		}
		head.Set(api.PatchCutHeader, httpio.Clip(fmt.Sprintf("%s; %s", cut, err)))
	}
	return send(strings.NewReader(c.Patch), int64(len(c.Patch)))
}

// slowWriter writes a long answer: each write has a deadline, not the whole answer.
type slowWriter struct{ w http.ResponseWriter }

func (s slowWriter) Write(b []byte) (int, error) {
	httpio.ExtendWriteDeadline(s.w)
	return s.w.Write(b)
}
