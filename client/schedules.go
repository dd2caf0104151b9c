package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/signalbox-ai/signalbox/api"
)

// SchedulesOptions say which schedules Schedules returns. Empty fields do not
// restrict.
type SchedulesOptions struct {
	Agent    string
	Name     string
	Enabled  string // true or false
	Outcomes int    // firings to show of each, at most 20
	Limit    int    // of one page, 1 to 1000; 0: 100
	After    string // cursor: Next of the page before
}

// Schedules returns one page of the schedules, by name.
func (c *Client) Schedules(ctx context.Context, opts SchedulesOptions) (api.Schedules, error) {
	var out api.Schedules
	query := values("agent", opts.Agent, "name", opts.Name, "enabled", opts.Enabled, "outcomes", number(opts.Outcomes),
		"limit", number(opts.Limit), "after", opts.After)
	return out, c.do(ctx, get("/api/schedules", query), &out)
}

// AllSchedules goes through all pages of Schedules. An error is its last pair.
func (c *Client) AllSchedules(ctx context.Context, opts SchedulesOptions) iter.Seq2[api.Schedule, error] {
	return func(yield func(api.Schedule, error) bool) {
		for {
			page, err := c.Schedules(ctx, opts)
			if err != nil {
				yield(api.Schedule{}, err)
				return
			}
			for _, s := range page.Schedules {
				if !yield(s, nil) {
					return
				}
			}
			if page.Next == "" || page.Next == opts.After {
				return
			}
			opts.After = page.Next
		}
	}
}

// Schedule returns a schedule by its id or name, with its newest firings.
func (c *Client) Schedule(ctx context.Context, ref string) (api.Schedule, error) {
	var out api.Schedule
	return out, c.do(ctx, get(schedulePath(ref, ""), nil), &out)
}

// CreateSchedule makes a schedule. Codes: validation_error with the field,
// not_found (the agent), conflict (the name is taken).
func (c *Client) CreateSchedule(ctx context.Context, s api.NewSchedule) (api.Schedule, error) {
	var out api.Schedule
	req, err := post("/api/schedules", s)
	if err != nil {
		return out, err
	}
	return out, c.do(ctx, req, &out)
}

// PutSchedule changes a schedule: the whole of it. Codes: those of
// CreateSchedule, forbidden (it is somebody else's), conflict (it stands in the
// director's configuration).
func (c *Client) PutSchedule(ctx context.Context, ref string, s api.NewSchedule) (api.Schedule, error) {
	var out api.Schedule
	req, err := post(schedulePath(ref, ""), s)
	if err != nil {
		return out, err
	}
	req.method = http.MethodPut
	return out, c.do(ctx, req, &out)
}

// RemoveSchedule forgets a schedule. Its tasks stay.
func (c *Client) RemoveSchedule(ctx context.Context, ref string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: schedulePath(ref, "")}, nil)
}

// EnableSchedule lets a schedule fire from now on.
func (c *Client) EnableSchedule(ctx context.Context, ref string) (api.Schedule, error) {
	return c.scheduleCall(ctx, ref, "/enable")
}

// DisableSchedule lets a schedule fire no more.
func (c *Client) DisableSchedule(ctx context.Context, ref string) (api.Schedule, error) {
	return c.scheduleCall(ctx, ref, "/disable")
}

func (c *Client) scheduleCall(ctx context.Context, ref, below string) (api.Schedule, error) {
	var out api.Schedule
	return out, c.do(ctx, call{method: http.MethodPost, path: schedulePath(ref, below)}, &out)
}

// TriggerSchedule fires a schedule now, beside its instants. A reply that is
// lost is not asked for again: Executions has what became of it. Codes:
// not_found, forbidden, queue_full, conflict (a firing of it is open, or its
// task before has not ended and it is to skip, or the submit was refused).
func (c *Client) TriggerSchedule(ctx context.Context, ref string) (api.Triggered, error) {
	var out api.Triggered
	return out, c.do(ctx, call{method: http.MethodPost, path: schedulePath(ref, "/trigger")}, &out)
}

// Executions returns the firings of a schedule, newest first; limit is 1 to
// 100, 0 is 20.
func (c *Client) Executions(ctx context.Context, ref string, limit int) (api.Executions, error) {
	var out api.Executions
	return out, c.do(ctx, get(schedulePath(ref, "/executions"), values("limit", number(limit))), &out)
}

// CheckCron says what a cron expression means in a time zone ("": that of the
// director's schedules), with its next n instants (0: 3).
func (c *Client) CheckCron(ctx context.Context, expression, timezone string, n int) (api.CronCheck, error) {
	var out api.CronCheck
	query := values("expression", expression, "timezone", timezone, "n", number(n))
	return out, c.do(ctx, get("/api/cron", query), &out)
}

func schedulePath(ref, below string) string { return "/api/schedules/" + url.PathEscape(ref) + below }
