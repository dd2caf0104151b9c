// Package demo runs a director with three demo agents, two tools and a stream of tasks, to
// show how Signalbox works.
package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/lifecycle"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/roles"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/serve/child"
	"github.com/signalbox-ai/signalbox/internal/serve/director"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// agents are the agents of the demo, all of kind demo.
var agents = []string{"researcher", "coder", "writer"}

// demo is a director with agents, tools and work.
type demo struct {
	o        roles.Demo
	folder   *folder
	d        *director.Director
	client   *client.Client
	children []*child.Child
	quit     context.CancelFunc
	say      *narrator
	feed     *feed

	mu     sync.Mutex
	wedged *child.Child // agent suspended by w; nil: none
}

// Run runs the demo until ctx ends or the user quits.
func Run(ctx context.Context, p serve.Program, o roles.Demo) (err error) {
	proc.KeepPrivate()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // closing the terminal quits the demo
	defer stop()
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	f, err := openFolder()
	if err != nil {
		return err
	}
	keep := o.Keep
	defer func() { err = errors.Join(err, f.close(keep)) }()
	log, err := os.OpenFile(f.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	d := &demo{o: o, folder: f, quit: quit, say: &narrator{out: o.Out}}
	if err := d.open(ctx, p, roles.Streams{Out: o.Out, Err: log}); err != nil {
		if f.past.PID != 0 {
			keep, err = true, stuckError{f.path, err} // the data to recover is still there
		}
		return serve.UnlessStopped(ctx, err)
	}
	defer d.d.Close()
	return serve.UnlessStopped(ctx, d.run(ctx))
}

// open opens the director, if possible at the address of the previous demo: agents that
// outlived that demo, and pages that are still open, connect there.
func (d *demo) open(ctx context.Context, p serve.Program, out roles.Streams) error {
	if err := os.WriteFile(d.folder.config(), []byte("# The demo's agents read no configuration of yours.\n"), 0o600); err != nil {
		return err
	}
	cfg, err := d.config()
	if err != nil {
		return err
	}
	addrs := []string{d.o.Addr}
	if d.o.Addr == "" {
		addrs = []string{d.folder.past.Addr, "127.0.0.1:0"}
	}
	for _, cfg.Addr = range addrs {
		if cfg.Addr == "" {
			continue
		}
		if d.d, err = director.Open(ctx, p, cfg, d.folder.path, out); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	d.say.store = d.d.Store
	d.client, err = client.New(d.d.URL, client.Options{Token: d.d.Config.Token})
	return err
}

// config is the configuration of the demo. The demo reads none of the user's.
func (d *demo) config() (config.Config, error) {
	c := config.Default("")
	c.File, c.Data = d.folder.config(), d.folder.data()
	c.Grace, c.OnShutdown = 100*time.Millisecond, "stop"
	c.Queue.Retention = time.Hour // a demo may run for days
	c.Commands.Limits = "rlimit"  // the demo's tools need no more
	c.ExecutionTTL = 2 * time.Minute
	c.Jobs = []config.Job{{Schedule: signalbox.Schedule{
		Name: "stand-up", Description: "A summary each minute", Cron: "* * * * *", Timezone: "UTC", Enabled: true,
		Prompt: "Summarise what was done in the last minute\nsleep 2s", Agent: "writer",
		Overlap: signalbox.OverlapSkip, Missed: signalbox.MissedOnce, MissedWindow: time.Hour, OnFull: signalbox.FullSkip,
	}}}
	var err error
	c.Tools, err = tools(d.folder.path)
	return c, err
}

// tools returns two tools, each behind a queue: two browsers, and one account at a code
// forge. They only wait and answer.
func tools(folder string) (toolconf.Config, error) {
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

// run runs the demo until the user or a signal ends it.
func (d *demo) run(ctx context.Context) error {
	for _, name := range agents {
		d.children = append(d.children, child.New(d.d, name, "demo"))
	}
	found, err := d.look(ctx)
	if err != nil {
		return err
	}
	d.feed = newFeed(d.client, rand.New(rand.NewPCG(d.o.Seed, 1)), d.o.Pace)
	unwedge := context.AfterFunc(ctx, d.unwedge) // before the drain, because a wedged agent does not answer
	defer unwedge()
	var beside lifecycle.Group
	err = d.d.Run(ctx, func(ready context.Context) error {
		if err := errors.Join(child.StartAll(ready, d.children)...); err != nil {
			return err
		}
		if err := d.note(d.place()); err != nil {
			return err
		}
		d.welcome(found)
		for _, c := range d.children {
			beside.Go(ctx, c.Keep)
		}
		beside.Go(ctx, func(ctx context.Context) { d.say.follow(ctx, d.client) })
		beside.Go(ctx, func(ctx context.Context) { d.feed.run(ctx, found.tasks()) })
		if d.o.Keys != nil {
			go d.keys(ctx) // reading the keyboard cannot be interrupted and ends with the process
		}
		return nil
	})
	serve.Stop(&beside, d.d.Log)
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

// place describes where the demo runs, for the next demo.
func (d *demo) place() place {
	return place{PID: os.Getpid(), Addr: d.d.Addr().String(), URL: d.d.URL}
}

func (d *demo) note(p place) error { return serve.WriteJSON(d.folder.file(), p) }

// endAll ends the agents, including a wedged one.
func (d *demo) endAll() {
	d.unwedge()
	var group sync.WaitGroup
	for _, c := range d.children {
		group.Go(func() {
			c.End(true)
			d.awaitEnd(c)
		})
	}
	group.Wait()
}

// awaitEnd waits until the process of an agent is gone, and kills it if it stays.
func (d *demo) awaitEnd(c *child.Child) {
	const patience = 5 * time.Second
	pid := c.PID()
	for deadline := time.Now().Add(patience); proc.Running(pid) && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	if proc.Running(pid) {
		proc.Kill(pid)
		fmt.Fprintf(d.o.Err, "Agent %s did not end and was killed (pid %d).\n", c.Name, pid)
	}
}
