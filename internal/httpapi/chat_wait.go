package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway/queuetools"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/stream"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// waitCall waits with the answer to a call until its task has ended, the caller
// disconnects, its preferred wait is over, or the director stops.
func (h *callHandlers) waitCall(w http.ResponseWriter, r *http.Request, c *call, t signalbox.Task) error {
	leave := h.callers.join(t.ID)
	ctx, cancel := httpio.Until(r.Context(), h.life)
	defer cancel()
	now, err := h.hold(ctx, c, t.ID)
	last := leave()
	if r.Context().Err() != nil {
		h.callerGone(r, c, t.ID, last)
		return nil
	}
	if err != nil && ctx.Err() != nil { // the read was canceled by the director's stop
		now, err = h.engine.Read().Task(r.Context(), t.ID)
	}
	if err != nil {
		return err
	}
	if !now.State.Terminal() {
		return h.answerEarly(w, r, c, &now)
	}
	end, err := h.endOf(r.Context(), c, &now)
	if err != nil {
		return err
	}
	end.body.RequestID = w.Header().Get(httpio.RequestIDHeader)
	return end.answer(w)
}

// hold waits for the end of a task, for as long as the call allows.
func (h *callHandlers) hold(ctx context.Context, c *call, id string) (signalbox.Task, error) {
	over := time.Now().Add(c.prefer.maxWait())
	if c.startWithin > 0 {
		t, err := h.engine.Wait(ctx, id, min(c.startWithin, c.prefer.maxWait()), begun)
		if err != nil || !begun(t) {
			return t, err
		}
	}
	return h.engine.Wait(ctx, id, time.Until(over), engine.Ended)
}

// begun reports whether a task has left the line for good: it runs or has ended.
func begun(t signalbox.Task) bool {
	return !t.State.Waiting() && t.State != signalbox.Dispatching
}

// answerEarly answers 202 to a call whose task goes on.
func (h *callHandlers) answerEarly(w http.ResponseWriter, r *http.Request, c *call, t *signalbox.Task) error {
	pos, err := h.positionOf(r.Context(), t)
	if err != nil {
		return err
	}
	why := "it goes on"
	applied := c.prefer.applied()
	switch {
	case h.life.Err() != nil:
		why, applied = "the director is stopping; the task goes on", ""
	case c.startWithin > 0 && !begun(*t):
		why = fmt.Sprintf("it has not started within %s and waits on in the backlog", c.startWithin)
	}
	if applied != "" {
		w.Header().Set("Preference-Applied", applied)
	}
	return httpio.Answer(w, http.StatusAccepted, h.acceptedView(c, t, pos, h.engine.ETA(r.Context(), t, pos), why+": ask for its end at "+view.TaskURL(t.ID)+"?wait=5m"))
}

// positionOf is the position of a task in its line, zero if it does not wait.
func (h *callHandlers) positionOf(ctx context.Context, t *signalbox.Task) (store.Position, error) {
	if !t.State.Waiting() {
		return store.Position{}, nil
	}
	return h.engine.Read().Position(ctx, t.ID)
}

// goneCaller is named as the canceller of a task whose caller has disconnected.
const goneCaller = "its caller, who went away"

// callerGone handles a caller that has disconnected before its answer. It cancels the task
// if the caller requested that and no other caller waits for the same task.
func (h *callHandlers) callerGone(r *http.Request, c *call, id string, last bool) {
	cancels := c.cancelIfGone && last
	h.log.Info("", c.name(), "caller_gone", "agent", c.agent, "execution", id, "cancels", cancels)
	if !cancels {
		return
	}
	_, err := h.engine.Cancel(context.WithoutCancel(r.Context()), id, goneCaller)
	if err != nil && signalbox.CodeOf(err) != signalbox.CodeAlreadyEnded {
		h.log.Error("task of a disconnected caller not cancelled", "queue_id", id, "error", err)
	}
}

// callers counts the callers that wait for each task: calls with the same idempotency key
// wait for the same task.
type callers struct {
	mu      sync.Mutex
	waiting map[string]int
}

// join counts a caller until it calls leave, which returns whether it was the last one.
func (c *callers) join(id string) (leave func() (last bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[string]int{}
	}
	c.waiting[id]++
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waiting[id]--
		if c.waiting[id] > 0 {
			return false
		}
		delete(c.waiting, id)
		return true
	}
}

// chatOutput is the data of the event "output" of a call's stream.
type chatOutput struct {
	After     int64  `json:"after"` // position of text in the whole log
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"` // output before text is no longer kept
}

// callStream sends the caller of a task its progress: accepted, then position, started and
// output as they happen, then result or error.
type callStream struct {
	*httpio.Stream
	calls    *callHandlers
	c        *call
	task     signalbox.Task
	position api.ChatPosition   // as last sent
	started  bool               // as last sent
	version  stream.LineVersion // the queue's version when the position was read
	lastRead time.Time
}

// streamCall answers a call with a stream. If the stream ends without result or error, the
// director is stopping, and the task goes on.
func (h *callHandlers) streamCall(w http.ResponseWriter, r *http.Request, c *call, got engine.Receipt) error {
	leave := h.callers.join(got.Task.ID)
	ctx, cancel := httpio.Until(r.Context(), h.life)
	defer cancel()
	s := &callStream{calls: h, c: c, task: got.Task}
	ended, err := s.run(ctx, w, got)
	last := leave()
	switch {
	case ended, h.life.Err() != nil, queuetools.StoppedWaiting(r.Context()):
	case err != nil && !s.Gone && r.Context().Err() == nil:
		return s.Fail(h.log, err) // a store error: a retry with the same key gets it as the answer
	default:
		h.callerGone(r, c, got.Task.ID, last)
	}
	return nil
}

// run sends events until the task has ended (then ended is true), the caller disconnects or
// ctx ends.
func (s *callStream) run(ctx context.Context, w http.ResponseWriter, got engine.Receipt) (ended bool, err error) {
	if s.Stream, err = httpio.BeginStream(w); err != nil {
		return false, err
	}
	first := s.calls.acceptedView(s.c, &got.Task, got.Position, got.ETA, "")
	s.position = api.ChatPosition{ID: got.Task.ID, Position: first.Position, ETA: first.ETA, WaitingFor: first.WaitingFor}
	if err := s.SendTransient("accepted", first); err != nil {
		return false, err
	}
	signs, stop := s.calls.engine.WatchTask(got.Task.ID)
	defer stop()
	journal, leave := s.calls.feed.Join()
	defer leave()
	output := s.calls.followOutput(ctx, got.Task.ID)
	if err := s.readTask(ctx, true); err != nil {
		return false, err
	}
	return s.follow(ctx, signs, journal, output)
}

func (s *callStream) follow(ctx context.Context, signs, journal <-chan struct{}, output <-chan outputPart) (ended bool, err error) {
	beat := time.Tick(httpio.KeepAliveEvery)
	due := time.NewTimer(forever)
	defer due.Stop()
	armed := false
	for {
		select {
		case <-signs:
			err = s.readTask(ctx, false)
		case <-journal:
			if !armed && s.task.State.Waiting() {
				armed = true
				due.Reset(max(0, stream.CoalesceInterval-time.Since(s.lastRead)))
			}
		case <-due.C:
			armed = false
			err = s.readTask(ctx, false)
		case <-beat:
			if err = s.KeepAlive(); err == nil {
				err = s.readTask(ctx, true)
			}
		case part := <-output:
			if ended, err = s.part(ctx, part); ended {
				return true, err
			}
		case <-ctx.Done():
			return false, ctx.Err()
		}
		if err != nil {
			return false, err
		}
	}
}

// readTask reads the task and sends what has changed: that it has started, or its position
// if its queue has changed, or always if anew is set.
func (s *callStream) readTask(ctx context.Context, anew bool) error {
	t, err := s.calls.engine.Read().Task(ctx, s.task.ID)
	if err != nil {
		return err
	}
	s.task, s.lastRead = t, time.Now()
	switch {
	case t.State.Waiting():
		s.started = false // the execution failed, and another one follows
		return s.sendPosition(ctx, anew)
	case t.State == signalbox.Dispatching:
		return nil // the agent may still refuse it
	}
	if s.position.Position != 0 {
		s.position = api.ChatPosition{ID: t.ID}
		if err := s.SendTransient("position", s.position); err != nil {
			return err
		}
	}
	if s.started || t.StartedAt.IsZero() {
		return nil
	}
	s.started = true
	begun := s.calls.acceptedView(s.c, &t, store.Position{}, nil, "")
	begun.State = string(signalbox.Working) // the state at the start, even if it has ended since
	return s.SendTransient("started", begun)
}

func (s *callStream) sendPosition(ctx context.Context, anew bool) error {
	touched := s.calls.feed.LineVersion(s.task.Queue)
	if touched == s.version && !anew {
		return nil
	}
	pos, err := s.calls.positionOf(ctx, &s.task)
	if err != nil || pos.N == 0 {
		return err // 0: it was just claimed, which is reported separately
	}
	s.version = touched
	gate := view.WaitingFor(s.calls.engine.WaitsAt(&s.task))
	if s.task.QueuedAs == 0 && s.task.Claims == 0 && pos.N == 1 && gate == nil {
		return nil // a slot is free for it, so it is not in line
	}
	if was := s.position.WaitingFor; pos.N == s.position.Position && (was == nil) == (gate == nil) && (gate == nil || was.Text == gate.Text) {
		return nil
	}
	s.position = api.ChatPosition{ID: s.task.ID, Position: pos.N, ETA: view.ETA(s.calls.engine.ETA(ctx, &s.task, pos)), WaitingFor: gate}
	return s.SendTransient("position", s.position)
}

// outputPart is a part of a log, or the error that ended it.
type outputPart struct {
	api.Output
	err error
}

// followOutput reads the log of a task, from before its start until its end, one part ahead
// of the receiver.
func (h *callHandlers) followOutput(ctx context.Context, id string) <-chan outputPart {
	parts := make(chan outputPart)
	go func() {
		l := h.outputs.Log(id)
		defer l.Close()
		after := int64(0)
		for ctx.Err() == nil {
			out, err := l.Next(ctx, after, httpio.KeepAliveEvery, nil)
			if err == nil && out.Text == "" && !out.Done && !out.Truncated {
				continue
			}
			select {
			case parts <- outputPart{out, err}:
			case <-ctx.Done():
			}
			if err != nil || out.Done {
				return
			}
			after = out.Next
		}
	}()
	return parts
}

// part sends a part of the log. The last part comes with the end of the task, which is sent
// after it.
func (s *callStream) part(ctx context.Context, p outputPart) (ended bool, err error) {
	if p.err != nil {
		return false, p.err
	}
	if err := s.readTask(ctx, false); err != nil { // output must come after the start
		return false, err
	}
	if p.Done {
		if p.Text, err = s.rest(ctx, p); err != nil {
			return false, err
		}
	}
	if p.Text != "" || (p.Truncated && !p.Done) {
		if err := s.SendTransient("output", chatOutput{After: p.Seq, Text: p.Text, Truncated: p.Truncated}); err != nil {
			return false, err
		}
	}
	if !p.Done {
		return false, nil
	}
	return true, s.end(ctx)
}

// rest returns the end of the log of an ended task. It is empty if the agent keeps no log,
// because then the log reader returns the answer, which the result already has.
func (s *callStream) rest(ctx context.Context, p outputPart) (string, error) {
	res, err := s.calls.engine.Read().Result(ctx, s.task.ID)
	if err != nil || res.Tail == "" {
		return "", err
	}
	return p.Text, nil
}

func (s *callStream) end(ctx context.Context) error {
	end, err := s.calls.endOf(ctx, s.c, &s.task)
	if err != nil {
		return err
	}
	if end.response != nil {
		return s.SendTransient("result", end.response)
	}
	end.body.RequestID = s.RequestID()
	return s.SendTransient("error", end.body)
}
