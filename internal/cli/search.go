package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// queryHelp explains the query language in help texts.
const queryHelp = `A query matches tasks to which all its terms apply; a minus before a term negates it, and key:value,value matches either value.
A word or a "text in quotes" without a key must be in the prompt's first line. The keys are agent, state (a state, or
waiting, running or ended), reason, cause (of a failure, as in signalbox status), queue, source, job, session, mode, tool, by, id, since, until and older (ages such as 2h or 7d).`

// sortHelp explains orders in help texts.
const sortHelp = `--sort wait sorts by the time from submission to start, duration by that from start to end; for tasks that still wait or
run, up to now. Tasks without the value come last. At most 10,000 tasks are searched.`

func (a *app) searchCmd() *cobra.Command {
	var limit int
	var sort string
	cmd := &cobra.Command{
		Use:   "search QUERY...",
		Short: "Find tasks: waiting, running or ended",
		Long:  "Find tasks: running and waiting ones first, then ended ones, newest first.\n\n" + queryHelp + "\n\n" + sortHelp,
		Example: `  signalbox search agent:coder state:failed since:2h
  signalbox search '"billing report" -state:completed'
  signalbox search state:ended since:24h --sort=-duration
  signalbox search -- -source:scheduler older:1h state:waiting`,
		Args:    cobra.ArbitraryArgs,
		PreRunE: checkLimit(&limit),
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "`number` of tasks, 0 for all")
	cmd.Flags().StringVar(&sort, "sort", "", "`order`: "+strings.Join(signalbox.SortKeys(), ", ")+"; with a minus before it largest first")
	return query(a, cmd, func(ctx context.Context, c *client.Client, args []string) (api.Search, error) {
		all := api.Search{Tasks: []api.LiveTask{}}
		err := readPages(limit, func(want int, after string) (int, string, error) {
			page, err := c.Search(ctx, strings.Join(args, " "), client.SearchOptions{Limit: want, After: after, Sort: sort})
			page.Tasks = append(all.Tasks, page.Tasks...)
			all = page
			return len(all.Tasks), page.Next, err
		})
		return all, err
	}, func(all api.Search) {
		list(a, all.Tasks, "No task matches.", []string{"ID", "STATE", "AGENT", "WHEN", "PROMPT"}, func(t *api.LiveTask) []string {
			return []string{t.QueueID, stateWithReason(t.State, t.Reason), whereText(t), a.whenText(t), t.PromptPreview}
		})
		if more := all.Total - len(all.Tasks); len(all.Tasks) > 0 && (more > 0 || all.Approximate) {
			atLeast := ""
			if all.Approximate {
				atLeast = "at least "
			}
			if all.Sort != "" && all.Approximate {
				a.note("Only the tasks that were searched are in this order: those that run or wait, and the newest ended ones. Narrow the query to sort all.")
			}
			a.note("%d of %s%s; --limit shows more.", len(all.Tasks), atLeast, plural(max(all.Total, len(all.Tasks)), "task", "tasks"))
		}
	})
}

// whereText is the agent of a task, or the queue that it waits in.
func whereText(t *api.LiveTask) string {
	switch {
	case t.Agent != "" && !signalbox.State(t.State).Waiting():
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
	return "for " + a.since(*cmp.Or(t.StartedAt, &t.CreatedAt))
}

// matchFlags are the flags of commands that can act on all tasks of a query.
type matchFlags struct {
	query string
	yes   bool
}

func (m *matchFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.query, "match", "", "all tasks that match a `query`, as in signalbox search, instead of one by its ID; the command counts them first")
	cmd.Flags().BoolVar(&m.yes, "yes", false, "with --match: do it without asking")
}

// check requires either an ID or --match.
func (m *matchFlags) check(args []string) error {
	switch {
	case m.query != "" && len(args) > 0:
		return usage("got an ID and --match: want one of them")
	case m.query == "" && len(args) == 0:
		return usage("want the ID of a task, or --match with a query").withHint("signalbox search finds tasks")
	case m.query == "" && m.yes:
		return usage("--yes needs --match")
	}
	return nil
}

// bulk cancels or retries all tasks that match, after confirmation.
func (a *app) bulk(ctx context.Context, c *client.Client, action, done string, m matchFlags) error {
	got, err := c.Bulk(ctx, api.BulkRequest{Query: m.query, Action: action})
	if err != nil {
		return err
	}
	if got.Count > 0 {
		more := ""
		if got.More {
			more = ", and more, which need another run of the command"
		}
		if !m.yes {
			if err := a.confirm(ctx, fmt.Sprintf("%s%s (%s). %s?", plural(got.Count, "task matches", "tasks match"), more, got.Query, capitalize(action))); err != nil {
				return err
			}
		}
		if got, err = c.Bulk(ctx, api.BulkRequest{Query: m.query, Action: action, Expect: &got.Count}); err != nil {
			return err
		}
	}
	err = a.print(got, func() {
		for _, o := range got.Results {
			if o.NewID != "" {
				a.say("%s: %s", clean(o.QueueID), clean(o.NewID))
			} else {
				a.note("%s: %s", o.QueueID, o.Message)
			}
		}
		a.say("%s: %s", capitalize(done), plural(got.Done, "task", "tasks"))
	})
	if err == nil && got.Failed > 0 {
		f := failure(exitError, "partly_failed", "%s could not be %s", plural(got.Failed, "task", "tasks"), done)
		f.silent = a.json
		return f
	}
	return err
}

// confirm asks for confirmation. Without a terminal it fails.
func (a *app) confirm(ctx context.Context, question string) error {
	if !a.io.InTTY || !a.io.ErrTTY {
		return failure(exitUsage, "not_confirmed", "%s Nothing was done", question).withHint("add --yes to do it without being asked")
	}
	yes, err := a.askYesNo(ctx, question)
	if err == nil && !yes {
		return failure(exitUsage, "not_confirmed", "nothing was done").withHint("answer y to do it")
	}
	return err
}

// askYesNo asks a question at the terminal.
func (a *app) askYesNo(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(a.io.Err, "%s [y/N] ", clean(question))
	answer, err := a.readLine(ctx)
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", err
}

// readLine reads a line from the terminal, until ctx ends.
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

// healthLine prints the director's verdict: what needs a person, each with its cure, and
// what is worth knowing.
func (a *app) healthLine(v *api.Verdict) {
	if v == nil {
		return
	}
	mark, text := a.paint(green, "✓"), v.Text
	if !v.OK {
		mark = a.paint(red, "✗")
	}
	for i := range max(1, len(v.Attention)) {
		cure := ""
		if i < len(v.Attention) {
			one := &v.Attention[i]
			if cure = between(one) + one.Cure; i > 0 {
				text = one.Subject + " " + one.Text + "."
			}
		}
		a.say("%s %s", mark, clean(text))
		if cure != "" {
			a.say("  %s", clean(cure))
		}
	}
	for i := range v.Notes {
		a.say("%s %s %s.", a.paint(dim, "·"), clean(v.Notes[i].Subject), clean(v.Notes[i].Text))
	}
}

// between says when the first and the last of several failures happened.
func between(a *api.Attention) string {
	if a.Count < 2 {
		return ""
	}
	return fmt.Sprintf("first %s, last %s; ", a.Since.Local().Format("15:04:05"), a.Last.Local().Format("15:04:05"))
}
