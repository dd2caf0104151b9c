package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) eventsCmd() *cobra.Command {
	opts := client.EventsOptions{}
	var task string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print events as they happen",
		Long: "Print events as they happen, until Ctrl-C. A broken stream resumes where it stopped; an event of kind reset says\n" +
			"that the events between it and the one before are no longer available.",
		PreRunE: func(*cobra.Command, []string) error {
			if opts.After < client.Now {
				return usage("--after: want the seq of an event, 0 for the oldest, or -1 for now, got %d", opts.After)
			}
			return nil
		},
	}
	cmd.Flags().Int64Var(&opts.After, "after", client.Now, "start after the event with this `seq`; 0: with the oldest; -1: now")
	cmd.Flags().StringVar(&task, "task", "", "only events of the task with this `id`")
	cmd.Flags().StringVar(&opts.Agent, "agent", "", "only events of this `agent` and its queue")
	cmd.Flags().StringSliceVar(&opts.Include, "include", nil, "also print these transient `events`: position, output, or both separated by a comma")
	return a.follow(cmd, nil, func(ctx context.Context, c *client.Client, _ []string) (err error) {
		if task != "" {
			if opts.QueueID, err = resolve(ctx, c, task); err != nil {
				return err
			}
		}
		for event, err := range c.Events(ctx, opts) {
			if err == nil {
				err = a.printLine(event, a.eventLine(event))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) eventLine(e api.Event) string {
	line := a.paint(dim, a.clock(e.At)) + " " + clean(e.Kind)
	if e.Seq == 0 && e.At.IsZero() { // not stored: position or output
		line = clean(e.Kind)
	}
	line += opt(" %s", cmp.Or(e.QueueID, e.Queue))
	if e.State != "" {
		line += " [" + a.state(e.State) + "]"
	}
	line += opt(" %s", e.Agent) + opt(" by %s", e.By)
	if e.Position > 0 {
		line += fmt.Sprintf(" position %d", e.Position)
	}
	return line + opt(": %s", e.Message) + opt(": %s", strings.TrimRight(e.Text, "\n"))
}

// watched is one line of status --watch --json: an event of the live stream.
type watched struct {
	Event string `json:"event"`
	api.Live
}

// watchedAgent is one line of agents --watch --json.
type watchedAgent struct {
	Gone bool `json:"gone,omitempty"` // the agent was removed; only its name is set
	api.LiveAgent
}

// watch calls each for every change in the live stream, with the resulting state.
func watch(ctx context.Context, c *client.Client, each func(e *client.LiveEvent, b *client.Board) error) error {
	var board client.Board
	for e, err := range c.Live(ctx) {
		if err != nil {
			return err
		}
		board.Apply(e)
		if e.Kind == client.LiveBeat {
			continue
		}
		if err := each(&e, &board); err != nil {
			return err
		}
	}
	return nil
}

// watchQueue prints a line whenever a number or the verdict changes.
func (a *app) watchQueue(ctx context.Context, c *client.Client, _ []string) error {
	last := ""
	return watch(ctx, c, func(e *client.LiveEvent, b *client.Board) error {
		t := b.Totals
		line := fmt.Sprintf("%d/%d tasks waiting, %d of %s in use: %s", t.Pending, t.MaxSize, t.Running, plural(t.Slots, "slot", "slots"), clean(b.Health.Text))
		if line == last && !a.json {
			return nil
		}
		last = line
		return a.printLine(watched{e.Kind, e.Live}, a.paint(dim, a.clock(b.At))+" "+line)
	})
}

// watchAgents prints a line whenever an agent's state changes.
func (a *app) watchAgents(ctx context.Context, c *client.Client, _ []string) error {
	last := map[string]string{}
	return watch(ctx, c, func(e *client.LiveEvent, b *client.Board) error {
		for _, key := range e.Live.Gone {
			name, ok := strings.CutPrefix(key, "agent:")
			if !ok {
				continue
			}
			delete(last, name)
			if err := a.watchedAgent(b, watchedAgent{Gone: true, LiveAgent: api.LiveAgent{Agent: api.Agent{Name: name}}}, "gone"); err != nil {
				return err
			}
		}
		for _, g := range e.Live.Agents {
			line := agentLine(&g)
			if !a.json && last[g.Name] == line {
				continue
			}
			last[g.Name] = line
			if err := a.watchedAgent(b, watchedAgent{LiveAgent: g}, line); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) watchedAgent(b *client.Board, w watchedAgent, line string) error {
	return a.printLine(w, a.paint(dim, a.clock(b.At))+" "+clean(w.Name)+" "+clean(line))
}

// agentLine describes an agent's state in one line.
func agentLine(g *api.LiveAgent) string {
	line := fmt.Sprintf("%s (%d/%d", g.Face, g.InUse, g.Slots)
	if g.Waiting > 0 {
		line += fmt.Sprintf(", %d waiting", g.Waiting)
	}
	line += ")"
	for _, t := range g.Current {
		line += " " + shortID(t.QueueID)
	}
	return line + opt(": %s", g.FaceText)
}
