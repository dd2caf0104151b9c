package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"

	"github.com/signalbox-ai/signalbox/api"
)

// QueueOptions select the part of the line that Queue returns.
type QueueOptions struct {
	Queue string // only this queue, such as agent:coder; "": all
	Limit int    // 1 to 1000; 0: 100
	After string // cursor: Next of the page before
	Sort  string // created, ended, wait, duration, priority or agent, with a minus before it for the largest first; "": as below
}

// Queue returns the waiting and dispatching tasks in the order in which they
// will be claimed, and the figures of the queue.
func (c *Client) Queue(ctx context.Context, opts QueueOptions) (api.Queue, error) {
	query := values("queue", opts.Queue, "limit", number(opts.Limit), "after", opts.After)
	return ask[api.Queue](ctx, c, get("/api/queue", query))
}

// Pause stops claims from a queue, or from all queues.
func (c *Client) Pause(ctx context.Context, req api.PauseRequest) (api.Paused, error) {
	return ask[api.Paused](ctx, c, post("/api/queue/pause", req))
}

// Resume ends the pause of a queue ("": the pause of all).
func (c *Client) Resume(ctx context.Context, queue string) (api.Paused, error) {
	return ask[api.Paused](ctx, c, post("/api/queue/resume", api.PauseRequest{Queue: queue}))
}

// Gates lists what is closed now.
func (c *Client) Gates(ctx context.Context) (api.Gates, error) {
	return ask[api.Gates](ctx, c, get("/api/gates", nil))
}

// Accounts lists the accounts that agents spend.
func (c *Client) Accounts(ctx context.Context) (api.Accounts, error) {
	return ask[api.Accounts](ctx, c, get("/api/accounts", nil))
}

// Budgets lists the budgets, and what has been spent of them today.
func (c *Client) Budgets(ctx context.Context) (api.Budgets, error) {
	return ask[api.Budgets](ctx, c, get("/api/budgets", nil))
}

// Resources lists the resources that runs hold.
func (c *Client) Resources(ctx context.Context) (api.Resources, error) {
	return ask[api.Resources](ctx, c, get("/api/resources", nil))
}

// OpenAccount opens an account now.
func (c *Client) OpenAccount(ctx context.Context, name string) (api.Account, error) {
	return ask[api.Account](ctx, c, post("/api/accounts/"+url.PathEscape(name)+"/open", nil))
}

// CloseAccount closes an account.
func (c *Client) CloseAccount(ctx context.Context, name string, req api.AccountClose) (api.Account, error) {
	return ask[api.Account](ctx, c, post("/api/accounts/"+url.PathEscape(name)+"/close", req))
}

// RemoveAccount removes an account. Codes: not_found, conflict while an agent spends it or tasks
// are parked at it.
func (c *Client) RemoveAccount(ctx context.Context, name string) error {
	return c.do(ctx, remove("/api/accounts/"+url.PathEscape(name)), nil)
}

// Unpark lets a waiting task run even if the account of its agent is not open.
func (c *Client) Unpark(ctx context.Context, id string) (api.Task, error) {
	return ask[api.Task](ctx, c, post("/api/queue/"+url.PathEscape(id)+"/unpark", nil))
}

// Land lands the work of a completed task's worktree on a branch. It is idempotent.
//
// Codes: validation_error, not_found, conflict (it has not completed, has nothing to land, or has
// landed), unsupported.
func (c *Client) Land(ctx context.Context, id string, req api.LandRequest) (api.Landing, error) {
	return ask[api.Landing](ctx, c, post(taskPath(id, "/land"), req))
}

// DropLanding drops a landing that is not done. Codes: not_found, conflict (there is none, or the
// work has landed).
func (c *Client) DropLanding(ctx context.Context, id string) (api.Landing, error) {
	return ask[api.Landing](ctx, c, remove(taskPath(id, "/land")))
}

// Landings lists the landings that are not done, including those that need a person.
func (c *Client) Landings(ctx context.Context) (api.Landings, error) {
	return ask[api.Landings](ctx, c, get("/api/landings", nil))
}

// HistoryOptions select the ended tasks that History returns. Empty fields do not
// restrict.
type HistoryOptions struct {
	State     string // completed, failed, cancelled or timeout
	Reason    string // a typed reason, such as lost
	Agent     string
	Queue     string
	Source    string
	SourceJob string
	SessionID string
	Text      string // part of the prompt's first line
	Since     string // RFC 3339, or an age such as 2h
	Until     string // RFC 3339, or an age such as 2h
	Limit     int    // of one page, 1 to 1000; 0: 100
	Before    string // cursor: Next of the page before
}

// History returns one page of ended tasks, newest end first.
func (c *Client) History(ctx context.Context, opts HistoryOptions) (api.History, error) {
	query := values("state", opts.State, "reason", opts.Reason, "agent", opts.Agent, "queue", opts.Queue,
		"source", opts.Source, "source_job", opts.SourceJob, "session_id", opts.SessionID, "q", opts.Text,
		"since", opts.Since, "until", opts.Until, "limit", number(opts.Limit), "before", opts.Before)
	return ask[api.History](ctx, c, get("/api/history", query))
}

// AllHistory iterates over all pages of History. An error is the last pair.
func (c *Client) AllHistory(ctx context.Context, opts HistoryOptions) iter.Seq2[api.Task, error] {
	return pages(opts.Before, func(before string) ([]api.Task, string, error) {
		opts.Before = before
		page, err := c.History(ctx, opts)
		return page.Tasks, page.Next, err
	})
}

// pages iterates over all rows from a cursor on. An error is the last pair.
func pages[T any, C comparable](cursor C, page func(C) (rows []T, next C, err error)) iter.Seq2[T, error] {
	var none T
	var end C
	return func(yield func(T, error) bool) {
		for at := cursor; ; {
			rows, next, err := page(at)
			if err != nil {
				yield(none, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			if next == end || next == at {
				return
			}
			at = next
		}
	}
}

// values returns a query made of pairs, without empty values.
func values(pairs ...string) url.Values {
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return query
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// SearchOptions select a page of a search.
type SearchOptions struct {
	Limit int    // of the page, 1 to 1000; 0: 100
	After string // cursor: Next of the page before
	Sort  string // created, ended, wait, duration, priority or agent, with a minus before it for the largest first; "": as below
}

// Search returns the tasks that match a query such as
//
//	agent:coder state:failed since:2h "billing"
//
// waiting and running ones first, then ended ones, newest first.
func (c *Client) Search(ctx context.Context, query string, opts SearchOptions) (api.Search, error) {
	return ask[api.Search](ctx, c, get("/api/search", values("q", query, "limit", number(opts.Limit), "after", opts.After, "sort", opts.Sort)))
}

// SearchCounts returns how many tasks match each of at most 40 queries.
func (c *Client) SearchCounts(ctx context.Context, queries ...string) ([]api.SearchCount, error) {
	out, err := ask[api.SearchCounts](ctx, c, post("/api/search/counts", api.SearchCountsRequest{Queries: queries}))
	return out.Counts, err
}

// SearchKeys returns the keys of the query language.
func (c *Client) SearchKeys(ctx context.Context) (api.SearchKeys, error) {
	return ask[api.SearchKeys](ctx, c, get("/api/search/keys", nil))
}

// Bulk cancels or retries all tasks that match a query. Without Expect it only
// counts them. It is not repeated after a lost reply: count again.
func (c *Client) Bulk(ctx context.Context, body api.BulkRequest) (api.Bulk, error) {
	req := post("/api/queue/bulk", body)
	req.long = true
	return ask[api.Bulk](ctx, c, req)
}

// Status returns the director and its queue in figures.
func (c *Client) Status(ctx context.Context) (api.Status, error) {
	return ask[api.Status](ctx, c, get("/status", nil))
}

// Directors returns the directors that share the store, by instance.
func (c *Client) Directors(ctx context.Context) ([]api.Director, error) {
	out, err := ask[api.Directors](ctx, c, get("/api/directors", nil))
	return out.Directors, err
}

// Health returns "ok" and no error while the director's process is alive.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	return ask[api.Health](ctx, c, get("/healthz", nil))
}

// Ready returns "ok" if the director accepts tasks; otherwise the error is an
// *Error with status 503 whose message says what is wrong.
func (c *Client) Ready(ctx context.Context) (api.Health, error) {
	return ask[api.Health](ctx, c, get("/readyz", nil))
}

// OpenAPI returns the director's description of its API.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	return ask[json.RawMessage](ctx, c, get("/openapi.json", nil))
}

// Metrics returns the director's metrics in the Prometheus text format.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	req := get("/metrics", nil)
	req.accept = "text/plain"
	data, err := c.raw(ctx, req)
	return string(data), err
}

// UsageOptions select what Usage sums up.
type UsageOptions struct {
	By       string // day, agent, schedule, user or model; "": day
	From, To string // days in UTC, such as 2026-01-31; "": the last 30 days
	Agent    string
	Schedule string // by name
	User     string // an e-mail address, or a key such as user:ann
	Model    string
}

// Usage sums up the usage of runs, in tokens and money.
func (c *Client) Usage(ctx context.Context, opts UsageOptions) (api.Usage, error) {
	return ask[api.Usage](ctx, c, get("/api/usage", values("by", opts.By, "from", opts.From, "to", opts.To,
		"agent", opts.Agent, "schedule", opts.Schedule, "user", opts.User, "model", opts.Model)))
}

// Export returns a page of all tasks, for Import at another director; after is
// Next of the previous page. It needs the scope admin.
func (c *Client) Export(ctx context.Context, limit int, after string) (api.Export, error) {
	req := get("/api/export", values("limit", number(limit), "after", after))
	req.long = true
	return ask[api.Export](ctx, c, req)
}

// Import stores tasks from another director's export. Known tasks are not changed,
// so that an import can be repeated after a lost reply. It needs the scope admin.
func (c *Client) Import(ctx context.Context, body api.ImportRequest) (api.Imported, error) {
	req := post("/api/import", body)
	req.long = true
	return ask[api.Imported](ctx, c, req)
}
