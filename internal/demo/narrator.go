package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// narrator prints one line per event.
type narrator struct {
	mu     sync.Mutex
	out    io.Writer
	store  store.Store
	silent map[string]bool // agents that do not answer; used only by follow
}

func (n *narrator) text(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	io.WriteString(n.out, s)
}

func (n *narrator) line(format string, args ...any) {
	n.text(time.Now().Format("15:04:05 ") + fmt.Sprintf(format, args...) + "\n")
}

// follow prints events until ctx ends.
func (n *narrator) follow(ctx context.Context, c *client.Client) {
	n.silent = map[string]bool{}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { n.watchTools(ctx, c) })
	for e, err := range c.Events(ctx, client.EventsOptions{After: client.Now}) {
		if err != nil {
			return
		}
		if said := n.event(ctx, e); said != "" {
			n.line("%s", said)
		}
	}
}

// event returns the line for an event; "": none.
func (n *narrator) event(ctx context.Context, e api.Event) string {
	id := shortTaskID(e.QueueID)
	switch signalbox.EventKind(e.Kind) {
	case signalbox.EventSubmit:
		return n.submitted(ctx, e.QueueID)
	case signalbox.EventAccept:
		return fmt.Sprintf("started    %s on %s", id, e.Agent)
	case signalbox.EventAgentDown:
		n.silent[e.Agent] = true
		return fmt.Sprintf("silent     %s does not answer; the dashboard shows what to do", e.Agent)
	case signalbox.EventAgentUp:
		if !n.silent[e.Agent] {
			return ""
		}
		delete(n.silent, e.Agent)
		return fmt.Sprintf("answers    %s again", e.Agent)
	case signalbox.EventRelease:
		return fmt.Sprintf("released   %s: its slot is free, its later reports are discarded", id)
	}
	if client.Ended(e.State) {
		return n.ended(ctx, e)
	}
	return ""
}

func (n *narrator) submitted(ctx context.Context, id string) string {
	t, err := n.store.Task(ctx, id)
	if err != nil {
		return ""
	}
	whom, source := "any agent", ""
	if agent, ok := strings.CutPrefix(t.Queue, "agent:"); ok {
		whom = agent
	}
	if t.SourceJob != "" {
		source = ", by the schedule " + t.SourceJob
	}
	return fmt.Sprintf("submitted  %s %s (for %s%s)", shortTaskID(id), t.Preview, whom, source)
}

func (n *narrator) ended(ctx context.Context, e api.Event) string {
	said := e.Message
	if t, err := n.store.Task(ctx, e.QueueID); err == nil && t.State == signalbox.Completed && !t.StartedAt.IsZero() {
		said = fmt.Sprintf("on %s after %s", t.Agent, t.EndedAt.Sub(t.StartedAt).Round(time.Second))
	}
	return fmt.Sprintf("%-10s %s %s", e.State, shortTaskID(e.QueueID), said)
}

// watchTools prints calls that start to wait for a slot.
func (n *narrator) watchTools(ctx context.Context, c *client.Client) {
	type waiter struct {
		queue, session string
		since          time.Time
	}
	told := map[waiter]bool{}
	for ; ctx.Err() == nil; serve.Sleep(ctx, 500*time.Millisecond) {
		queues, err := c.ToolQueues(ctx)
		if err != nil {
			continue
		}
		now := map[waiter]bool{}
		for _, q := range queues {
			for _, w := range q.Waiters {
				key := waiter{q.Name, w.Session, w.Since}
				if now[key] = true; !told[key] {
					n.line("waits      %s for %s: %d of %d in use%s", w.Agent, q.Name, q.InUse, q.Concurrent, heldBy(q))
				}
			}
		}
		told = now
	}
}

func heldBy(q api.ToolQueue) string {
	var names []string
	for _, h := range q.Holders {
		if h.Agent != "" {
			names = append(names, h.Agent)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", by " + strings.Join(names, " and ")
}

// shortTaskID returns the end of an id, which every command accepts.
func shortTaskID(id string) string { return id[max(0, len(id)-4):] }
