package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// queryHelp explains the grammar where a command takes a query.
const queryHelp = `Words stand for AND, a minus before one for NOT; key:value,value takes either value. A word or a "text in quotes"
without a key is a part of the prompt's first line. The keys are agent, state (a state, or waiting, running or
ended), reason, queue, source, job, session, mode, tool, by, id, since, until and older (ages such as 2h or 7d).`

func (a *app) searchCmd() *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use:   "search QUERY...",
		Short: "Find tasks: waiting, running or ended",
		Long:  "Find tasks: running and waiting ones first, then ended ones, newest first.\n\n" + queryHelp,
		Example: `  signalbox search agent:coder state:failed since:2h
  signalbox search '"billing report" -state:completed'
  signalbox search -- -source:scheduler older:1h state:waiting`,
		Args: cobra.ArbitraryArgs,
		RunE: run(func(ctx context.Context, args []string) error {
			if limit < 0 {
				return usage("--limit: want a number of tasks, or 0 for all, got %d", limit)
			}
			return a.with(ctx, func(c *client.Client) error { return a.search(ctx, c, strings.Join(args, " "), limit) })
		}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "`number` of tasks, 0 for all")
	return cmd
}

func (a *app) search(ctx context.Context, c *client.Client, query string, limit int) error {
	all := api.Search{Tasks: []api.LiveTask{}}
	for after := ""; ; {
		want := maxPage
		if limit > 0 {
			want = min(maxPage, limit-len(all.Tasks))
		}
		page, err := c.Search(ctx, query, client.SearchOptions{Limit: want, After: after})
		if err != nil {
			return err
		}
		page.Tasks = append(all.Tasks, page.Tasks...)
		all = page
		if page.Next == "" || page.Next == after || limit > 0 && len(all.Tasks) >= limit {
			break
		}
		after = page.Next
	}
	return a.print(all, func() error { return a.searchTable(all) })
}

func (a *app) searchTable(all api.Search) error {
	if len(all.Tasks) == 0 {
		a.note("No task matches.")
		return nil
	}
	rows := [][]string{{"ID", "STATE", "AGENT", "WHEN", "PROMPT"}}
	for i := range all.Tasks {
		t := &all.Tasks[i]
		state := t.State
		if t.Reason != "" && t.Reason != t.State {
			state += ": " + t.Reason
		}
		rows = append(rows, []string{t.QueueID, state, whereText(t), a.whenText(t), t.PromptPreview})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	if more := all.Total - len(all.Tasks); more > 0 || all.Approximate {
		atLeast := ""
		if all.Approximate {
			atLeast = "at least "
		}
		a.note("%d of %s%s; --limit shows more.", len(all.Tasks), atLeast, plural(max(all.Total, len(all.Tasks)), "task", "tasks"))
	}
	return nil
}

// whereText is the agent of a task, or the line in which it waits.
func whereText(t *api.LiveTask) string {
	switch {
	case t.Agent != "" && t.State != "pending":
		return t.Agent
	case t.State == "pending" && t.Position > 0:
		return fmt.Sprintf("%s of %s", ordinal(t.Position), t.Queue)
	}
	return t.Queue
}

// whenText is how long a task has waited or run, or when it ended.
func (a *app) whenText(t *api.LiveTask) string {
	if t.EndedAt != nil {
		return a.clock(*t.EndedAt)
	}
	since := t.CreatedAt
	if t.StartedAt != nil {
		since = *t.StartedAt
	}
	return "for " + ago(a.io.Now().Sub(since))
}

// matchFlags let a command act on all tasks that match a query.
type matchFlags struct {
	query string
	yes   bool
}

func (m *matchFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.query, "match", "", "all tasks that match a `query`, as in signalbox search, instead of one by its ID; they are counted first")
	cmd.Flags().BoolVar(&m.yes, "yes", false, "with --match: do it without asking")
}

// check finds out whether one task is meant, or all that match.
func (m *matchFlags) check(args []string) error {
	switch {
	case m.query != "" && len(args) > 0:
		return usage("got an ID and --match: want one of them")
	case m.query == "" && len(args) == 0:
		return usage("want the ID of a task, or --match with a query").hinted("signalbox search finds tasks")
	case m.query == "" && m.yes:
		return usage("--yes goes with --match")
	}
	return nil
}

// bulk cancels or retries all tasks that match, once that is confirmed.
func (a *app) bulk(ctx context.Context, action, done string, m matchFlags) error {
	return a.with(ctx, func(c *client.Client) error {
		counted, err := c.Bulk(ctx, api.BulkRequest{Query: m.query, Action: action})
		if err != nil {
			return err
		}
		if counted.Count > 0 {
			more := ""
			if counted.More {
				more = ", and more, which are left for the next time"
			}
			question := fmt.Sprintf("%s%s (%s). %s?", plural(counted.Count, "task matches", "tasks match"), more, counted.Query, strings.ToUpper(action[:1])+action[1:])
			if !m.yes {
				if err := a.confirm(ctx, question); err != nil {
					return err
				}
			}
			if counted, err = c.Bulk(ctx, api.BulkRequest{Query: m.query, Action: action, Expect: &counted.Count}); err != nil {
				return err
			}
		}
		return a.bulkDone(counted, done)
	})
}

func (a *app) bulkDone(got api.Bulk, done string) error {
	err := a.print(got, func() error {
		for _, o := range got.Results {
			if o.NewID != "" {
				a.put("%s: %s", clean(o.QueueID), clean(o.NewID))
			} else {
				a.note("%s: %s", o.QueueID, o.Message)
			}
		}
		return a.say("%s: %s", done, plural(got.Done, "task", "tasks"))
	})
	if err == nil && got.Failed > 0 {
		return &fault{exit: exitError, code: "partly_failed", message: fmt.Sprintf("%s could not be %s", plural(got.Failed, "task", "tasks"), strings.ToLower(done)), silent: a.json}
	}
	return err
}

// confirm asks a person. Where nobody can be asked, it is not done.
func (a *app) confirm(ctx context.Context, question string) error {
	no := &fault{exit: exitUsage, code: "not_confirmed", message: question + " Nothing was done"}
	if !a.io.InTTY || !a.io.ErrTTY {
		return no.hinted("add --yes to do it without being asked")
	}
	fmt.Fprintf(a.io.Err, "%s [y/N] ", clean(question))
	answer, err := a.readLine(ctx)
	if err != nil {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		no.message, no.hint = "nothing was done", "answer y to do it"
		return no
	}
	return nil
}

// readLine reads a line that a person types, until ctx ends.
func (a *app) readLine(ctx context.Context) (string, error) {
	typed := make(chan string, 1)
	go func() {
		var line []byte
		var b [1]byte
		for len(line) < 100 {
			if n, err := a.io.In.Read(b[:]); n == 0 && err != nil || n == 1 && b[0] == '\n' {
				break
			}
			line = append(line, b[0])
		}
		typed <- string(line)
	}()
	select {
	case line := <-typed:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// healthLine is the verdict of the director, as the pages begin with it.
func (a *app) healthLine(v *api.Verdict) error {
	if v == nil {
		return nil
	}
	if v.OK {
		return a.say("%s %s", a.paint(green, "✓"), clean(v.Text))
	}
	if err := a.say("%s %s", a.paint(red, "✗"), clean(v.Text)); err != nil || len(v.Attention) == 0 || v.Attention[0].Cure == "" {
		return err
	}
	return a.say("  %s", clean(v.Attention[0].Cure))
}

// watchLine is one line of what changed.
func (a *app) watchLine(at time.Time, format string, args ...any) error {
	return a.say("%s %s", a.paint(dim, a.clock(at)), fmt.Sprintf(format, args...))
}
