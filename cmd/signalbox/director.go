package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/dashboard"
	"github.com/signalbox-ai/signalbox/internal/director"
	"github.com/signalbox-ai/signalbox/internal/dispatch"
	"github.com/signalbox-ai/signalbox/internal/doctor"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// gcPercent is the director's GOGC unless the environment has one.
const gcPercent = 400

// service is a director with all its parts.
type service struct {
	cfg      config.Config
	log      *slog.Logger
	out      streams
	listener net.Listener
	store    store.Store
	engine   *engine.Engine
	identity *identity.Keeper
	dispatch *dispatch.Dispatcher
	tools    *toolbox
	jobs     *schedules
	otel     *telemetry.OTel
	director *director.Director
	url      string
}

// openService opens the parts in the order in which one needs the other; the
// first that fails says why, and what was opened is closed again.
func openService(ctx context.Context, cfg config.Config, out streams) (s *service, err error) {
	if os.Getenv("GOGC") == "" {
		// The heap is small and most of it short-lived: collecting a quarter
		// as often gives the writer a twentieth to a tenth more (bench/store).
		debug.SetGCPercent(gcPercent)
	}
	log, err := newLogger(out.Err, cfg)
	if err != nil {
		return nil, err
	}
	if err := staticToken(&cfg, log); err != nil {
		return nil, err
	}
	s = &service{cfg: cfg, log: log, out: out}
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
	if s.store, err = openStore(ctx, cfg, log); err != nil {
		return s, err
	}
	sealer, err := seal.Load(cfg.Data, os.Getenv(seal.EnvKey))
	if err != nil {
		return s, err
	}
	s.url = "http://" + reachable(s.listener.Addr())
	return s, s.assemble(ctx, sealer)
}

func (s *service) assemble(ctx context.Context, sealer *seal.Sealer) (err error) {
	q := s.cfg.Queue
	timed := telemetry.TimeStore(s.store)
	s.engine = engine.New(timed, engine.Options{
		MaxSize: q.MaxSize, MaxAttempts: q.MaxAttempts, AgeStep: q.AgeStep, ExecutionTTL: s.cfg.ExecutionTTL,
		MaxChats: q.ChatMaxSize, WaitTimeout: q.WaitTimeout, Fleet: q.Fleet, SourcePriority: s.cfg.Priorities,
		BypassSlots: s.cfg.Bypass.Slots, BypassFleet: s.cfg.Bypass.Fleet, MaxCommands: s.cfg.Commands.MaxWaiting,
		Sealer: sealer, Log: s.log,
	})
	metrics := telemetry.NewMetrics(s.engine)
	metrics.Store(timed)
	s.otel = startOTel(ctx, metrics, s.log)
	traces := s.otel.Tasks(s.engine)
	s.dispatch = dispatch.New(s.engine, dispatch.Options{
		DispatchTimeout: q.DispatchTimeout, SessionGrace: s.cfg.SessionGrace, Retention: q.Retention, Log: s.log,
		StallLimit: s.cfg.StallLimit, RunGrace: s.cfg.RunGrace, Traces: traces,
	})
	s.identity, err = identity.New(ctx, s.store, identity.Options{Static: s.cfg.Token, Now: s.engine.Now, Log: s.log})
	if err != nil {
		return err
	}
	s.tools, err = newToolbox(s.cfg, parts{
		engine: s.engine, metrics: metrics, traces: s.otel.Traces(), trace: traces.Context, queue: director.NewQueueTools(), log: s.log,
	})
	if err != nil {
		return err
	}
	c := director.Config{
		Engine: s.engine, Runs: s.dispatch, Identity: s.identity, Terminal: s.cfg.Terminal, Hosts: s.cfg.Hosts,
		Addr: s.listener.Addr().String(), Version: version, Log: s.log, Metrics: metrics, Traces: traces, AgentName: s.cfg.Commands.AgentName,
		Doctor: s.looks(), Pages: dashboard.New(),
	}
	if s.jobs, err = newSchedules(&s.cfg, s.engine, metrics, s.log); err != nil {
		return err
	}
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
	looks := []director.DoctorCheck{doctor.Data(s.cfg.Data, seal.KeyFile, seal.EnvKey), doctor.Store(s.store)}
	return append(looks, s.tools.looks()...)
}

// run serves until ctx ends, then drains: no new claims, a wait for what
// runs, then it is left to its agents, or stopped, as configured. A second
// signal cuts the wait short.
func (s *service) run(ctx context.Context, ready func(ctx context.Context) error) error {
	for _, a := range s.cfg.Agents {
		if err := s.putConfigured(ctx, a); err != nil {
			return err
		}
	}
	if err := s.tools.start(ctx); err != nil { // before the agents, whose runs call them
		return err
	}
	if err := s.dispatch.Start(ctx); err != nil {
		return err
	}
	defer s.dispatch.Stop()
	if err := s.jobs.start(ctx); err != nil {
		return err
	}
	defer s.jobs.close()
	if s.cfg.Discover != (config.PortRange{}) {
		go s.dispatch.Discover(ctx, dispatch.Ports{First: s.cfg.Discover.First, Last: s.cfg.Discover.Last})
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
	case <-ctx.Done():
	}
	s.drain(ctx)
	stop()
	return <-served
}

// drain lets what runs come to its end, for as long as the grace lasts.
func (s *service) drain(ctx context.Context) {
	s.director.SetDraining(true)
	impatient, done := again(context.WithoutCancel(ctx))
	defer done()
	grace, cancel := context.WithTimeout(impatient, s.cfg.Grace)
	defer cancel()
	s.log.Info("stopping: no new claims", "grace", s.cfg.Grace)
	var group sync.WaitGroup
	group.Go(func() { s.tools.tasks.Drain(grace) }) // what is left of it is ended with the process, by its tools' restart policy
	left := s.dispatch.Drain(grace)
	group.Wait()
	if left > 0 && s.cfg.OnShutdown == "stop" {
		s.dispatch.CancelRunning(impatient, "the director's shutdown")
		ending, cancel := context.WithTimeout(impatient, 10*time.Second)
		defer cancel()
		left = s.dispatch.Drain(ending)
	}
	if left > 0 {
		s.log.Warn("tasks are left to their agents; the next director takes them up", "tasks", left)
	}
}

func (s *service) close() {
	s.tools.close()
	if s.otel != nil {
		if err := s.otel.Close(); err != nil {
			s.log.Warn("what OpenTelemetry had left was not sent", "error", err)
		}
	}
	if s.listener != nil {
		_ = s.listener.Close() // serving has closed it already, unless it was not reached
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.log.Error("store not closed", "error", err)
		}
	}
}

// putConfigured makes an agent of the configuration known. What it does not
// say of itself here is learnt from its status.
func (s *service) putConfigured(ctx context.Context, a config.RemoteAgent) error {
	kind := a.Kind
	if kind == "" {
		kind = signalbox.KindUnknown
	}
	_, err := s.engine.PutAgent(ctx, signalbox.Agent{
		Name: a.Name, Kind: kind, URL: a.URL, Slots: a.Slots, Source: signalbox.AgentFromConfig,
	}, a.Token)
	if err != nil {
		return fmt.Errorf("agents: %s: %w", a.Name, err)
	}
	return nil
}

// listen opens the address; when it is taken, the error says by whom as far
// as that can be told, and which flag helps.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err == nil {
		return l, nil
	}
	if !isAddrInUse(err) {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	holder := "another program"
	if f, ok := readDirectorFile(); ok && sameAddr(f, addr) {
		holder = fmt.Sprintf("a director with data folder %s (pid %d)", f.Data, f.PID)
	}
	return nil, fmt.Errorf("%s is taken by %s: stop it, or choose another address with --addr, such as --addr 127.0.0.1:0 for any free port", addr, holder)
}

func sameAddr(f api.DirectorFile, addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	return err == nil && hasSuffixPort(f.URL, port)
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
	s, err := openService(ctx, cfg, streams(o))
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer s.close()
	err = s.run(ctx, func(context.Context) error {
		fmt.Fprintf(o.Out, "Signalbox director at %s (data %s)\n", s.url, cfg.Data)
		describeTools(s.out, cfg.Tools, s.url, s.identity.Open())
		return nil
	})
	return unlessStopped(ctx, err)
}

var errSecondSignal = errors.New("second signal")
