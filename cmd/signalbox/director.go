package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/dashboard"
	"github.com/signalbox-ai/signalbox/internal/director"
	"github.com/signalbox-ai/signalbox/internal/doctor"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/execution/pull"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
	"github.com/signalbox-ai/signalbox/internal/giveback"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
	"github.com/signalbox-ai/signalbox/internal/tickets"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// service is a director with all its parts.
type service struct {
	cfg      config.Config
	log      *slog.Logger
	out      streams
	memory   *giveback.Keeper
	listener net.Listener
	store    store.Store
	folder   *dataLock // nil: the store's file is lock enough
	others   *company  // nil: the store is this director's alone
	engine   *engine.Engine
	identity *identity.Keeper
	push     *push.Dispatcher
	pull     *pull.Lanes
	tools    *toolbox
	jobs     *schedules
	otel     *telemetry.OTel
	director *director.Director
	url      string
}

// openService opens the parts in the order in which one needs the other; the
// first that fails says why, and what was opened is closed again. home is the
// folder in which the token of a director that is given none is kept.
func openService(ctx context.Context, cfg config.Config, home string, out streams) (s *service, err error) {
	log, err := newLogger(out.Err, cfg)
	if err != nil {
		return nil, err
	}
	if err := staticToken(&cfg, log); err != nil {
		return nil, err
	}
	if err := ownerToken(&cfg, home); err != nil {
		return nil, err
	}
	s = &service{cfg: cfg, log: log, out: out, memory: giveback.Start()}
	defer func() {
		if err != nil {
			s.close()
			s = nil
		}
	}()
	if err = os.MkdirAll(cfg.Data, 0o700); err != nil {
		return s, fmt.Errorf("data folder: %w", err)
	}
	if s.listener, err = listen(ctx, cfg.Addr); err != nil {
		return s, err
	}
	s.listener = hookDirector(s.listener)
	if s.store, err = openStore(ctx, cfg, log); err != nil {
		return s, err
	}
	if _, shared := s.store.(store.Shared); shared {
		if s.folder, err = lockData(cfg.Data); err != nil {
			return s, err
		}
	}
	noteOlderQueues(ctx, cfg, s.store, log)
	sealer, err := seal.Load(cfg.Data, os.Getenv(seal.EnvKey))
	if err != nil {
		return s, err
	}
	s.url = "http://" + reachable(s.listener.Addr())
	if err = s.meet(ctx, sealer); err != nil {
		return s, err
	}
	return s, s.assemble(ctx, sealer)
}

// keep is what the configuration says of ended tasks.
func keep(q *config.Queue) engine.Keep {
	return engine.Keep{For: q.Retention, Bytes: int64(q.RetentionBytes), OwnerBytes: int64(q.CallerRetentionBytes)}
}

func (s *service) assemble(ctx context.Context, sealer *seal.Sealer) (err error) {
	q := s.cfg.Queue
	timed := telemetry.TimeStore(s.store)
	var now func() time.Time    // that the director goes by; nil: its own
	var holds func(string) bool // the agents that it dispatches to; nil: all
	var generation func() int64 // of the store; nil: it has but one
	if c := s.others; c != nil {
		now, holds, generation = c.clock.Now, c.peers.Holds, c.store.Generation
	}
	s.engine = engine.New(timed, engine.Options{
		MaxSize: q.MaxSize, MaxAttempts: q.MaxAttempts, AgeStep: q.AgeStep, ExecutionTTL: s.cfg.ExecutionTTL,
		MaxChats: q.ChatMaxSize, WaitTimeout: q.WaitTimeout, OnLost: q.OnLost, Fleet: q.Fleet, SourcePriority: s.cfg.Priorities,
		BypassSlots: s.cfg.Bypass.Slots, BypassFleet: s.cfg.Bypass.Fleet, MaxCommands: s.cfg.Commands.MaxWaiting,
		SubmitTasks: q.SubmitTasks, SubmitBytes: q.SubmitBytes,
		Sealer: sealer, Now: now, Log: s.log,
	})
	metrics := telemetry.NewMetrics(s.engine)
	metrics.Store(timed)
	s.otel = startOTel(ctx, metrics, s.log)
	traces := s.otel.Tasks(s.engine)
	both := execution.Options{
		Holds: holds, SessionGrace: s.cfg.SessionGrace, StallLimit: s.cfg.StallLimit, RunGrace: s.cfg.RunGrace,
		Traces: traces, Backstop: &execution.Backstop{}, Log: s.log,
	}
	s.push = push.New(s.engine, push.Options{
		Options: both, DispatchTimeout: q.DispatchTimeout, Keep: keep(&q), Transport: hookTransport(),
		Relisted: s.others.relisted, Generation: generation,
	})
	s.pull = pull.New(s.engine, pull.Options{Options: both})
	s.identity, err = identity.New(ctx, s.store, identity.Options{Static: s.cfg.Token, Shared: s.others != nil, Now: s.engine.Now, Log: s.log})
	if err != nil {
		return err
	}
	p := parts{
		engine: s.engine, metrics: metrics, traces: s.otel.Traces(), trace: traces.Context, queue: director.NewQueueTools(), log: s.log,
		instance: s.instance(),
	}
	if c := s.others; c != nil {
		p.peers, p.share = c.peers, &toolqueue.Sharing{Far: tickets.New(timed, c.clock.Now), Owner: p.instance}
	}
	s.tools, err = newToolbox(s.cfg, p)
	if err != nil {
		return err
	}
	c := director.Config{
		Engine: s.engine, Runs: s.push, Pull: s.pull, Identity: s.identity, Terminal: s.cfg.Terminal, Hosts: s.cfg.Hosts,
		Addr: s.listener.Addr().String(), Version: version, Log: s.log, Metrics: metrics, Traces: traces, AgentName: s.cfg.Commands.AgentName,
		Doctor: s.looks(), Pages: dashboard.New(),
	}
	if s.others != nil {
		c.Peers = s.others.peers
	}
	if s.jobs, err = newSchedules(&s.cfg, s.engine, metrics, s.log); err != nil {
		return err
	}
	s.jobs.reread = s.tools.reread
	s.tools.into(&c)
	s.jobs.into(&c)
	if s.director, err = director.New(c); err != nil {
		return err
	}
	metrics.Readers(s.director)
	return nil
}

// looks are what doctor looks at beyond the director itself.
func (s *service) looks() []director.DoctorCheck {
	fleet := doctor.Fleet{Agents: s.store.Agents, Token: s.engine.AgentToken, Version: version}
	looks := []director.DoctorCheck{
		doctor.Data(folderOf(s.cfg)), doctor.Host(started), doctor.Store(s.store, s.engine.Now), doctor.Agents(fleet),
	}
	return append(looks, s.tools.looks()...)
}

func (s *service) close() {
	s.tools.close()
	s.others.leave()
	closeOTel(s.otel, s.log)
	if s.listener != nil {
		_ = s.listener.Close() // serving has closed it already, unless it was not reached
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.log.Error("store not closed", "error", err)
		}
	}
	s.folder.release()
	s.memory.Stop()
}

// putConfigured makes an agent of the configuration known. What it does not
// say of itself here is learnt from its status.
func (s *service) putConfigured(ctx context.Context, a config.RemoteAgent) error {
	kind := cmp.Or(a.Kind, signalbox.KindUnknown)
	_, err := s.engine.PutAgent(ctx, signalbox.Agent{
		Name: a.Name, Kind: kind, URL: a.URL, Slots: a.Slots, Proof: a.Proof, Source: signalbox.AgentFromConfig,
	}, a.Token)
	if err != nil {
		return fmt.Errorf("agents: %s: %w", a.Name, err)
	}
	return nil
}

// streams are where a role writes: results and all else.
type streams struct{ Out, Err io.Writer }

func newLogger(w io.Writer, cfg config.Config) (*slog.Logger, error) {
	level, err := telemetry.ParseLevel(cfg.Log.Level)
	if err != nil {
		return nil, err
	}
	return telemetry.NewLogger(w, cfg.Log.Format, level)
}

// unlessStopped leaves out an error that came of being told to stop.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// runDirector is the director role.
func runDirector(ctx context.Context, cfg config.Config, o cli.DirectorOptions) error {
	proc.KeepPrivate()
	s, err := openService(ctx, cfg, config.Home(os.LookupEnv), streams(o))
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer s.close()
	err = s.run(ctx, func(context.Context) error {
		fmt.Fprintf(o.Out, "Signalbox director at %s (data %s)\n", s.url, cfg.Data)
		s.describeAccess()
		describeTools(s.out, cfg.Tools, s.url, bridgeCommand, s.identity.Open())
		return nil
	})
	return unlessStopped(ctx, err)
}

var errSecondSignal = errors.New("second signal")

// run serves until ctx ends, then drains: no new claims, a wait for what
// runs, then it is left to its agents, or stopped, as configured. A second
// signal cuts the wait short.
func (s *service) run(ctx context.Context, ready func(ctx context.Context) error) error {
	if err := s.enter(ctx); err != nil { // before anything is done that another director could be at
		return err
	}
	for _, a := range s.cfg.Agents {
		if err := s.putConfigured(ctx, a); err != nil {
			return err
		}
	}
	if err := s.tools.start(ctx); err != nil { // before the agents, whose runs call them
		return err
	}
	if err := s.push.Start(ctx); err != nil {
		return err
	}
	defer s.push.Stop()
	if err := s.pull.Start(ctx); err != nil {
		return err
	}
	defer s.pull.Stop()
	s.others.relisted()
	if err := s.jobs.start(ctx); err != nil {
		return err
	}
	defer s.jobs.close()
	if s.cfg.Discover != (config.PortRange{}) {
		go s.push.Discover(ctx, push.Ports{First: s.cfg.Discover.First, Last: s.cfg.Discover.Last})
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	served := make(chan error, 1)
	go func() { served <- s.director.Serve(serving, s.listener) }()
	if err := announce(s.cfg, s.url); err != nil {
		s.log.Warn("the command line will not find this director by itself", "error", err)
	}
	defer withdraw(s.url)
	s.log.Info("director ready", "url", s.url, "data", s.cfg.Data, "store", s.store.Info().Kind, "durability", s.store.Info().Durability, "open", s.identity.Open())
	if err := ready(ctx); err != nil {
		return err
	}
	select {
	case err := <-served:
		return err
	case err := <-s.superseded():
		stop()
		return errors.Join(err, <-served)
	case <-ctx.Done():
	}
	s.drain(ctx)
	stop()
	return <-served
}

// drain lets what runs come to its end, for as long as the grace lasts.
func (s *service) drain(ctx context.Context) {
	s.director.SetDraining(true)
	s.pull.Drain()
	impatient, done := again(context.WithoutCancel(ctx))
	defer done()
	grace, cancel := context.WithTimeout(impatient, s.cfg.Grace)
	defer cancel()
	s.log.Info("stopping: no new claims", "grace", s.cfg.Grace)
	var group sync.WaitGroup
	group.Go(func() { s.tools.tasks.Drain(grace) }) // what is left of it is ended with the process, by its tools' restart policy
	group.Go(func() { s.handOver(grace) })
	left := s.push.Drain(grace)
	group.Wait()
	if left > 0 && s.cfg.OnShutdown == "stop" {
		s.push.CancelRunning(impatient, "the director's shutdown")
		ending, cancel := context.WithTimeout(impatient, 10*time.Second)
		defer cancel()
		left = s.push.Drain(ending)
	}
	if left > 0 {
		s.log.Warn("tasks are left to their agents; the next director takes them up", "tasks", left)
	}
}
