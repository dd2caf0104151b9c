package agentd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/strictjson"
)

// Handler serves the agent HTTP API for requests with a loopback or configured Host
// header.
func (d *Daemon) Handler() http.Handler { return d.handler(false) }

// handler answers a request or returns an error.
func (d *Daemon) handler(anyIP bool) http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range map[string]handler{
		"POST /task":                d.postTask,
		"GET /task/{id}":            d.withRun(d.getTask),
		"POST /task/{id}/void":      d.postVoid,
		"POST /task/{id}/cancel":    d.withRun(d.cancelTask),
		"GET /task/{id}/output":     d.withRun(d.getOutput),
		"GET /task/{id}/patch":      d.withRun(d.getPatch),
		"GET /status":               func(w http.ResponseWriter, _ *http.Request) error { return reply(w, http.StatusOK, d.Status()) },
		"GET /history":              d.getHistory,
		"GET /history/{id}":         d.withRun(d.getEnded),
		"GET /sessions":             d.getSessions,
		"GET /terminal":             d.getTerminal,
		"GET /workspaces":           d.getWorkspaces,
		"DELETE /workspaces/{name}": d.deleteWorkspace,
		"POST /shutdown":            d.shutdown,
	} {
		mux.Handle(pattern, h)
	}
	guarded := d.guard(jsonErrors(mux), anyIP)
	if d.cfg.Token == "" {
		return guarded
	}
	return handshake.Serve(d.cfg.Token, guarded)
}

// handler answers a request, or returns the reason why it did not.
type handler func(w http.ResponseWriter, req *http.Request) error

func (h handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if err := h(w, req); err != nil {
		replyError(w, err)
	}
}

func (d *Daemon) postTask(w http.ResponseWriter, req *http.Request) error {
	var t api.AgentTask
	if err := d.decode(w, req, &t, false); err != nil {
		return err
	}
	t.RunToken, t.EnvBy = req.Header.Get(api.RunTokenHeader), req.Header.Get(api.EnvByHeader)
	acc, err := d.Accept(withTrace(req), t)
	if err != nil {
		return err
	}
	return reply(w, http.StatusCreated, acc)
}

// find finds a run by task_id or queue_id.
func (d *Daemon) find(id string) *run {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.runs[id]; r != nil {
		return r
	}
	return d.byQueue[id]
}

func (d *Daemon) withRun(h func(http.ResponseWriter, *http.Request, *run) error) handler {
	return func(w http.ResponseWriter, req *http.Request) error {
		r := d.find(req.PathValue("id"))
		if r == nil {
			return refuse(http.StatusNotFound, "not_found", "this agent has never seen that task, or has forgotten it: it keeps the newest %d", historySize)
		}
		return h(w, req, r)
	}
}

func (d *Daemon) getTask(w http.ResponseWriter, req *http.Request, r *run) error {
	wait, after, ref := waitParams(req)
	if ref != nil {
		return ref
	}
	if !req.URL.Query().Has("after") {
		after = math.MaxInt64 // output alone does not end the wait
	}
	r.wait(req.Context(), wait, after)
	return replyStatus(w, r)
}

func replyStatus(w http.ResponseWriter, r *run) error {
	s, err := r.status(resultCap)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, s)
}

// wait returns when the run has ended, its output exceeds after, or d is over.
func (r *run) wait(ctx context.Context, d time.Duration, after int64) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		var more <-chan struct{}
		if after < math.MaxInt64 {
			if more = r.log.waitAfter(after); more == nil {
				if total, _ := r.log.progress(); total > after {
					return
				}
			}
		}
		select {
		case <-r.done:
			return
		case <-more:
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (d *Daemon) getOutput(w http.ResponseWriter, req *http.Request, r *run) error {
	wait, after, ref := waitParams(req)
	if ref != nil {
		return ref
	}
	r.wait(req.Context(), wait, after)
	out, err := r.log.read(after)
	if err == nil && out.Done {
		out.Final, err = r.finalStatus(req.Context())
	} else {
		rec := r.record()
		out.Note, out.TokenUsage, out.CostUSD = r.lastTroubleText(), rec.TokenUsage, rec.CostUSD
	}
	out.Account = r.account(false)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, out)
}

// getPatch answers with the whole patch, up to its cap. It answers 404 while the run
// continues, and if the run changed nothing or its changes are unknown.
func (d *Daemon) getPatch(w http.ResponseWriter, req *http.Request, r *run) error {
	rec := r.record()
	if !rec.terminal() || rec.Changes == nil || rec.Changes.PatchBytes == 0 {
		return refuse(http.StatusNotFound, "not_found", "there is no patch of that task")
	}
	f, err := os.Open(r.patchPath())
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Type", "text/x-diff; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, req, "", time.Time{}, f)
	return nil
}

// finalStatus is the status of a run whose output is complete, possibly before it is
// recorded.
func (r *run) finalStatus(ctx context.Context) (*api.AgentTaskStatus, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s, err := r.status(resultCap)
	return &s, err
}

// waitParams parses ?wait=30s (a Go duration or seconds, at most maxWait) and ?after=N.
func waitParams(req *http.Request) (time.Duration, int64, *refusal) {
	q := req.URL.Query()
	var wait time.Duration
	if s := q.Get("wait"); s != "" {
		var err error
		if wait, err = time.ParseDuration(s); err != nil {
			n, nerr := strconv.Atoi(s)
			if nerr != nil || n > 86400 {
				return 0, 0, invalid("wait is %q: a duration such as 30s", preview(s))
			}
			wait = time.Duration(n) * time.Second
		}
		if wait < 0 {
			return 0, 0, invalid("wait may not be negative")
		}
	}
	var after int64
	if s := q.Get("after"); s != "" {
		var err error
		if after, err = strconv.ParseInt(s, 10, 64); err != nil || after < 0 {
			return 0, 0, invalid("after is %q: a number of bytes, 0 or more", preview(s))
		}
	}
	return min(wait, maxWait), after, nil
}

func (d *Daemon) cancelTask(w http.ResponseWriter, req *http.Request, r *run) error {
	var none struct{}
	if err := d.decode(w, req, &none, true); err != nil {
		return err
	}
	if rec := r.record(); rec.terminal() {
		return alreadyEnded(rec)
	}
	r.requestStop(stop{state: stateCancelled, errType: "cancelled", message: "the task was cancelled while it ran"})
	select {
	case <-r.done:
	case <-time.After(d.cfg.CancelWait):
	case <-req.Context().Done():
	}
	switch rec := r.record(); {
	case !rec.terminal():
		return reply(w, http.StatusAccepted, api.AgentCancelled{TaskID: rec.TaskID, State: "cancelling", Message: "the task is being stopped; ask again for its state"})
	case rec.State == stateCancelled:
		return reply(w, http.StatusOK, api.AgentCancelled{TaskID: rec.TaskID, State: stateCancelled, Message: "the task was cancelled; nothing of it runs"})
	default:
		return alreadyEnded(rec)
	}
}

func alreadyEnded(rec record) *refusal {
	ref := refuse(http.StatusConflict, "already_completed", "the task has already ended: %s", rec.State)
	ref.body.FinalState = rec.State
	return ref
}

func (d *Daemon) getEnded(w http.ResponseWriter, _ *http.Request, r *run) error {
	if rec := r.record(); !rec.terminal() {
		return refuse(http.StatusNotFound, "not_found", "the task still runs; see /task/%s", rec.TaskID)
	}
	return replyStatus(w, r)
}

func (d *Daemon) shutdown(w http.ResponseWriter, req *http.Request) error {
	var s api.AgentShutdown
	if err := d.decode(w, req, &s, true); err != nil {
		return err
	}
	if s.TimeoutSeconds < 0 || s.TimeoutSeconds > maxTimeout {
		return invalid("timeout_seconds is %d: 0 to %d", s.TimeoutSeconds, maxTimeout)
	}
	d.mu.Lock()
	for _, r := range d.lanes {
		if !s.Force {
			d.mu.Unlock()
			ref := busy(r)
			ref.body.Error = "task_in_progress"
			ref.body.Message += "; send force to end it"
			return ref
		}
	}
	d.closing = true
	d.mu.Unlock()
	d.quitOnce.Do(func() { d.quit <- time.Duration(s.TimeoutSeconds) * time.Second })
	return reply(w, http.StatusAccepted, map[string]string{"status": "shutting_down", "message": "the agent takes no more tasks and ends"})
}

// decode decodes a JSON body strictly. If optional, an absent body equals {}.
func (d *Daemon) decode(w http.ResponseWriter, req *http.Request, into any, optional bool) *refusal {
	if optional && req.ContentLength == 0 {
		return nil
	}
	if !isJSON(req.Header.Get("Content-Type")) {
		return refuse(http.StatusUnsupportedMediaType, "validation_error", "Content-Type must be application/json")
	}
	// The deadline applies to the body only; an answer may take as long as ?wait.
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Now().Add(10 * time.Second)) // not every writer supports it
	defer ctl.SetReadDeadline(time.Time{})
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, d.cfg.BodyLimit))
	if err == nil {
		_, err = strictjson.Parse(body)
	}
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields()
		err = dec.Decode(into)
	}
	var tooLong *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooLong):
		return refuse(http.StatusRequestEntityTooLarge, "too_large", "the body is larger than %d bytes", tooLong.Limit)
	}
	return invalid("the body is not what is expected here: %v", err)
}

// reply writes an answer. It always returns nil, for handlers.
func reply(w http.ResponseWriter, status int, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"internal_error","message":"the answer could not be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the caller may have disconnected
	return nil
}

func replyError(w http.ResponseWriter, err error) {
	var ref *refusal
	if !errors.As(err, &ref) {
		ref = refuse(http.StatusInternalServerError, "internal_error", "%v", fmt.Errorf("the agent could not answer: %w", err))
	}
	_ = reply(w, ref.status, ref.body)
}
