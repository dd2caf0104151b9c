package httpapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway/queuetools"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/live"
	"github.com/signalbox-ai/signalbox/internal/httpapi/schedules"
	"github.com/signalbox-ai/signalbox/internal/httpapi/stream"
	"github.com/signalbox-ai/signalbox/internal/httpapi/terminal"
	"github.com/signalbox-ai/signalbox/internal/httpguard"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// Metrics counts requests; *telemetry.Metrics implements it. As a handler it answers
// GET /metrics.
type Metrics interface {
	http.Handler
	// Request counts an answered request. route is a name in the route table, or "" for
	// none. took is less than 0 for streams and long polls, whose duration has no
	// meaning.
	Request(route string, status int, took time.Duration)
	// Refused counts a submit that was not accepted.
	Refused(code signalbox.Code)
}

// Config has the dependencies of a Server.
type Config struct {
	Engine *engine.Engine // required
	Runs   Runs           // nil: nothing is dispatched
	Pull   Pull           // nil: no agent can pull
	// Identity authenticates callers. nil: there is only the static Token, if any, and
	// no logins and other tokens.
	Identity *identity.Keeper
	// Token is the static bearer token, which has every scope. Identity, if set, must
	// know it.
	Token string
	// Hosts are additional host names of the director, without a port, besides loopback
	// names and the host of Addr.
	Hosts []string
	// Terminal lets the director open terminals of agents that offer them.
	Terminal bool
	// Tools are the tools behind the gateway, and MCP is the MCP server for them; nil:
	// there are no tools.
	Tools Tools
	MCP   http.Handler
	// ToolTasks runs tool calls as tasks; nil: no call can be a task.
	ToolTasks ToolTasks
	// AgentName is metadata.agent in the answer to a call that became a task
	// (AGENT_NAME); "": the tool's name.
	AgentName string
	// QueueTools is the provider of tools for the queue itself, if the gateway behind
	// Tools has it; nil: it does not.
	QueueTools *queuetools.Tools
	// Landings lands the work of tasks; nil: work cannot land.
	Landings Landings
	// Doctor are additional checks of GET /api/doctor.
	Doctor []DoctorCheck
	// Schedules is the scheduler; nil: there is none, and its routes answer 404.
	Schedules schedules.Scheduler
	// Pages is the dashboard; nil: there is none. It sets all headers of its answers,
	// and gets only GET and HEAD requests for /ui/.
	Pages http.Handler
	// ToolsOnly leaves out all routes that are not about tools.
	ToolsOnly bool
	// Addr is the address it listens on, HOST:PORT; "" in tests.
	Addr    string
	Version string
	// LiveIdle is the interval at which the live view is refreshed without readers; 0:
	// 10 s.
	LiveIdle time.Duration
	Log      *slog.Logger
	Metrics  Metrics
	Traces   Traces // nil: only the callers' traces are used
	// Peers are the directors that share the store; nil: this is the only one.
	Peers forward.Peers
}

// Server serves the HTTP API. New makes one.
type Server struct {
	cfg    Config
	engine *engine.Engine
	runs   Runs
	log    *slog.Logger
	hosts  httpguard.Hosts
	cross  *http.CrossOriginProtection

	identity   *identity.Keeper
	gate       *access.Gate
	audit      *access.AuditLog
	terminals  *terminal.Terminals
	feed       *stream.Feed
	projection *live.Projection
	handlers   *handlers
	handler    http.Handler // the whole API

	started  time.Time
	draining atomic.Bool
	streams  httpio.Streams
	life     context.Context // its end ends open streams and long polls
	end      context.CancelFunc
}

// cancelWait is how long a cancel of a running task waits for the agent's confirmation
// before it answers 202 (design §2).
const cancelWait = 5 * time.Second

// OpenStreams returns the number of open streams: of events, of the live view and of calls.
func (d *Server) OpenStreams() int { return d.streams.Count() }

// LiveReaders returns the number of open streams of the live view.
func (d *Server) LiveReaders() int { return d.projection.Readers() }

// Terminals returns the terminals of the agents.
func (d *Server) Terminals() *terminal.Terminals { return d.terminals }

// LoginLink returns a link that logs the owner in at url, once.
func (d *Server) LoginLink(url string) (string, error) { return d.handlers.logins.Link(url) }

// LiveDirectors returns the number of living directors, including this one.
func (d *Server) LiveDirectors() int { return d.handlers.directors.living() }

// Live returns the live view.
func (d *Server) Live() *live.Projection { return d.projection }

// New returns a Server with the mounted route table. It fails if a route has no handler,
// or if Addr is public and there is no token.
func New(cfg Config) (*Server, error) {
	if cfg.Engine == nil {
		return nil, errors.New("httpapi: Config.Engine is required")
	}
	if cfg.ToolsOnly && cfg.QueueTools != nil {
		return nil, errors.New("httpapi: a standalone gateway has no queue: leave out Config.QueueTools")
	}
	if cfg.Identity == nil {
		var err error
		if cfg.Identity, err = identity.New(context.Background(), nil, identity.Options{Static: cfg.Token}); err != nil {
			return nil, err
		}
	}
	if cfg.Token != "" && !cfg.Identity.Static() {
		return nil, errors.New("httpapi: Config.Identity must know Config.Token, or no request would need it")
	}
	if cfg.Addr != "" {
		if err := CheckListen(cfg.Addr, cfg.Identity); err != nil {
			return nil, err
		}
	}
	if cfg.Runs == nil {
		cfg.Runs = noRuns{}
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Metrics == nil {
		cfg.Metrics = noMetrics{}
	}
	d := &Server{
		cfg: cfg, engine: cfg.Engine, runs: allRuns{cfg.Runs, cfg.Pull, cfg.ToolTasks}, log: cfg.Log,
		hosts: hostsOf(cfg.Addr, append(forward.OwnHost(cfg.Peers), cfg.Hosts...)), cross: http.NewCrossOriginProtection(),
		identity: cfg.Identity, audit: access.NewAuditLog(cfg.Engine, cfg.Log), feed: stream.NewFeed(cfg.Engine, cfg.Log), started: cfg.Engine.Now(),
	}
	d.life, d.end = context.WithCancel(context.Background())
	d.gate = access.NewGate(d.life, cfg.Identity, cfg.Engine)
	d.terminals = terminal.New(terminal.Config{
		Enabled: cfg.Terminal, Engine: cfg.Engine, Identity: cfg.Identity, Audit: d.audit.WriteAs, Log: cfg.Log, Life: d.life,
		Login: func(r *http.Request) string { return cfg.Identity.NamedBy(access.Cookie(r, access.LoginCookie)) },
		Hold: func(ctx context.Context, who signalbox.Principal, end func()) func() {
			d.gate.UntilExpiry(ctx, who, end)
			return d.gate.OnRevoked(who, end)
		},
	})
	d.projection = live.New(live.Config{
		Engine: cfg.Engine, Tools: cfg.Tools, Schedules: cfg.Schedules, HeartbeatInterval: d.runs.HeartbeatInterval, Terminals: d.terminals.Of,
		Streams: &d.streams, Log: cfg.Log, Life: d.life, IdleRefresh: cfg.LiveIdle,
	})
	d.handlers = d.newHandlers()
	mux, err := d.mount()
	if err != nil {
		return nil, err
	}
	d.handler = d.middleware(mux)
	if cfg.QueueTools != nil {
		cfg.QueueTools.Bind(queuetools.Director{Handler: d.handler, ImportedID: func(ctx context.Context, id string) (string, error) { return access.ImportedID(ctx, cfg.Engine, id) }, Engine: cfg.Engine, ToolTasks: cfg.ToolTasks != nil, Log: cfg.Log})
	}
	return d, nil
}

// Handler serves the whole API. A caller that does not use Serve must call Stop before it
// shuts down its server, which otherwise waits for open streams.
func (d *Server) Handler() http.Handler { return d.handler }

// SetDraining says that no new claims are made because the director is about to stop.
// Submits are still stored, because they are durable. GET /readyz answers 503, so that a
// load balancer uses another director.
func (d *Server) SetDraining(on bool) { d.draining.Store(on) }

// Stop ends open streams and long polls cleanly, so that clients reconnect.
func (d *Server) Stop() { d.end() }

// WaitTerminals waits until no terminal is served any more, at most 10 s.
func (d *Server) WaitTerminals() { d.terminals.Wait(shutdownTimeout) }

type noMetrics struct{}

func (noMetrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
func (noMetrics) Request(string, int, time.Duration)               {}
func (noMetrics) Refused(signalbox.Code)                           {}

// Limits of a connection. There is no limit for a whole answer, because long polls and
// streams take long; each of their writes has a limit (httpio.WriteTimeout).
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	shutdownTimeout   = 10 * time.Second // for answers in progress, after streams have ended
)

// Serve serves requests on l until ctx ends. Then it ends open streams and long polls
// cleanly, finishes answers in progress, and returns nil. Without a token it refuses a
// listener that is not on loopback.
func (d *Server) Serve(ctx context.Context, l net.Listener) error {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		if err := CheckListen(tcp.String(), d.identity); err != nil {
			return err
		}
	}
	switch {
	case d.identity.Open() && d.cfg.ToolsOnly: // a gateway's only token is in its configuration
		d.log.Warn("this gateway is open: every program of this host may call its tools",
			"close", "start it with --token-file FILE")
	case d.identity.Open():
		d.log.Warn("this director is open: every program of this host has every right",
			"close", "start it without --open")
	}
	srv := &http.Server{
		Handler:           d.handler,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		d.Stop()
		return err
	case <-ctx.Done():
	}
	d.SetDraining(true)
	d.Stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := srv.Shutdown(grace)
	if err != nil {
		err = errors.Join(err, srv.Close())
	}
	<-failed //nolint:errcheck // the server was shut down
	d.WaitTerminals()
	return err
}

// CheckListen refuses an address that others can reach, unless a token or an admin's
// password protects the director: everybody who can reach an open director can run
// prompts on its agents.
func CheckListen(addr string, id *identity.Keeper) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return signalbox.Invalid("addr", "%q is not an address to listen on: want HOST:PORT, such as 127.0.0.1:8080", addr)
	}
	if isLoopback(host) {
		return nil
	}
	const cure = "set one of 16 characters or more (--token-file or SIGNALBOX_TOKEN; openssl rand -hex 32 makes one), or listen on "
	switch {
	case id.Open():
		return signalbox.Invalid("token", "will not listen on %s without a token, because everybody who can reach it could run tasks and tools: %s127.0.0.1:%s (a director: and make an admin there first)", addr, cure, port)
	case id.Static() && id.ShortStatic():
		return signalbox.Invalid("token", "will not listen on %s with a token that is short enough to be guessed: %s127.0.0.1:%s", addr, cure, port)
	}
	return nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
