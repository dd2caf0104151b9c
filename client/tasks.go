package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// SubmitOptions are the options of a submit.
type SubmitOptions struct {
	// IdempotencyKey, 1 to 255 printable characters, creates at most one task.
	// Empty: a random key for this call, so that repeats after a lost reply find
	// the same task.
	IdempotencyKey string
	// Execution is the queue_id of the execution that makes the call, with an
	// agent's token; default: the only execution that the agent runs.
	Execution string
}

// NewIdempotencyKey returns a random key, for callers that want to keep it.
func NewIdempotencyKey() string { return "key-" + rand.Text() }

// Submit submits a task to the queue. After a lost reply it repeats the request
// with the same key, up to Options.Tries tries; if there is no answer, the
// *UnreachableError carries the key.
//
// Codes: validation_error, queue_full, not_found (the agent),
// idempotency_conflict (the key was used with another body).
func (c *Client) Submit(ctx context.Context, req api.SubmitRequest, opts SubmitOptions) (api.SubmitResponse, error) {
	return c.submitTo(ctx, "/api/queue/task", req, opts)
}

// SubmitTask is Submit through the route of the web view, which answers 202 and
// records web as the source.
func (c *Client) SubmitTask(ctx context.Context, req api.SubmitRequest, opts SubmitOptions) (api.SubmitResponse, error) {
	return c.submitTo(ctx, "/api/task", req, opts)
}

// Retry submits an ended task again, with the changes in edit. Lost replies are
// handled as in Submit.
//
// Codes: not_found, conflict (it has not ended), queue_full.
func (c *Client) Retry(ctx context.Context, id string, edit api.RetryRequest, opts SubmitOptions) (api.SubmitResponse, error) {
	return c.submitTo(ctx, taskPath(id, "/retry"), edit, opts)
}

// Edit changes a waiting task; edit.Revision is the revision of the task as it was read.
//
// Codes: validation_error, not_found, conflict (it has started, or its revision has changed),
// already_ended, forbidden, unsupported (this change is not possible).
func (c *Client) Edit(ctx context.Context, id string, edit api.EditRequest) (api.Task, error) {
	req := post(taskPath(id, ""), edit)
	req.method = http.MethodPatch
	return ask[api.Task](ctx, c, req)
}

func (c *Client) submitTo(ctx context.Context, path string, body any, opts SubmitOptions) (api.SubmitResponse, error) {
	req := post(path, body)
	req.caller, req.key = opts.Execution, opts.IdempotencyKey
	return keyed[api.SubmitResponse](ctx, c, req)
}

// keyed sends a request with a key, by default a random one, until it gets a reply.
// After a lost reply the task may be stored, so it retries refused connections
// too: the director may be starting.
func keyed[T any](ctx context.Context, c *Client, req call) (T, error) {
	if req.key == "" {
		req.key = NewIdempotencyKey()
	}
	lost := false
	for try := 1; ; try++ {
		out, err := ask[T](ctx, c, req)
		if err == nil {
			return out, nil
		}
		lost = lost || lostReply(err)
		if !lost || !passing(err) || Code(err) == "queue_full" {
			return out, err
		}
		if try == c.opts.Tries {
			return out, c.lostKey(req, err)
		}
		if err := c.pause(ctx, try, err); err != nil {
			return out, err
		}
	}
}

// lostKey makes sure that the last error carries the key, even if it is a refused
// connection: an earlier request may have arrived.
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
	return ask[api.Task](ctx, c, get(taskPath(id, ""), nil))
}

// Wait returns a task when it has ended. It polls with ?wait= and survives
// restarts of the director (see Options.Patience). Code not_found: the task
// never existed or has been pruned.
func (c *Client) Wait(ctx context.Context, id string) (api.Task, error) {
	return waitFor(ctx, c, taskPath(id, ""), func(task api.Task) bool { return Ended(task.State) })
}

// waitFor polls a path until the answer has ended.
func waitFor[T any](ctx context.Context, c *Client, path string, ended func(T) bool) (none T, _ error) {
	p := c.newPatience()
	req := get(path, url.Values{"wait": {seconds(c.opts.PollWait)}})
	req.wait = c.opts.PollWait
	for {
		began := time.Now()
		out, err := ask[T](ctx, c, req)
		if err == nil && ended(out) {
			return out, nil
		}
		if err == nil {
			p.answered()
			err = c.unspin(ctx, began)
		} else {
			err = p.wait(ctx, err)
		}
		if err != nil {
			return none, err
		}
	}
}

// unspin waits a little if a long poll returned early, as it does at a director
// that is about to stop.
func (c *Client) unspin(ctx context.Context, began time.Time) error {
	if time.Since(began) >= c.opts.PollWait/2 {
		return nil
	}
	return sleep(ctx, c.opts.Backoff(1))
}

// Ended reports whether state is terminal.
func Ended(state string) bool {
	switch state {
	case "completed", "failed", "cancelled", "timeout":
		return true
	}
	return false
}

// Find returns the ids that begin or end with part, newest first, at most 20.
func (c *Client) Find(ctx context.Context, part string) ([]string, error) {
	out, err := ask[api.Found](ctx, c, get("/api/find/"+url.PathEscape(part), nil))
	return out.QueueIDs, err
}

// Cancel cancels a task. State "cancelling" in the answer means that its agent has
// not confirmed yet.
//
// Codes: not_found, already_ended.
func (c *Client) Cancel(ctx context.Context, id string) (api.Cancelled, error) {
	return ask[api.Cancelled](ctx, c, post(taskPath(id, "/cancel"), nil))
}

// Why returns the gates between a task and its start.
func (c *Client) Why(ctx context.Context, id string) (api.Why, error) {
	return ask[api.Why](ctx, c, get(taskPath(id, "/why"), nil))
}

// Output returns the log of a task from byte after, as far as it exists.
func (c *Client) Output(ctx context.Context, id string, after int64) (api.Output, error) {
	query := url.Values{"after": {strconv.FormatInt(after, 10)}}
	return ask[api.Output](ctx, c, get(taskPath(id, "/output"), query))
}

// WholeLog returns a piece of the log of a task's last attempt, from byte after on. It comes
// from the agent, which keeps more of the log than the director; positions are those of that
// log. The log is complete when Done is set, or when Next equals after.
//
// Codes: not_found, conflict, unsupported, agent_down.
func (c *Client) WholeLog(ctx context.Context, id string, after int64) (api.Output, error) {
	query := url.Values{"after": {strconv.FormatInt(after, 10)}, "whole": {"true"}}
	return ask[api.Output](ctx, c, get(taskPath(id, "/output"), query))
}

// Diff returns the changes of the last run of a task in its repository, with the beginning of
// the patch.
//
// Codes: not_found, conflict.
func (c *Client) Diff(ctx context.Context, id string) (api.Diff, error) {
	return ask[api.Diff](ctx, c, get(taskPath(id, "/diff"), nil))
}

// Patch writes the patch of a task's last run to w. It is complete, up to 64 MiB, if the agent
// has it; otherwise cut says what is missing. A broken transfer is an error. No read may take
// longer than Options.StreamIdle.
//
// Codes: not_found, conflict, unsupported, agent_down.
func (c *Client) Patch(ctx context.Context, id string, w io.Writer) (cut string, err error) {
	live, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(c.opts.StreamIdle, func() { cancel(errSilent) })
	defer idle.Stop()
	req := get(taskPath(id, "/diff"), url.Values{"format": {"patch"}})
	req.accept = "text/x-diff"
	resp, err := c.send(live, req)
	if err != nil {
		return "", c.noAnswer(ctx, live, req, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		return "", c.refusal(resp, data)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/x-diff" {
		return "", c.unexpected(resp.StatusCode, fmt.Sprintf("%s %s answered with %s instead of a patch", req.method, req.path, excerpt([]byte(kind))))
	}
	piece := make([]byte, 64<<10)
	for {
		idle.Reset(c.opts.StreamIdle)
		n, err := resp.Body.Read(piece)
		idle.Stop()
		if _, werr := w.Write(piece[:n]); werr != nil {
			return "", werr
		}
		if errors.Is(err, io.EOF) {
			return resp.Header.Get(api.PatchCutHeader), nil
		}
		if err != nil {
			return "", c.noAnswer(ctx, live, req, fmt.Errorf("%w: %w", errCutOff, err))
		}
	}
}

// seconds formats a duration for the API: whole seconds, at least one.
func seconds(d time.Duration) string { return strconv.Itoa(max(1, int(d/time.Second))) + "s" }

// FollowOutput passes the log of a task, from byte after on, to each as it is
// written. It returns when the task has ended and the whole log was delivered, or
// with the error of each. Every byte comes once and in order; Truncated marks
// bytes that the director no longer has. It survives restarts of the director (see
// Options.Patience).
func (c *Client) FollowOutput(ctx context.Context, id string, after int64, each func(api.Output) error) error {
	f := follower{after: after, each: each}
	p := c.newPatience()
	for {
		req := get(taskPath(id, "/output"), url.Values{"after": {strconv.FormatInt(f.after, 10)}})
		err := c.stream(ctx, req, p, &f)
		if f.done || f.err != nil {
			return f.err
		}
		if err := p.wait(ctx, err); err != nil {
			return err
		}
	}
}

// follower keeps the position in a log from one stream to the next.
type follower struct {
	after int64
	each  func(api.Output) error
	done  bool
	err   error
}

func (f *follower) open() bool { return true }

func (f *follower) message(m message) bool {
	if m.name != "output" {
		return true
	}
	var out api.Output
	if err := json.Unmarshal(m.data, &out); err != nil {
		f.err = fmt.Errorf("the log's stream holds an event that is not JSON: %w", err)
		return false
	}
	f.after, f.done = out.Next, out.Done
	f.err = f.each(out)
	return f.err == nil && !f.done
}
