package cli

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// choice is a flag that takes one of a few words.
type choice struct {
	value *string
	words []string
}

func newChoice(p *string, def string, words ...string) *choice {
	*p = def
	return &choice{p, words}
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return "word" }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("want %s or %s", strings.Join(c.words[:len(c.words)-1], ", "), c.words[len(c.words)-1])
	}
	*c.value = s
	return nil
}

// durationFlag is a flag that takes a duration, or a number of seconds.
type durationFlag time.Duration

func (s *durationFlag) Type() string { return "duration" }
func (s *durationFlag) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

func (s *durationFlag) Set(text string) error {
	d, err := parseDuration(text)
	if err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("want more than 0")
	}
	*s = durationFlag(d)
	return nil
}

// seconds rounds up to whole seconds, the unit of the API.
func (s durationFlag) seconds() int { return int(math.Ceil(time.Duration(s).Seconds())) }

func parseDuration(text string) (time.Duration, error) {
	if sec, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(sec) < 1e9 {
		return time.Duration(sec * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("want a duration such as 90s or 1h30m, or a number of seconds")
	}
	return d, nil
}

// parseTime parses a time, or a duration from now.
func parseTime(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	d, err := parseDuration(text)
	if err != nil || d < 0 {
		return time.Time{}, fmt.Errorf("want a time such as 2026-01-31T18:00:00Z, or a duration from now such as 90m")
	}
	return now.Add(d), nil
}

// pageFlags are the flags of a paged list.
func pageFlags(f *pflag.FlagSet, before *string, limit *int, what string) {
	f.StringVar(before, "before", "", "continue from this `cursor`: next in an earlier answer")
	f.IntVar(limit, "limit", 50, "`number` of "+what+", 1 to 1000")
}

func checkPriority(p int) error {
	if p < signalbox.MinPriority || p > signalbox.MaxPriority {
		return usage("--priority: want a number from %d to %d, got %d", signalbox.MinPriority, signalbox.MaxPriority, p)
	}
	return nil
}

// completionTimeout limits a completion, so that the shell does not hang.
const completionTimeout = 700 * time.Millisecond

// completeWith asks the director for completions. On an error it returns none.
func (a *app) completeWith(cmd *cobra.Command, f func(context.Context, *client.Client) []string) ([]string, cobra.ShellCompDirective) {
	c, err := a.client(client.Options{Tries: 1, Timeout: completionTimeout})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	return f(ctx, c), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeFiles offers file names.
var completeFiles = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)

// completeArg completes the first argument with names from the director.
func (a *app) completeArg(f func(context.Context, *client.Client) []string) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completeWith(cmd, f)
	}
}

// completions formats items as cobra's completions with descriptions. Items with
// an empty word are left out.
func completions[T any](items []T, describe func(*T) (word, text string)) []string {
	var out []string
	for i := range items {
		if word, text := describe(&items[i]); word != "" {
			out = append(out, cobra.CompletionWithDesc(clean(word), clean(text)))
		}
	}
	return out
}

func agentNames(ctx context.Context, c *client.Client) []string {
	agents, _ := c.Agents(ctx)
	return completions(agents, func(g *api.Agent) (string, string) { return g.Name, g.Kind + ", " + g.State })
}

func agentKinds(ctx context.Context, c *client.Client) []string {
	agents, _ := c.Agents(ctx)
	kinds := map[string]bool{}
	for _, g := range agents {
		kinds[clean(g.Kind)] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}

func queueNames(ctx context.Context, c *client.Client) []string {
	out := []string{signalbox.QueueWork}
	for _, kind := range agentKinds(ctx, c) {
		out = append(out, signalbox.PoolQueue(kind))
	}
	all, _ := c.AgentsAndExecutors(ctx)
	for _, g := range all.Agents {
		out = append(out, signalbox.AgentQueue(clean(g.Name)))
	}
	for _, x := range all.Executors { // their kind is the name of their queue
		out = append(out, clean(x.Kind))
	}
	return out
}

// The tasks that a command accepts.
const (
	waitingTask = 1 << iota
	runningTask
	endedTask
	liveTask = waitingTask | runningTask
	anyTask  = liveTask | endedTask
)

func (a *app) completeIDs(which int) completer {
	return a.completeArg(func(ctx context.Context, c *client.Client) []string { return taskIDs(ctx, c, which) })
}

func taskIDs(ctx context.Context, c *client.Client, which int) []string {
	const most = 50
	var tasks []api.Task
	if which&runningTask != 0 {
		all, _ := c.AgentsAndExecutors(ctx)
		for _, g := range append(all.Agents, all.Executors...) {
			for _, r := range g.Running {
				if r.State != "dispatching" { // those are listed in the queue
					tasks = append(tasks, api.Task{QueueID: r.QueueID, State: r.State, PromptPreview: r.PromptPreview})
				}
			}
		}
	}
	if which&waitingTask != 0 {
		queue, _ := c.Queue(ctx, client.QueueOptions{Limit: most})
		tasks = append(tasks, queue.Tasks...)
	}
	if which&endedTask != 0 {
		past, _ := c.History(ctx, client.HistoryOptions{Limit: most})
		tasks = append(tasks, past.Tasks...)
	}
	return completions(tasks, func(t *api.Task) (string, string) { return t.QueueID, t.State + " " + t.PromptPreview })
}

// completeFlags registers the completions of flags.
func (a *app) completeFlags(root *cobra.Command) {
	ask := func(f func(context.Context, *client.Client) []string) completer {
		return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return a.completeWith(cmd, f)
		}
	}
	words := func(words ...string) completer {
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	byName := map[string]completer{ // flag, or command and flag
		"agent": ask(agentNames), "include": words("position", "output"), "scope": words(scopeNames()...), "tool": ask(toolNames),
		"limit-agents": ask(agentNames), "severity": words("info", "warning", "critical"), "session": ask(sessionIDs("", true)),
		"submit kind": ask(agentKinds), "add kind": ask(agentKinds), "edit kind": ask(agentKinds), "retry kind": ask(agentKinds), "agent kind": words(ownKinds...),
		"usage schedule":   ask(scheduleNames),
		"activities state": words("queued", "started", "completed", "failed"), "history state": words("completed", "failed", "cancelled", "timeout"),
		"activities type": words("chat_start", "task_start", "schedule_start", "agent_collaboration", "tool_call"),
		"on-shutdown":     words("leave", "stop"), "log-format": words("text", "json"), "log-level": words("debug", "verbose", "info", "warn", "error"),
		"task": ask(func(ctx context.Context, c *client.Client) []string { return taskIDs(ctx, c, anyTask) }),
	}
	for _, cmd := range withSubcommands(root) {
		for name, f := range byName {
			if command, flag, one := strings.Cut(name, " "); !one {
				registerCompletion(cmd, name, f)
			} else if command == cmd.Name() {
				registerCompletion(cmd, flag, f)
			}
		}
		choices := func(f *pflag.Flag) {
			if choice, ok := f.Value.(*choice); ok {
				registerCompletion(cmd, f.Name, words(choice.words...))
			}
		}
		cmd.Flags().VisitAll(choices)
		cmd.PersistentFlags().VisitAll(choices)
	}
}

// withSubcommands returns a command and all its subcommands.
func withSubcommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		all = append(all, withSubcommands(below)...)
	}
	return all
}

func registerCompletion(cmd *cobra.Command, flag string, f completer) {
	if cmd.Flags().Lookup(flag) == nil && cmd.PersistentFlags().Lookup(flag) == nil {
		return
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic("cli: completion of --" + flag + ": " + err.Error())
	}
}
