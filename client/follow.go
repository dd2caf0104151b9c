package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/signalbox-ai/signalbox/api"
)

// FollowOutput hands the log of a task, from byte after on, to each as it is
// written, until the task has ended and all of it was handed over, or each
// returns an error, which is returned. Every byte comes once and in order;
// bytes that the director no longer has are announced by Truncated. It
// outlives restarts of the director (see Options.Patience).
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

// follower keeps the place in a log from one stream to the next.
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
