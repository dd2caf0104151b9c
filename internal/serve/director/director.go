// Package director runs a director: its store, queues, dispatchers, tools, scheduler and
// HTTP API, from start through drain to stop.
package director

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"os/signal"
	"syscall"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/dashboard"
	"github.com/signalbox-ai/signalbox/internal/doctor"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/execution/pull"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
	"github.com/signalbox-ai/signalbox/internal/gateway/queuetools"
	"github.com/signalbox-ai/signalbox/internal/giveback"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/landing"
	"github.com/signalbox-ai/signalbox/internal/lifecycle"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/roles"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/serve/hook"
	"github.com/signalbox-ai/signalbox/internal/serve/tools"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
	"github.com/signalbox-ai/signalbox/internal/tickets"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Director is a director with all its parts.
type Director struct {
	Config   config.Config
	Log      *slog.Logger
	Out      roles.Streams
	URL      string // URL from this host
	Store    store.Store
	Engine   *engine.Engine
	Identity *identity.Keeper

	version  string
	listener net.Listener
	cluster  *cluster // nil: the director has its store alone
	push     *push.Dispatcher
	pull     *pull.Lanes
	tools    *tools.Tools
	jobs     *jobs
	landings *landing.Driver
	api      *httpapi.Server
	opened   lifecycle.Group
}

// Run runs a director until ctx ends.
func Run(ctx context.Context, p serve.Program, cfg config.Config, o roles.Director) error {
	proc.KeepPrivate()
	d, err := Open(ctx, p, cfg, config.Home(os.LookupEnv), o.Streams)
	if err != nil {
		return serve.UnlessStopped(ctx, err)
	}
	defer d.Close()
	err = d.Run(ctx, func(context.Context) error {
		fmt.Fprintf(o.Out, "Signalbox director at %s (data %s)\n", d.URL, cfg.Data)
		d.DescribeAccess()
		d.DescribeTools()
		return nil
	})
	return serve.UnlessStopped(ctx, err)
}

// Open builds a director and starts to listen; Run serves. After an error nothing
// stays open. If the configuration has no token, Open uses the one in the folder home.
func Open(ctx context.Context, p serve.Program, cfg config.Config, home string, out roles.Streams) (_ *Director, err error) {
	log, err := serve.NewLogger(out.Err, cfg)
	if err != nil {
		return nil, err
	}
	if err := serve.StaticToken(&cfg, log); err != nil {
		return nil, err
	}
	if err := serve.OwnerToken(&cfg, home); err != nil {
		return nil, err
	}
	d := &Director{Config: cfg, Log: log, Out: out, version: p.Version}
	d.opened.Defer(giveback.Start().Stop)
	if err := d.open(ctx, p); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Director) open(ctx context.Context, p serve.Program) (err error) {
	if err = os.MkdirAll(d.Config.Data, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if d.listener, err = serve.ListenUntil(ctx, &d.opened, d.Config.Addr); err != nil {
		return err
	}
	d.listener, d.URL = hook.Director(d.listener), serve.URL(d.listener)
	if d.Store, err = p.OpenStore(ctx, d.Config, d.Log); err != nil {
		return err
	}
	var lock *os.File // nil: the lock of the store's file is enough
	d.opened.Close("store", func() error {
		defer lock.Close() //nolint:errcheck // it may be nil
		return d.Store.Close()
	})
	shared, several := d.Store.(store.Shared)
	if several {
		if lock, err = lockData(d.Config.Data); err != nil {
			return err
		}
	}
	noteOlderQueues(ctx, d.Config, d.Store, d.Log)
	sealer, err := seal.Load(d.Config.Data, os.Getenv(seal.EnvKey))
	if err != nil {
		return err
	}
	if several {
		if d.cluster, err = d.newCluster(ctx, shared, sealer); err != nil {
			return err
		}
	}
	return d.assemble(ctx, sealer)
}

// assemble builds the parts above the store, in the order of their dependencies.
func (d *Director) assemble(ctx context.Context, sealer *seal.Sealer) (err error) {
	cfg, q := &d.Config, d.Config.Queue
	timed := telemetry.TimeStore(d.Store)
	var now func() time.Time    // nil: the engine's own clock
	var holds func(string) bool // reports whether it dispatches to an agent; nil: to all
	var generation func() int64 // generation of the store; nil: it has only one
	if c := d.cluster; c != nil {
		now, holds, generation = c.clock.Now, c.peers.Holds, c.store.Generation
	}
	d.Engine = engine.New(timed, engine.Options{
		MaxSize: q.MaxSize, MaxAttempts: q.MaxAttempts, AgeStep: q.AgeStep, ExecutionTTL: cfg.ExecutionTTL,
		MaxChats: q.ChatMaxSize, WaitTimeout: q.WaitTimeout, OnLost: q.OnLost, Fleet: q.Fleet, SourcePriority: cfg.Priorities, Reserve: reserves(cfg.Accounts), Budgets: cfg.Budgets, Resources: cfg.Resources,
		BypassSlots: cfg.Bypass.Slots, BypassFleet: cfg.Bypass.Fleet, MaxCommands: cfg.Commands.MaxWaiting,
		SubmitTasks: q.SubmitTasks, SubmitBytes: q.SubmitBytes,
		Sealer: sealer, Now: now, Log: d.Log,
	})
	telemetry.LogTasks(d.Engine, d.Log)
	metrics := telemetry.NewMetrics(d.Engine)
	metrics.Store(timed)
	otel := serve.StartOTel(ctx, &d.opened, d.Log, telemetry.OTelOptions{Gatherer: metrics.Gatherer(), Version: d.version})
	traces := otel.Tasks(d.Engine)
	both := execution.Options{
		Holds: holds, SessionGrace: cfg.SessionGrace, StallLimit: cfg.StallLimit, RunGrace: cfg.RunGrace,
		Traces: traces, Backstop: &execution.Backstop{}, Log: d.Log,
	}
	d.push = push.New(d.Engine, push.Options{
		Options: both, DispatchTimeout: q.DispatchTimeout, Keep: serve.Keep(&q), Transport: hook.Transport(),
		Relisted: d.cluster.relisted, Generation: generation,
	})
	d.pull = pull.New(d.Engine, pull.Options{Options: both})
	d.Identity, err = identity.New(ctx, d.Store, identity.Options{Static: cfg.Token, Shared: d.cluster != nil, Now: d.Engine.Now, Log: d.Log})
	if err != nil {
		return err
	}
	o := tools.Options{
		Version: d.version, Engine: d.Engine, Metrics: metrics, Traces: otel.Traces(), Trace: traces.Context, Queue: queuetools.New(), Log: d.Log,
		Instance: d.instance(),
	}
	c := httpapi.Config{
		Engine: d.Engine, Runs: d.push, Pull: d.pull, Identity: d.Identity, Terminal: cfg.Terminal, Hosts: cfg.Hosts,
		Addr: d.listener.Addr().String(), Version: d.version, Log: d.Log, Metrics: metrics, Traces: traces, AgentName: cfg.Commands.AgentName,
		Pages: dashboard.New(),
	}
	if cluster := d.cluster; cluster != nil {
		o.Peers, o.Share = cluster.peers, &toolqueue.Sharing{Backend: tickets.New(timed, cluster.clock.Now), Owner: o.Instance}
		c.Peers = cluster.peers
	}
	if d.tools, err = tools.New(*cfg, o); err != nil {
		return err
	}
	d.opened.Close("tools", d.tools.Close)
	if d.jobs, err = newJobs(cfg, d.Engine, metrics, d.tools.Reload, d.Log); err != nil {
		return err
	}
	d.tools.Into(&c)
	d.jobs.into(&c)
	d.landings = landing.New(timed, d.Engine, cfg.LandingRounds, d.Log)
	c.Landings = d.landings
	c.Doctor = d.looks()
	if d.api, err = httpapi.New(c); err != nil {
		return err
	}
	metrics.Readers(d.api)
	return nil
}

// started is when this process started, for the check of the clock.
var started = time.Now()

// looks returns doctor's checks of things other than the director itself.
func (d *Director) looks() []httpapi.DoctorCheck {
	fleet := doctor.Fleet{Agents: d.Store.Agents, Token: d.Engine.AgentToken, Version: d.version}
	looks := []httpapi.DoctorCheck{
		doctor.Data(dataFolder(d.Config)), doctor.Host(started), doctor.Store(d.Store, d.Engine.Now), doctor.Agents(fleet),
	}
	return append(looks, d.tools.Looks()...)
}

// Close closes what Open opened. Call it only after Run has returned.
func (d *Director) Close() { serve.Stop(&d.opened, d.Log) }

// Addr is the address on which the director listens.
func (d *Director) Addr() net.Addr { return d.listener.Addr() }

// LoginLink returns a link that logs the owner in to the dashboard once.
func (d *Director) LoginLink() (string, error) { return d.api.LoginLink(d.URL) }

// DescribeAccess prints how the owner logs in to the dashboard, or what it means that the
// director is open.
func (d *Director) DescribeAccess() {
	if d.Identity.Open() {
		fmt.Fprintln(d.Out.Out, "The director is open (--open): every user and every program of this host may run tasks here, as you.")
		return
	}
	link, err := d.LoginLink()
	if err != nil {
		return // the owner has no token: people log in with a password
	}
	fmt.Fprintf(d.Out.Out, "Log in to the dashboard within %d minutes, once: %s\n(signalbox login-link makes another link.)\n", identity.LinkFor/time.Minute, link)
}

// DescribeTools prints which tools there are.
func (d *Director) DescribeTools() {
	tools.Describe(d.Out.Out, d.Config.Tools, d.URL, serve.BridgeCommand, d.Identity.Open())
}

// reserves returns the share of each account that the configuration reserves for people.
func reserves(of map[string]config.Account) map[string]accounts.Reserve {
	all := make(map[string]accounts.Reserve, len(of))
	for name, a := range of {
		all[name] = accounts.Reserve{Schedules: float64(a.ReserveSchedules), Agents: float64(a.ReserveAgents)}
	}
	return all
}

// putConfigured registers an agent of the configuration. Settings that are not configured
// come from the agent's status.
func (d *Director) putConfigured(ctx context.Context, a config.RemoteAgent) error {
	_, err := d.Engine.PutAgent(ctx, signalbox.Agent{
		Name: a.Name, Kind: cmp.Or(a.Kind, signalbox.KindUnknown), URL: a.URL, Slots: a.Slots, Proof: a.Proof, Source: signalbox.AgentFromConfig, Account: a.Account,
	}, a.Token)
	if err != nil {
		return fmt.Errorf("agents: %s: %w", a.Name, err)
	}
	return nil
}

// Run serves until ctx ends, then drains: it claims no more tasks and waits for running
// ones. Then it leaves them to their agents, or stops them, as configured. A second signal
// ends the wait. Run calls ready when it serves.
func (d *Director) Run(ctx context.Context, ready func(ctx context.Context) error) error {
	if err := d.joinCluster(ctx); err != nil { // first, because another director may run the same tasks
		return err
	}
	for _, a := range d.Config.Agents {
		if err := d.putConfigured(ctx, a); err != nil {
			return err
		}
	}
	if err := d.tools.Start(ctx); err != nil { // before the agents, whose runs call tools
		return err
	}
	var running lifecycle.Group
	defer serve.Stop(&running, d.Log)
	if err := running.Start(ctx, d.push, d.pull); err != nil {
		return err
	}
	d.cluster.relisted()
	if err := running.Start(ctx, d.jobs); err != nil {
		return err
	}
	running.Go(ctx, d.landings.Run)
	if ports := d.Config.Discover; ports != (config.PortRange{}) {
		running.Go(ctx, func(ctx context.Context) { d.push.Discover(ctx, push.Ports{First: ports.First, Last: ports.Last}) })
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	served := make(chan error, 1)
	go func() { served <- d.api.Serve(serving, d.listener) }()
	if err := serve.Announce(d.Config, d.URL); err != nil {
		d.Log.Warn("the command line will not find this director by itself", "error", err)
	}
	defer serve.Withdraw(d.URL)
	info := d.Store.Info()
	d.Log.Info("director ready", "url", d.URL, "data", d.Config.Data, "store", info.Kind, "durability", info.Durability, "open", d.Identity.Open())
	if err := ready(ctx); err != nil {
		stop()
		return errors.Join(err, <-served)
	}
	select {
	case err := <-served:
		return err
	case err := <-d.cluster.superseded():
		stop()
		return errors.Join(err, <-served)
	case <-ctx.Done():
	}
	d.drain(ctx)
	stop()
	return <-served
}

// drain waits until running tasks have ended, at most for the grace period.
func (d *Director) drain(ctx context.Context) {
	d.api.SetDraining(true)
	d.pull.Drain()
	d.push.StopClaiming() // before the log says so
	impatient, done := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer done()
	grace, cancel := context.WithTimeout(impatient, d.Config.Grace)
	defer cancel()
	d.Log.Info("stopping: no new claims", "grace", d.Config.Grace)
	var group sync.WaitGroup
	group.Go(func() { d.tools.Tasks.Drain(grace) }) // Close ends the rest, by the restart policies of the tools
	group.Go(func() {
		if d.Config.OnShutdown != "stop" {
			d.cluster.handOver(grace)
		}
	})
	left := d.push.Drain(grace)
	group.Wait()
	if left > 0 && d.Config.OnShutdown == "stop" {
		d.push.CancelRunning(impatient, "the director's shutdown")
		ending, cancel := context.WithTimeout(impatient, 10*time.Second)
		defer cancel()
		left = d.push.Drain(ending)
	}
	if left > 0 {
		d.Log.Warn("tasks are left to their agents; the next director takes them over", "tasks", left)
	}
}
