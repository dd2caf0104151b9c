package client

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// SubmitOptions go with a submit.
type SubmitOptions struct {
	// IdempotencyKey, 1 to 255 printable characters, makes at most one task.
	// Empty: a random one is made for this call, so that its repeats after a
	// lost reply find the same task.
	IdempotencyKey string
	// Execution is the queue_id of the execution that makes the call, where
	// the token is that of an agent; default: the only one that it runs.
	Execution string
}

// NewIdempotencyKey makes a random key, for callers that want to keep it.
func NewIdempotencyKey() string { return "key-" + rand.Text() }

// Submit puts a task in the queue. A reply that is lost is asked for again
// with the same key, at most Options.Tries times; if none comes, the
// *UnreachableError carries the key.
//
// Codes: validation_error, queue_full, not_found (the agent),
// idempotency_conflict (the key came with another body before).
func (c *Client) Submit(ctx context.Context, req api.SubmitRequest, opts SubmitOptions) (api.SubmitResponse, error) {
	return c.submitTo(ctx, "/api/queue/task", req, opts)
}

// SubmitTask is Submit by the route of the web view, which answers 202 and
// records web as the source.
func (c *Client) SubmitTask(ctx context.Context, req api.SubmitRequest, opts SubmitOptions) (api.SubmitResponse, error) {
	return c.submitTo(ctx, "/api/task", req, opts)
}

// Retry submits an ended task anew, with what edit changes in it. Lost
// replies are handled as by Submit.
//
// Codes: not_found, conflict (it has not ended), queue_full.
func (c *Client) Retry(ctx context.Context, id string, edit api.RetryRequest, opts SubmitOptions) (api.SubmitResponse, error) {
	return c.submitTo(ctx, taskPath(id, "/retry"), edit, opts)
}

func (c *Client) submitTo(ctx context.Context, path string, body any, opts SubmitOptions) (api.SubmitResponse, error) {
	var out api.SubmitResponse
	req, err := post(path, body)
	if err != nil {
		return out, err
	}
	req.caller = opts.Execution
	req.key = opts.IdempotencyKey
	if req.key == "" {
		req.key = NewIdempotencyKey()
	}
	return out, c.keyed(ctx, req, &out)
}

// keyed sends a request until its reply comes. Once a reply was lost, the
// task may be stored, so that a refused connection is tried again too: the
// director may just be starting.
func (c *Client) keyed(ctx context.Context, req call, out any) error {
	lost := false
	for try := 1; ; try++ {
		err := c.do(ctx, req, out)
		if err == nil {
			return nil
		}
		lost = lost || lostReply(err)
		if !lost || !passing(err) || Code(err) == "queue_full" {
			return err
		}
		if try == c.opts.Tries {
			return c.lostKey(req, err)
		}
		if err := c.pause(ctx, try, err); err != nil {
			return err
		}
	}
}

// lostKey makes sure that the last error of several carries the key: it may
// be a refused connection, after an earlier request that arrived.
func (c *Client) lostKey(req call, err error) error {
	var gone *UnreachableError
	if !errors.As(err, &gone) {
		return &UnreachableError{URL: c.URL(), Sent: true, Key: req.key, Err: err}
	}
	gone.Sent, gone.Key = true, req.key
	return gone
}

// Task returns a task by its full id. Code not_found: it never existed or
// has been pruned.
func (c *Client) Task(ctx context.Context, id string) (api.Task, error) {
	var out api.Task
	return out, c.do(ctx, get(taskPath(id, ""), nil), &out)
}

// Wait returns a task once it has ended. It polls with ?wait= and outlives
// restarts of the director (see Options.Patience). Code not_found: the task
// never existed or has been pruned.
func (c *Client) Wait(ctx context.Context, id string) (api.Task, error) {
	p := c.newPatience()
	for {
		began := time.Now()
		task, err := c.poll(ctx, id)
		if err == nil && Ended(task.State) {
			return task, nil
		}
		if err == nil {
			p.answered()
			err = c.unspin(ctx, began)
		} else {
			err = p.wait(ctx, err)
		}
		if err != nil {
			return api.Task{}, err
		}
	}
}

// unspin waits a little where a long poll came back early, as it does from a
// director that is about to stop.
func (c *Client) unspin(ctx context.Context, began time.Time) error {
	if time.Since(began) >= c.opts.PollWait/2 {
		return nil
	}
	return sleep(ctx, c.opts.Backoff(1))
}

func (c *Client) poll(ctx context.Context, id string) (api.Task, error) {
	var out api.Task
	req := get(taskPath(id, ""), url.Values{"wait": {seconds(c.opts.PollWait)}})
	req.wait = c.opts.PollWait
	return out, c.do(ctx, req, &out)
}

// Ended reports whether state is one that a task does not leave.
func Ended(state string) bool {
	switch state {
	case "completed", "failed", "cancelled", "timeout":
		return true
	}
	return false
}

// Find returns the ids that begin or end with part, newest first, at most 20.
func (c *Client) Find(ctx context.Context, part string) ([]string, error) {
	var out api.Found
	err := c.do(ctx, get("/api/find/"+url.PathEscape(part), nil), &out)
	return out.QueueIDs, err
}

// Cancel asks for the end of a task. State "cancelling" in the answer means
// that its agent has not confirmed yet.
//
// Codes: not_found, already_ended.
func (c *Client) Cancel(ctx context.Context, id string) (api.Cancelled, error) {
	var out api.Cancelled
	return out, c.do(ctx, call{method: http.MethodPost, path: taskPath(id, "/cancel")}, &out)
}

// Why returns the gates between a task and its start.
func (c *Client) Why(ctx context.Context, id string) (api.Why, error) {
	var out api.Why
	return out, c.do(ctx, get(taskPath(id, "/why"), nil), &out)
}

// Output returns the log of a task from byte after, as far as it is there.
func (c *Client) Output(ctx context.Context, id string, after int64) (api.Output, error) {
	var out api.Output
	query := url.Values{"after": {strconv.FormatInt(after, 10)}}
	return out, c.do(ctx, get(taskPath(id, "/output"), query), &out)
}

// seconds writes a duration as the API takes it, in whole seconds, at least
// one.
func seconds(d time.Duration) string {
	return strconv.Itoa(max(1, int(d/time.Second))) + "s"
}
