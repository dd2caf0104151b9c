package cli

import (
	"cmp"
	"context"
	"fmt"
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
		Long: "List the tools behind the director's gateway. All callers of a tool share the capacity of its queue, by\n" +
			"whichever way they come: MCP, HTTP, the LLM runner or this command. A call of a tool whose queue is commands\n" +
			"becomes a task and is answered at once.",
		RunE: query(a, func(ctx context.Context, c *client.Client, _ []string) (api.Tools, error) { return c.ListTools(ctx) }, a.toolTable),
	}
	cmd.AddCommand(a.toolQueuesCmd(), a.toolServersCmd(), a.callToolCmd(), a.toolTasksCmd())
	return cmd
}

func (a *app) toolTable(t api.Tools) error {
	for _, s := range t.Servers {
		if s.State != "ready" {
			a.note("Server %s is %s: signalbox tools servers says more.", s.Name, s.State)
		}
	}
	if len(t.Tools) == 0 {
		a.note("No tools.")
		return nil
	}
	rows := [][]string{{"NAME", "KIND", "QUEUE", "TIMEOUT", "DESCRIPTION"}}
	for _, tool := range t.Tools {
		rows = append(rows, []string{tool.Name, tool.Kind, queueOf(tool), timeoutOf(tool), brief(tool.Description)})
	}
	return a.table(rows)
}

// queueOf says where a call of a tool waits.
func queueOf(tool api.Tool) string {
	switch {
	case tool.Async && tool.Queue != "":
		return signalbox.QueueCommands + ", " + tool.Queue
	case tool.Async:
		return signalbox.QueueCommands
	case tool.Queue == "":
		return "-" // it waits for nobody
	}
	return tool.Queue
}

func timeoutOf(tool api.Tool) string {
	if tool.TimeoutSeconds == 0 {
		return "none"
	}
	return seconds(tool.TimeoutSeconds)
}

// brief is the beginning of a description, for a line.
func brief(s string) string {
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

// seconds is a length of time as the API has it.
func seconds(s float64) string { return (time.Duration(s*1000) * time.Millisecond).String() }

func (a *app) toolServersCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "servers",
		Short: "Show the servers that have the tools, and how they are",
		RunE: query(a, func(ctx context.Context, c *client.Client, _ []string) (toolServers, error) {
			t, err := c.ListTools(ctx)
			return toolServers{t.Servers}, err
		}, a.serverTable),
	}
}

// toolServers is the document of tools servers.
type toolServers struct {
	Servers []api.ToolServer `json:"servers"`
}

func (a *app) serverTable(all toolServers) error {
	rows := [][]string{{"NAME", "KIND", "STATE", "SINCE", "TOOLS", "RESTARTS", "PIDS", "ERROR"}}
	for _, s := range all.Servers {
		rows = append(rows, []string{
			s.Name, s.Kind, s.State, ago(a.io.Now().Sub(s.Since)), fmt.Sprint(s.Tools), fmt.Sprint(s.Restarts),
			strings.Trim(fmt.Sprint(s.PIDs), "[]"), s.Error,
		})
	}
	return a.table(rows)
}

func (a *app) toolQueuesCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "queues",
		Short: "Show the tool queues: who holds their slots and who waits",
		Long: "Show the tool queues: how many of their slots are in use, who holds them, how many calls wait, and how long\n" +
			"the first of them has. A session is shown by a mark, for its name is as good as a password. A holder that\n" +
			"is idle keeps its slot from call to call, until its lease ends. Of a queue that several directors share the\n" +
			"calls of all are shown, and at which director each is.",
		RunE: query(a, func(ctx context.Context, c *client.Client, _ []string) (api.ToolQueues, error) {
			queues, err := c.ToolQueues(ctx)
			return api.ToolQueues{Queues: queues}, err
		}, a.toolQueueTable),
	}
}

func (a *app) toolQueueTable(all api.ToolQueues) error {
	rows := [][]string{{"QUEUE", "IN USE", "WAITING", "LONGEST WAIT", "HOLDERS"}}
	for _, q := range all.Queues {
		longest := "-"
		if len(q.Waiters) > 0 {
			longest = ago(a.io.Now().Sub(q.Waiters[0].Since))
		}
		rows = append(rows, []string{q.Name, fmt.Sprintf("%d/%d", q.InUse, q.Concurrent), fmt.Sprint(q.Depth), longest, a.toolHolders(q.Holders)})
	}
	return a.table(rows)
}

func (a *app) toolHolders(holders []api.ToolHolder) string {
	const most = 3
	var words []string
	for i, h := range holders {
		if i == most {
			words = append(words, fmt.Sprintf("and %d more", len(holders)-most))
			break
		}
		who := h.Agent
		if who == "" && h.Session != "" {
			who = "session " + h.Session
		}
		who = cmp.Or(who, "a caller")
		switch {
		case h.Idle:
			who += " (idle)"
		case h.Tool != "":
			who += " (" + h.Tool + ")"
		}
		if h.Director != "" {
			who += " at " + h.Director
		}
		words = append(words, who)
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, ", ")
}

func (a *app) completeTools(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault // the arguments may be a file
	}
	return a.asked(cmd, toolNames)
}

func toolNames(ctx context.Context, c *client.Client) []string {
	tools, _ := c.ListTools(ctx)
	var out []string
	for _, t := range tools.Tools {
		out = append(out, described(t.Name, brief(t.Description)))
	}
	return out
}
