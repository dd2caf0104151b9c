package demo

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/serve/child"
)

// maxWaiting is how many tasks may wait before the demo stops adding more.
const maxWaiting = 6

// errand is a task of the demo: what people see of it, and what the demo agent does.
type errand struct{ agent, source, text, does string }

// opening is submitted first: one task holds the only slot of github, another waits for
// it, and two wait for their agent.
var opening = []errand{
	{"coder", "cli", "Upgrade the billing service and run its tests", "sleep 2s, call search_code for 25s"},
	{"writer", "web", "Draft the release notes from the merged changes", "sleep 3s, call search_code for 8s"},
	{"researcher", "web", "Summarise the incident channel and open tickets", "sleep 3s, call browse for 9s"},
	{"coder", "cli", "Fix the flaky login test", "sleep 6s"},
	{"coder", "web", "Rename the configuration keys", "sleep 5s"},
	{"", "api", "Translate the changelog", "sleep 4s"},
}

// errands follow, again and again.
var errands = []errand{
	{"researcher", "web", "Compare three vector databases", "sleep 2s, call browse for 7s"},
	{"researcher", "cli", "Find the first report of the outage", "sleep 3s, call browse for 5s"},
	{"coder", "web", "Add a limit to the upload form", "sleep 4s, call search_code for 6s"},
	{"coder", "cli", "Remove the dead feature flags", "sleep 6s"},
	{"writer", "web", "Shorten the onboarding page", "sleep 5s"},
	{"writer", "api", "Answer the question about quotas", "sleep 2s, call search_code for 5s"},
	{"", "api", "Sort the bug reports of the week", "sleep 3s, call browse for 4s"},
	{"", "web", "Check the links of the manual", "sleep 4s, call browse for 6s"},
	{"", "cli", "Migrate the test database", "sleep 3s, exit 2"},
}

// feed submits tasks in an order that its seed determines.
type feed struct {
	client *client.Client
	random *rand.Rand
	pace   time.Duration
	now    chan struct{} // asks for one more task at once
	order  []int         // indexes of the errands left in this round
}

func newFeed(c *client.Client, random *rand.Rand, pace time.Duration) *feed {
	return &feed{client: c, random: random, pace: pace, now: make(chan struct{}, 1)}
}

// more asks for a task at once.
func (f *feed) more() {
	select {
	case f.now <- struct{}{}:
	default: // one was asked for already
	}
}

// run submits tasks until ctx ends. It begins with the opening, unless the previous demo left
// tasks.
func (f *feed) run(ctx context.Context, left int) {
	if left == 0 {
		for _, e := range opening {
			f.submit(ctx, e)
		}
	}
	for ctx.Err() == nil {
		timer := time.NewTimer(f.pace/2 + time.Duration(f.random.Int64N(int64(f.pace))))
		asked := false
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-f.now:
			asked = true
		}
		timer.Stop()
		if ctx.Err() == nil && (asked || f.room(ctx)) {
			f.submit(ctx, f.next())
		}
	}
}

// next returns the next errand. Each round has all errands, in another order.
func (f *feed) next() errand {
	if len(f.order) == 0 {
		f.order = f.random.Perm(len(errands))
	}
	e := errands[f.order[0]]
	f.order = f.order[1:]
	return e
}

// room reports whether few enough tasks wait.
func (f *feed) room(ctx context.Context) bool {
	q, err := f.client.Queue(ctx, client.QueueOptions{Limit: 1})
	return err == nil && q.Depth < maxWaiting
}

// submit submits a task. It ignores refusals: the queue is full, or the demo ends.
func (f *feed) submit(ctx context.Context, e errand) {
	_, _ = f.client.Submit(ctx, api.SubmitRequest{Prompt: e.text + "\n\n" + e.does, Agent: e.agent, Source: e.source}, client.SubmitOptions{})
}

// ctrlC is the byte that Ctrl-C sends in a raw terminal.
const ctrlC = 3

// keys handles the keyboard until the demo ends.
func (d *demo) keys(ctx context.Context) {
	key := make([]byte, 1)
	for {
		if _, err := d.o.Keys.Read(key); err != nil {
			d.quit() // the terminal is gone
			return
		}
		if ctx.Err() != nil {
			return
		}
		switch key[0] {
		case 'q', 'Q', ctrlC:
			d.say.line("Stopping …")
			d.quit()
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

// wedge suspends an agent, as if it hung: the first one that runs a task, else the first.
func (d *demo) wedge(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wedged != nil {
		d.say.line("%s is wedged already; u undoes that.", d.wedged.Name)
		return
	}
	c := d.busiest(ctx)
	p := d.place()
	p.Wedged = c.PID()
	if err := d.note(p); err != nil {
		d.say.line("Not wedged: %v", err)
		return
	}
	if err := proc.Suspend(c.PID()); err != nil {
		d.say.line("Not wedged: %v", err)
		return
	}
	d.wedged = c
	d.say.line("wedged     %s hangs now (pid %d). Within half a minute the dashboard shows it, and what to do: release it. u undoes this.", c.Name, c.PID())
}

func (d *demo) busiest(ctx context.Context) *child.Child {
	tasks, err := d.d.Store.InFlight(ctx)
	if err != nil {
		return d.children[0]
	}
	for i := range tasks {
		for _, c := range d.children {
			if tasks[i].Agent == c.Name {
				return c
			}
		}
	}
	return d.children[0]
}

func (d *demo) unwedge() { d.unwedgeOne() }

// unwedgeOne resumes the wedged agent, if there is one, and returns it.
func (d *demo) unwedgeOne() *child.Child {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.wedged
	if c == nil {
		return nil
	}
	d.wedged = nil
	proc.Resume(c.PID())
	_ = d.note(d.place()) // a stale note is harmless
	d.say.line("goes on    %s", c.Name)
	return c
}
