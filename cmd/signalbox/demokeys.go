package main

import (
	"context"
	"syscall"
)

// ctrlC is what that key sends to a terminal that is raw.
const ctrlC = 3

// keys does what a person asks for, until the demo ends.
func (d *demo) keys(ctx context.Context) {
	key := make([]byte, 1)
	for {
		if _, err := d.o.Keys.Read(key); err != nil {
			d.end() // the terminal is gone
			return
		}
		if ctx.Err() != nil {
			return
		}
		switch key[0] {
		case 'q', 'Q', ctrlC:
			d.say.line("Stopping …")
			d.end()
			return
		case 's', 'S':
			d.feed.more()
		case 'w', 'W':
			d.wedge(ctx)
		case 'u', 'U':
			if d.unwedgeOne() == nil {
				d.say.line("Nothing is wedged; w does that.")
			}
		}
	}
}

// wedge stops an agent in the middle of what it does, as one that hangs: the
// first that runs something, else the first.
func (d *demo) wedge(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wedged != nil {
		d.say.line("%s is wedged already; u undoes that.", d.wedged.name)
		return
	}
	c := d.busiest(ctx)
	p := d.place()
	p.Wedged = c.current().PID
	if err := d.note(p); err != nil {
		d.say.line("Not wedged: %v", err)
		return
	}
	if err := syscall.Kill(c.current().PID, syscall.SIGSTOP); err != nil {
		d.say.line("Not wedged: %v", err)
		return
	}
	d.wedged = c
	d.say.line("wedged     %s hangs now (pid %d). Within half a minute the dashboard says so, and what to do: release it. u undoes this.", c.name, c.current().PID)
}

func (d *demo) busiest(ctx context.Context) *child {
	tasks, err := d.s.store.InFlight(ctx)
	if err != nil {
		return d.children[0]
	}
	for i := range tasks {
		for _, c := range d.children {
			if tasks[i].Agent == c.name {
				return c
			}
		}
	}
	return d.children[0]
}

func (d *demo) unwedge() { d.unwedgeOne() }

// unwedgeOne lets the agent go on that was stopped, and returns it.
func (d *demo) unwedgeOne() *child {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.wedged
	if c == nil {
		return nil
	}
	d.wedged = nil
	_ = syscall.Kill(c.current().PID, syscall.SIGCONT) // it has ended, if this fails
	_ = d.note(d.place())                              // a stale word there does no harm
	d.say.line("goes on    %s", c.name)
	return c
}
