package alone

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

// Director is where to submit to.
type Director struct {
	URL   string
	Token string
}

// Queue submits to a director.
type Queue struct {
	// find returns the director, or false where there is none to be found.
	find      func() (Director, bool, error)
	userAgent string

	mu     sync.Mutex
	at     Director
	client *client.Client

	held atomic.Int64 // when a task was last found not to have ended, Unix ns
}

// NewQueue makes a queue of the director that find returns whenever it is
// needed: one that is started later is found then.
func NewQueue(find func() (Director, bool, error), userAgent string) *Queue {
	return &Queue{find: find, userAgent: userAgent}
}

// Bounds of one call of the director. What has no answer is tried again by the
// scheduler, with the same key.
const (
	callTimeout = 20 * time.Second
	callTries   = 2
)

// director makes a client of the director that there is now.
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

// URL is the address of the director that there is now, or "".
func (q *Queue) URL() string {
	if at, ok, err := q.find(); ok && err == nil {
		return at.URL
	}
	return ""
}

// Submit submits what a schedule says.
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
	got, err := c.Submit(ctx, req, client.SubmitOptions{IdempotencyKey: key})
	if err != nil {
		return schedule.Submitted{}, refusal(err)
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
		return false, refusal(err)
	}
	ended := client.Ended(t.State)
	if !ended {
		q.held.Store(time.Now().UnixNano())
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
		return refusal(err)
	}
	return nil
}

// How often a task is asked for whose end is waited for, and for how long after
// it was last asked for.
const (
	askEvery = 2 * time.Second
	askFor   = 15 * time.Second
)

// Ends gives a sign now and then while somebody waits for the end of a task:
// the scheduler then asks for it. A stream of the director's events for that
// would be open all the time, and needs more rights.
func (q *Queue) Ends() (signs <-chan struct{}, stop func()) {
	out := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.Tick(askEvery)
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			if time.Since(time.Unix(0, q.held.Load())) > askFor {
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

// refusal words an error of the client for the scheduler.
func refusal(err error) error {
	var e *client.Error
	if client.IsUnreachable(err) || client.Code(err) == client.CodeUnproved || !errors.As(err, &e) {
		return &signalbox.Error{Code: signalbox.CodeUnavailable, Message: err.Error()}
	}
	out := &signalbox.Error{Code: signalbox.Code(e.Body.Error), Field: e.Body.Field, Message: e.Error()}
	switch {
	case out.Code == signalbox.CodeQueueFull:
		return &schedule.Full{Err: out}
	case out.Code == signalbox.CodeIdempotency, out.Code == signalbox.CodeRateLimited:
	case out.Code == client.CodeUnexpectedAnswer && e.Status >= http.StatusInternalServerError, e.Status == http.StatusBadGateway,
		e.Status == http.StatusServiceUnavailable, e.Status == http.StatusGatewayTimeout, e.Status >= 500 && e.Body.Retryable:
		out.Code = signalbox.CodeUnavailable // also what a proxy says whose director is away
	case out.Code == signalbox.CodeNotFound && out.Field == "":
		out.Code = signalbox.CodeValidation // there is a director; what is not found is something that the job names
	}
	return out
}
