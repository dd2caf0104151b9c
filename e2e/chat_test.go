package e2e_test

import (
	"slices"
	"syscall"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// chatAside chats in the background; the channel gets the result.
func (b *box) chatAside(c *client.Client, agent string, req api.ChatRequest) <-chan error {
	done := make(chan error, 1)
	ctx := b.ctx()
	go func() {
		_, err := c.Chat(ctx, agent, req, client.ChatOptions{})
		done <- err
	}()
	return done
}

// untilBusy waits until an agent runs a task, and returns its ID.
func (b *box) untilBusy(c *client.Client, agent string) (id string) {
	b.t.Helper()
	b.until(agent+" runs something", func() bool {
		lane, err := c.Lane(b.ctx(), agent)
		if err != nil || lane.CurrentExecution == nil || lane.CurrentExecution.Status != "running" {
			return false
		}
		id = lane.CurrentExecution.ID
		return true
	})
	return id
}

// untilState waits until the director sees an agent in a state.
func (b *box) untilState(c *client.Client, agent, state string) {
	b.t.Helper()
	b.until(agent+" is "+state, func() bool {
		agents, err := c.Agents(b.ctx())
		return err == nil && slices.ContainsFunc(agents, func(a api.Agent) bool { return a.Name == agent && a.State == state })
	})
}

// untilWaiting waits until n tasks wait for an agent.
func (b *box) untilWaiting(c *client.Client, agent string, n int) {
	b.t.Helper()
	b.until("they wait in the queue", func() bool {
		lane, err := c.Lane(b.ctx(), agent)
		return err == nil && lane.QueueLength == n
	})
}

// freeze stops a process, as a debugger or an overloaded machine does; thaw
// lets it continue.
func (p *process) freeze() { p.t.Helper(); p.signal(syscall.SIGSTOP) }
func (p *process) thaw()   { p.t.Helper(); p.signal(syscall.SIGCONT) }
