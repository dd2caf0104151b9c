package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) toolsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools behind the gateway",
		Long: "List the tools behind the director's gateway. All callers of a tool share the capacity of its queue, whether\n" +
			"they call over MCP, HTTP, the LLM runner or this command. A call of a tool whose queue is commands becomes a\n" +
			"task and is answered at once.",
	}
	cmd.AddCommand(a.toolQueuesCmd(), a.setToolQueueCmd(), a.openToolQueueCmd(), a.toolServersCmd(), a.callToolCmd(), a.toolTasksCmd())
	return query(a, cmd, noArg((*client.Client).ListTools), func(t api.Tools) {
		for _, s := range t.Servers {
			if s.State != "ready" {
				a.note("Server %s is %s: see signalbox tools servers.", s.Name, s.State)
			}
		}
		list(a, t.Tools, "No tools.", []string{"NAME", "KIND", "QUEUE", "TIMEOUT", "DESCRIPTION"}, func(tool *api.Tool) []string {
			timeout := "none"
			if tool.TimeoutSeconds != 0 {
				timeout = (time.Duration(tool.TimeoutSeconds*1000) * time.Millisecond).String()
			}
			return []string{tool.Name, tool.Kind, toolQueueText(tool), timeout, summary(tool.Description)}
		})
	})
}

// toolQueueText is the queue in which calls of a tool wait.
func toolQueueText(tool *api.Tool) string {
	switch {
	case tool.Async && tool.Queue != "":
		return signalbox.QueueCommands + ", " + tool.Queue
	case tool.Async:
		return signalbox.QueueCommands
	case tool.Queue == "":
		return "-" // its calls do not wait
	}
	return tool.Queue
}

// summary is the beginning of a description.
func summary(s string) string {
	const most = 60
	line, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	runes := []rune(strings.TrimSpace(line))
	if len(runes) > most {
		runes, more = runes[:most], true
	}
	if more {
		return strings.TrimRight(string(runes), " .,") + "…"
	}
	return string(runes)
}

func (a *app) toolServersCmd() *cobra.Command {
	return query(a, &cobra.Command{Use: "servers", Short: "Show the servers of the tools, and their states"},
		func(ctx context.Context, c *client.Client, _ []string) (toolServers, error) {
			t, err := c.ListTools(ctx)
			return toolServers{t.Servers}, err
		}, func(all toolServers) {
			list(a, all.Servers, "", []string{"NAME", "KIND", "STATE", "SINCE", "TOOLS", "RESTARTS", "PIDS", "ERROR"}, func(s *api.ToolServer) []string {
				return []string{s.Name, s.Kind, s.State, a.since(s.Since), fmt.Sprint(s.Tools), fmt.Sprint(s.Restarts), strings.Trim(fmt.Sprint(s.PIDs), "[]"), s.Error}
			})
		})
}

// toolServers is the JSON output of tools servers.
type toolServers struct {
	Servers []api.ToolServer `json:"servers"`
}

func (a *app) toolQueuesCmd() *cobra.Command {
	return query(a, &cobra.Command{
		Use:   "queues",
		Short: "Show the tool queues: who holds their slots and who waits",
		Long: "Show the tool queues: how many of their slots are in use, who holds them, how many calls wait, and how long\n" +
			"the first one has waited. A session is shown by a mark, because its name works like a password. An idle holder\n" +
			"keeps its slot between calls until its lease ends. A queue with a rate shows the rate, and how many more calls may\n" +
			"start now; a queue with limits for each caller, session or value shows those limits. A queue that several\n" +
			"directors share shows the calls of all of them, and the director of each call.",
	}, func(ctx context.Context, c *client.Client, _ []string) (api.ToolQueues, error) {
		queues, err := c.ToolQueues(ctx)
		return api.ToolQueues{Queues: queues}, err
	}, func(all api.ToolQueues) {
		columns := []string{"QUEUE", "IN USE", "WAITING", "LONGEST WAIT", "HOLDERS"}
		rates := slices.ContainsFunc(all.Queues, func(q api.ToolQueue) bool { return q.Rate != nil || q.Closed != nil })
		if rates {
			columns = slices.Insert(columns, 2, "RATE")
		}
		list(a, all.Queues, "", columns, func(q *api.ToolQueue) []string {
			longest := "-"
			if len(q.Waiters) > 0 {
				longest = a.since(q.Waiters[0].Since)
			}
			row := []string{q.Name, toolInUse(q), fmt.Sprint(q.Depth), longest, toolHolders(q.Holders)}
			if rates {
				row = slices.Insert(row, 2, toolRate(q))
			}
			return row
		})
	})
}

// toolInUse says how many calls run, and how many may.
func toolInUse(q *api.ToolQueue) string {
	text := fmt.Sprintf("%d/%d", q.InUse, q.Concurrent)
	if q.PerKey {
		text = fmt.Sprintf("%d, %d each", q.InUse, q.Concurrent)
	}
	return text
}

// toolRate says how often calls may start, and how many may start now.
func toolRate(q *api.ToolQueue) string {
	text := "-"
	if r := q.Rate; r != nil {
		text = ratePer(r)
		switch {
		case q.PerKey:
			text += " each"
		case r.Next != nil:
			text += ", next at " + r.Next.Local().Format(time.TimeOnly)
		case r.Left != nil:
			text += fmt.Sprintf(", %d left", *r.Left)
		}
	}
	if q.Closed != nil {
		text = count("%d keys ", q.KeysClosed) + "closed until " + q.Closed.Until.Local().Format(time.TimeOnly) + opt(": %s", clean(q.Closed.Why))
	}
	return text
}

func (a *app) setToolQueueCmd() *cobra.Command {
	var req api.SetToolQueue
	var rate string
	var burst int
	cmd := &cobra.Command{
		Use:   "set QUEUE",
		Short: "Set how many calls of a tool queue run at once, and how often they start",
		Long: "Set how many calls of a tool queue run at once and how often they start, while the queue is in use. Additional\n" +
			"slots go to the calls in line at once. Surplus slots drain: a call or session keeps the slot that it holds, and no\n" +
			"other gets one until fewer are held. With a new rate, starts that were used up stay used up. The setting applies\n" +
			"to the director that is asked, until it restarts: to keep it, write it under queues in the configuration. If\n" +
			"several directors share the queue, set it at each.",
		Example: "  signalbox tools set browser --concurrent 2\n  signalbox tools set api --rate 60/1m --burst 10\n  signalbox tools set api --rate none",
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			set := cmd.Flags().Changed
			switch {
			case !set("concurrent") && !set("rate"):
				return usage("say what to set: --concurrent N, --rate N/TIME or both")
			case set("burst") && (!set("rate") || rate == noRate):
				return usage("--burst is a part of a rate: give --rate N/TIME, too")
			case set("concurrent") && req.Concurrent < 1:
				return usage("--concurrent must be 1 to 1000000, not %d", req.Concurrent)
			case set("rate"):
				req.Rate, err = parseRate(rate, burst)
			}
			return err
		},
		ValidArgsFunction: a.completeArg(toolQueueNames),
	}
	cmd.Flags().IntVar(&req.Concurrent, "concurrent", 0, "`calls` at once, 1 or more")
	cmd.Flags().StringVar(&rate, "rate", "", "how many calls may start per time, such as 60/1m; none removes the `rate`")
	cmd.Flags().IntVar(&burst, "burst", 0, "`calls` that may start at once after a pause (default 1)")
	return action(a, cmd, "", func(ctx context.Context, c *client.Client, args []string) (api.ToolQueueSet, error) {
		return c.SetToolQueue(ctx, args[0], req)
	}, func(got api.ToolQueueSet) {
		q := got.Queue
		if req.Concurrent > 0 {
			a.say("%s: %s at once, before %d", clean(q.Name), plural(q.Concurrent, "call", "calls"), got.Before)
		}
		if req.Rate != nil {
			a.say("%s: %s, before %s", clean(q.Name), rateText(q.Rate), rateText(got.RateBefore))
		}
		if q.InUse > q.Concurrent && !q.PerKey {
			a.note("%d of %d in use: the queue drains.", q.InUse, q.Concurrent)
		}
		a.note("The setting applies until the director restarts. To keep it, write it under queues in the configuration.")
	})
}

const noRate = "none"

// parseRate parses a rate such as 60/1m.
func parseRate(text string, burst int) (*api.SetToolRate, error) {
	if text == noRate {
		return &api.SetToolRate{}, nil
	}
	count, per, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(count)
	d, bad := time.ParseDuration(per)
	if err != nil || bad != nil || n < 1 {
		return nil, usage("--rate is the number of calls per time, such as 10/1m or 5/1s, or none; not %q", text)
	}
	return &api.SetToolRate{N: n, PerSeconds: d.Seconds(), Burst: burst}, nil
}

func rateText(r *api.ToolRate) string {
	if r == nil {
		return "no rate"
	}
	return fmt.Sprintf("%s, burst %d", ratePer(r), r.Burst)
}

func ratePer(r *api.ToolRate) string {
	return fmt.Sprintf("%d/%s", r.N, time.Duration(r.PerSeconds*float64(time.Second)))
}

func (a *app) openToolQueueCmd() *cobra.Command {
	return action(a, &cobra.Command{
		Use:   "open QUEUE",
		Short: "Open a closed tool queue, so that it starts calls again",
		Long: "Open a tool queue before its time. A queue closes when its server answers 429 or 503 with a time, and opens\n" +
			"automatically at that time. In a queue with limits for each caller, session or value, all of them are opened. A\n" +
			"queue that several directors share opens at all of them.",
		ValidArgsFunction: a.completeArg(toolQueueNames),
	}, "", func(ctx context.Context, c *client.Client, args []string) (api.ToolQueueOpened, error) {
		return c.OpenToolQueue(ctx, args[0])
	}, func(got api.ToolQueueOpened) {
		if got.Opened == 0 {
			a.say("%s: was not closed", clean(got.Queue.Name))
			return
		}
		a.say("%s: open", clean(got.Queue.Name))
	})
}

func toolQueueNames(ctx context.Context, c *client.Client) []string {
	queues, _ := c.ToolQueues(ctx)
	return completions(queues, func(q *api.ToolQueue) (string, string) {
		return q.Name, fmt.Sprintf("%d/%d in use", q.InUse, q.Concurrent)
	})
}

func toolHolders(holders []api.ToolHolder) string {
	const most = 3
	var words []string
	for _, h := range holders[:min(len(holders), most)] {
		who := cmp.Or(h.Agent, opt("session %s", h.Session), "a caller")
		if h.Idle {
			who += " (idle)"
		} else {
			who += opt(" (%s)", h.Tool)
		}
		words = append(words, who+opt(" at %s", h.Director))
	}
	if len(holders) > most {
		words = append(words, fmt.Sprintf("and %d more", len(holders)-most))
	}
	return cmp.Or(strings.Join(words, ", "), "-")
}

func (a *app) completeTools(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault // the arguments may be a file
	}
	return a.completeWith(cmd, toolNames)
}

func toolNames(ctx context.Context, c *client.Client) []string {
	tools, _ := c.ListTools(ctx)
	return completions(tools.Tools, func(t *api.Tool) (string, string) { return t.Name, summary(t.Description) })
}
