package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// demoAgents are the agents of the demo, all of kind demo.
var demoAgents = []string{"researcher", "coder", "writer"}

// demo is a director with agents, tools and work, for somebody to look at.
type demo struct {
	o        cli.DemoOptions
	folder   *demoFolder
	s        *service
	client   *client.Client
	children []*child
	end      context.CancelFunc // as q does
	say      *narrator
	feed     *feed

	mu     sync.Mutex
	wedged *child // that was stopped by w; nil: none
}

// runDemo is the demo role.
func runDemo(ctx context.Context, o cli.DemoOptions) (err error) {
	proc.KeepPrivate()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // the window is closed: that is a way to leave
	defer stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	folder, err := openDemoFolder()
	if err != nil {
		return err
	}
	keep := o.Keep
	defer func() { err = errors.Join(err, folder.close(keep)) }()
	log, err := os.OpenFile(folder.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	d := &demo{o: o, folder: folder, end: end, say: &narrator{out: o.Out}}
	if err := d.open(ctx, streams{o.Out, log}); err != nil {
		if folder.past.PID != 0 {
			keep, err = true, demoStuck{folder.path, err} // what was to be recovered is still there
		}
		return unlessStopped(ctx, err)
	}
	defer d.s.close()
	return unlessStopped(ctx, d.run(ctx))
}

// open makes the director, at the address of the demo before if that is free:
// its agents, which may have outlived it, call there, and so does a page that
// is still open.
func (d *demo) open(ctx context.Context, out streams) error {
	if err := os.WriteFile(d.folder.config(), []byte("# The demo's agents read no configuration of yours.\n"), 0o600); err != nil {
		return err
	}
	cfg, err := d.config()
	if err != nil {
		return err
	}
	if cfg.Addr = d.o.Addr; cfg.Addr == "" && d.folder.past.Addr != "" {
		cfg.Addr = d.folder.past.Addr
		if d.s, err = openService(ctx, cfg, d.folder.path, out); err == nil {
			return d.opened()
		}
		cfg.Addr = ""
	}
	cfg.Addr = cmp.Or(cfg.Addr, "127.0.0.1:0")
	if d.s, err = openService(ctx, cfg, d.folder.path, out); err != nil {
		return err
	}
	return d.opened()
}

func (d *demo) opened() (err error) {
	d.say.store = d.s.store
	d.client, err = client.New(d.s.url, client.Options{Token: d.s.cfg.Token})
	return err
}

// config is the demo's own: nothing of the person's is read.
func (d *demo) config() (config.Config, error) {
	c := config.Default("")
	c.File, c.Data = d.folder.config(), d.folder.data()
	c.Grace, c.OnShutdown = 100*time.Millisecond, "stop"
	c.Queue.Retention = time.Hour // it may run for days
	c.Commands.Limits = "rlimit"  // its tools need none
	c.ExecutionTTL = 2 * time.Minute
	c.Jobs = []config.Job{{Schedule: signalbox.Schedule{
		Name: "stand-up", Description: "A summary each minute", Cron: "* * * * *", Timezone: "UTC", Enabled: true,
		Prompt: "Summarise what was done in the last minute\nsleep 2s", Agent: "writer",
		Overlap: signalbox.OverlapSkip, Missed: signalbox.MissedOnce, MissedWindow: time.Hour, OnFull: signalbox.FullSkip,
	}}}
	var err error
	c.Tools, err = demoTools(d.folder.path)
	return c, err
}

// demoTools are two tools, each behind a queue: two browsers, and one account
// at a code forge. They only wait and answer.
func demoTools(folder string) (toolconf.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return toolconf.Config{}, err
	}
	tool := func(name, queue, description string) toolconf.CommandTool {
		return toolconf.CommandTool{
			Name: name, Title: name, Description: description, Queue: queue, Command: self, Args: []string{"demo", "tool"}, Cwd: folder, Timeout: 2 * time.Minute,
			InputSchema: []byte(`{"type":"object","properties":{"about":{"type":"string"},"seconds":{"type":"number","minimum":0,"maximum":60}}}`),
			Where:       "signalbox demo",
		}
	}
	return toolconf.Config{
		Queues: map[string]toolconf.Queue{
			"default": {Concurrent: 8}, "browser": {Concurrent: 2}, "github": {Concurrent: 1},
		},
		Commands: []toolconf.CommandTool{
			tool("browse", "browser", "Look a thing up in a browser (it waits and answers)"),
			tool("search_code", "github", "Search the code at the forge (it waits and answers)"),
		},
	}, nil
}

// run shows the demo until a person or a signal ends it.
func (d *demo) run(ctx context.Context) error {
	for _, name := range demoAgents {
		d.children = append(d.children, &child{s: d.s, cfg: d.s.cfg.For("demo"), name: name, kind: "demo"})
	}
	found, err := d.look(ctx)
	if err != nil {
		return err
	}
	d.feed = newFeed(d.client, rand.New(rand.NewPCG(d.o.Seed, 1)), d.o.Pace)
	unwedge := context.AfterFunc(ctx, d.unwedge) // before what runs is stopped: a wedged agent would not answer
	defer unwedge()
	var beside sync.WaitGroup
	running, stop := context.WithCancel(ctx)
	err = d.s.run(ctx, func(ctx context.Context) error {
		if err := errors.Join(startAll(ctx, d.children)...); err != nil {
			return err
		}
		if err := d.note(d.place()); err != nil {
			return err
		}
		d.welcome(found)
		for _, c := range d.children {
			beside.Go(func() { c.keep(running) })
		}
		beside.Go(func() { d.say.follow(running, d.client) })
		beside.Go(func() { d.feed.run(running, found.tasks()) })
		if d.o.Keys != nil {
			go d.keys(running) // reading the keyboard cannot be cut short; it ends with the process
		}
		return nil
	})
	stop()
	beside.Wait()
	d.say.line("Ending the agents …")
	d.endAll()
	if d.o.Keep {
		d.say.line("The data stays in %s", d.folder.path)
		p := d.place()
		p.Ended = true
		err = errors.Join(err, d.note(p))
	}
	return err
}

// place is where the demo runs, for one that comes after.
func (d *demo) place() demoPlace {
	return demoPlace{PID: os.Getpid(), Addr: d.s.listener.Addr().String(), URL: d.s.url}
}

func (d *demo) note(p demoPlace) error { return writeJSON(d.folder.file(), p) }

// endAll ends the agents, those that do not listen too.
func (d *demo) endAll() {
	d.unwedge()
	var group sync.WaitGroup
	for _, c := range d.children {
		group.Go(func() {
			c.end(true)
			d.insist(c)
		})
	}
	group.Wait()
}

// insist waits until an agent is gone, and kills one that stays.
func (d *demo) insist(c *child) {
	const patience = 5 * time.Second
	pid := c.current().PID
	for deadline := time.Now().Add(patience); proc.Running(pid) && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	if proc.Running(pid) {
		proc.Kill(pid)
		fmt.Fprintf(d.o.Err, "Agent %s did not end and was killed (pid %d).\n", c.name, pid)
	}
}

// narrator prints what happens, a line each.
type narrator struct {
	mu     sync.Mutex
	out    io.Writer
	store  store.Store
	silent map[string]bool // agents that were told to be; of follow alone
}

func (n *narrator) text(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	io.WriteString(n.out, s)
}

func (n *narrator) line(format string, args ...any) {
	n.text(time.Now().Format("15:04:05 ") + fmt.Sprintf(format, args...) + "\n")
}

// follow tells of what happens until ctx ends.
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

// event says in words what an event is, or nothing.
func (n *narrator) event(ctx context.Context, e api.Event) string {
	id := shortTaskID(e.QueueID)
	switch signalbox.EventKind(e.Kind) {
	case signalbox.EventSubmit:
		return n.submitted(ctx, e.QueueID)
	case signalbox.EventAccept:
		return fmt.Sprintf("started    %s on %s", id, e.Agent)
	case signalbox.EventAgentDown:
		n.silent[e.Agent] = true
		return fmt.Sprintf("silent     %s does not answer; the dashboard says what to do", e.Agent)
	case signalbox.EventAgentUp:
		if !n.silent[e.Agent] {
			return ""
		}
		delete(n.silent, e.Agent)
		return fmt.Sprintf("answers    %s again", e.Agent)
	case signalbox.EventRelease:
		return fmt.Sprintf("released   %s: its slot is free, what it still reports is discarded", id)
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
	whom, source := "whoever is free", ""
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

// watchTools tells of calls that begin to wait for a slot.
func (n *narrator) watchTools(ctx context.Context, c *client.Client) {
	type waiter struct {
		queue, session string
		since          time.Time
	}
	told := map[waiter]bool{}
	for ; ctx.Err() == nil; wait(ctx, 500*time.Millisecond) {
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

// shortTaskID is the end of an id, by which every command finds the task.
func shortTaskID(id string) string { return id[max(0, len(id)-4):] }
