package standalone

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

// Director is the address of a director.
type Director struct {
	URL   string
	Token string
}

// Queue implements schedule.Queue on a director's API.
type Queue struct {
	// find returns the director, or false if none is found.
	find      func() (Director, bool, error)
	userAgent string

	mu     sync.Mutex
	at     Director
	client *client.Client

	lastOpen atomic.Int64 // when a task was last found open, Unix ns
}

// NewQueue returns a queue. find is called for each request, so a director that starts later is found.
func NewQueue(find func() (Director, bool, error), userAgent string) *Queue {
	return &Queue{find: find, userAgent: userAgent}
}

// Bounds of one call. The scheduler retries with the same key.
const (
	callTimeout = 20 * time.Second
	callTries   = 2
)

// director returns a client of the current director.
func (q *Queue) director() (*client.Client, error) {
	at, ok, err := q.find()
	if err != nil {
		return nil, &signalbox.Error{Code: signalbox.CodeUnavailable, Message: "the director cannot be found", Err: err}
	}
	if !ok {
		return nil, signalbox.Errorf(signalbox.CodeNotFound, "no director is named, and none runs here: give --director, or director_url in the configuration")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.client == nil || at != q.at {
		c, err := client.New(at.URL, client.Options{Token: at.Token, UserAgent: q.userAgent, Timeout: callTimeout, Tries: callTries})
		if err != nil {
			return nil, signalbox.Invalid("director", "%s", err)
		}
		q.client, q.at = c, at
	}
	return q.client, nil
}

// URL returns the address of the current director, or "".
func (q *Queue) URL() string {
	if at, ok, err := q.find(); ok && err == nil {
		return at.URL
	}
	return ""
}

func (q *Queue) Submit(ctx context.Context, s signalbox.Schedule, key string) (schedule.Submitted, error) {
	c, err := q.director()
	if err != nil {
		return schedule.Submitted{}, err
	}
	req := api.SubmitRequest{
		Prompt: s.Prompt, Model: s.Model, Tier: s.Tier, TimeoutSeconds: s.TimeoutSeconds, SessionID: s.SessionID, Thinking: s.Thinking,
		Source: string(signalbox.SourceScheduler), SourceJob: s.Name, Agent: s.Agent, Kind: s.Kind, Priority: s.Priority, OnLost: string(s.OnLost),
	}
	req.Project = (*api.Project)(s.Project)
	w := s.Workspace.Said()
	req.Workspace, req.Repo, req.Base = w.Kind, w.Repo, w.Base
	for _, one := range s.Checking.Checks {
		req.Checks = append(req.Checks, api.TaskCheck(one))
	}
	l := s.Landing.Said()
	req.CheckRetries, req.Land, req.LandMethod, req.FastForward = s.Checking.Retries, l.Onto, l.Method, l.FastForward
	got, err := c.Submit(ctx, req, client.SubmitOptions{IdempotencyKey: key})
	if err != nil {
		return schedule.Submitted{}, asScheduleError(err)
	}
	return schedule.Submitted{QueueID: got.QueueID, Known: got.Replayed}, nil
}

// Ended reports whether a task has ended.
func (q *Queue) Ended(ctx context.Context, queueID string) (bool, error) {
	c, err := q.director()
	if err != nil {
		return false, err
	}
	t, err := c.Task(ctx, queueID)
	switch {
	case client.Code(err) == string(signalbox.CodeNotFound):
		return true, nil
	case err != nil:
		return false, asScheduleError(err)
	}
	ended := client.Ended(t.State)
	if !ended {
		q.lastOpen.Store(time.Now().UnixNano())
	}
	return ended, nil
}

// Cancel asks for the end of a task.
func (q *Queue) Cancel(ctx context.Context, queueID, _ string) error {
	c, err := q.director()
	if err != nil {
		return err
	}
	_, err = c.Cancel(ctx, queueID)
	switch client.Code(err) {
	case string(signalbox.CodeNotFound), string(signalbox.CodeAlreadyEnded):
		return nil
	}
	if err != nil {
		return asScheduleError(err)
	}
	return nil
}

// How often Ends signals, and for how long after an open task was last seen.
const (
	endsInterval = 2 * time.Second
	endsWindow   = 15 * time.Second
)

// Ends signals periodically while the scheduler waits for a task. A stream of the director's
// events would stay open all the time and need more rights.
func (q *Queue) Ends() (signs <-chan struct{}, stop func()) {
	out := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.Tick(endsInterval)
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			if time.Since(time.Unix(0, q.lastOpen.Load())) > endsWindow {
				continue
			}
			select {
			case out <- struct{}{}:
			default:
			}
		}
	})
	return out, func() { cancel(); group.Wait() }
}

// asScheduleError converts a client error for the scheduler.
func asScheduleError(err error) error {
	var e *client.Error
	if client.IsUnreachable(err) || client.Code(err) == client.CodeUnproved || !errors.As(err, &e) {
		return &signalbox.Error{Code: signalbox.CodeUnavailable, Message: err.Error()}
	}
	out := &signalbox.Error{Code: signalbox.Code(e.Body.Error), Field: e.Body.Field, Message: e.Error()}
	switch {
	case out.Code == signalbox.CodeQueueFull:
		return &schedule.FullError{Err: out}
	case out.Code == signalbox.CodeIdempotency, out.Code == signalbox.CodeRateLimited:
	case out.Code == client.CodeUnexpectedAnswer && e.Status >= http.StatusInternalServerError, e.Status == http.StatusBadGateway,
		e.Status == http.StatusServiceUnavailable, e.Status == http.StatusGatewayTimeout, e.Status >= 500 && e.Body.Retryable:
		out.Code = signalbox.CodeUnavailable // also if a proxy's director is down
	case out.Code == signalbox.CodeNotFound && out.Field == "":
		out.Code = signalbox.CodeValidation // a director answers, but something that the job names does not exist
	}
	return out
}
