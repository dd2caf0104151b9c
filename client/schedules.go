package client

import (
	"context"
	"iter"
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
	query := values("agent", opts.Agent, "name", opts.Name, "enabled", opts.Enabled, "outcomes", number(opts.Outcomes),
		"limit", number(opts.Limit), "after", opts.After)
	return ask[api.Schedules](ctx, c, get("/api/schedules", query))
}

// AllSchedules goes through all pages of Schedules. An error is its last pair.
func (c *Client) AllSchedules(ctx context.Context, opts SchedulesOptions) iter.Seq2[api.Schedule, error] {
	return pages(opts.After, func(after string) ([]api.Schedule, string, error) {
		opts.After = after
		page, err := c.Schedules(ctx, opts)
		return page.Schedules, page.Next, err
	})
}

// Schedule returns a schedule by its id or name, with its newest firings.
func (c *Client) Schedule(ctx context.Context, ref string) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, get(schedulePath(ref, ""), nil))
}

// CreateSchedule makes a schedule. Codes: validation_error with the field,
// not_found (the agent), conflict (the name is taken).
func (c *Client) CreateSchedule(ctx context.Context, s api.NewSchedule) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, post("/api/schedules", s))
}

// PutSchedule changes a schedule: the whole of it. Codes: those of
// CreateSchedule, forbidden (it is somebody else's), conflict (it stands in the
// director's configuration).
func (c *Client) PutSchedule(ctx context.Context, ref string, s api.NewSchedule) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, put(schedulePath(ref, ""), s))
}

// RemoveSchedule forgets a schedule. Its tasks stay.
func (c *Client) RemoveSchedule(ctx context.Context, ref string) error {
	return c.do(ctx, remove(schedulePath(ref, "")), nil)
}

// EnableSchedule lets a schedule fire from now on.
func (c *Client) EnableSchedule(ctx context.Context, ref string) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, post(schedulePath(ref, "/enable"), nil))
}

// DisableSchedule lets a schedule fire no more.
func (c *Client) DisableSchedule(ctx context.Context, ref string) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, post(schedulePath(ref, "/disable"), nil))
}

// TriggerSchedule fires a schedule now, beside its instants. A reply that is
// lost is not asked for again: Executions has what became of it. Codes:
// not_found, forbidden, queue_full, conflict (a firing of it is open, or its
// task before has not ended and it is to skip, or the submit was refused).
func (c *Client) TriggerSchedule(ctx context.Context, ref string) (api.Triggered, error) {
	return ask[api.Triggered](ctx, c, post(schedulePath(ref, "/trigger"), nil))
}

// Executions returns the firings of a schedule, newest first; limit is 1 to
// 100, 0 is 20.
func (c *Client) Executions(ctx context.Context, ref string, limit int) (api.Executions, error) {
	return ask[api.Executions](ctx, c, get(schedulePath(ref, "/executions"), values("limit", number(limit))))
}

// CheckCron says what a cron expression means in a time zone ("": that of the
// director's schedules), with its next n instants (0: 3).
func (c *Client) CheckCron(ctx context.Context, expression, timezone string, n int) (api.CronCheck, error) {
	query := values("expression", expression, "timezone", timezone, "n", number(n))
	return ask[api.CronCheck](ctx, c, get("/api/cron", query))
}

func schedulePath(ref, below string) string { return "/api/schedules/" + url.PathEscape(ref) + below }
