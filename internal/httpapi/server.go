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

// Metrics takes note of requests; *telemetry.Metrics does. As a handler it
// answers GET /metrics.
type Metrics interface {
	http.Handler
	// Request counts an answered request. route is a name of the route
	// table, or "" for none of it. took is less than 0 where the time says
	// nothing: of a stream, or of a long poll.
	Request(route string, status int, took time.Duration)
	// Refused counts a submit that was not accepted.
	Refused(code signalbox.Code)
}

// Config is what a Server is made of.
type Config struct {
	Engine *engine.Engine // required
	Runs   Runs           // nil: nothing is dispatched
	Pull   Pull           // nil: no agent can pull
	// Identity knows who asks. nil: there is the static Token at most, and
	// nobody can log in or be given a token.
	Identity *identity.Keeper
	// Token is the static bearer token, which has every right. Where there is
	// an Identity it must know it.
	Token string
	// Hosts are names under which the director is reached beyond loopback
	// and the host of Addr, without a port.
	Hosts []string
	// Terminal has the director open terminals of agents that offer them.
	Terminal bool
	// Tools are the tools behind the gateway, and MCP is the MCP server with
	// them; nil: there are none.
	Tools Tools
	MCP   http.Handler
	// ToolTasks makes tool calls into tasks; nil: they cannot be.
	ToolTasks ToolTasks
	// AgentName is metadata.agent of the answer to a call that became a task
	// (AGENT_NAME); "" is the tool's name.
	AgentName string
	// QueueTools are the queue itself as tools, which the gateway behind Tools
	// has as one of its providers; nil: it has none.
	QueueTools *queuetools.Tools
	// Landings lands the work of tasks; nil: nothing lands.
	Landings Landings
	// Doctor are more looks that GET /api/doctor takes.
	Doctor []DoctorCheck
	// Schedules is the scheduler; nil: there is none, and its routes answer 404.
	Schedules schedules.Scheduler
	// Pages are the dashboard; nil: there is none. It sets the headers of its
	// answers itself, and sees only GET and HEAD of /ui/.
	Pages http.Handler
	// ToolsOnly leaves out all that is not about tools.
	ToolsOnly bool
	// Addr is the address it listens on, HOST:PORT; "" in tests.
	Addr    string
	Version string
	// LiveIdle is how often the live view is refreshed while nobody watches it;
	// 0 means every 10 s.
	LiveIdle time.Duration
	Log      *slog.Logger
	Metrics  Metrics
	Traces   Traces // nil: calls are traced as their callers say
	// Peers are the directors over the same store; nil: there is none but this.
	Peers forward.Peers
}

// Server answers the HTTP API. Make one with New.
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
	handler    http.Handler // all of it

	started  time.Time
	draining atomic.Bool
	streams  httpio.Streams
	life     context.Context // ends when open streams and long polls are to end
	end      context.CancelFunc
}

// cancelWait is how long a cancel of a running task waits for the agent's
// word before it answers 202 (design §2).
const cancelWait = 5 * time.Second

// OpenStreams is how many streams are open: of events, of what is live, of calls.
func (d *Server) OpenStreams() int { return d.streams.Count() }

// LiveReaders is how many of them are of what is live.
func (d *Server) LiveReaders() int { return d.projection.Readers() }

// Terminals are the terminals of the agents.
func (d *Server) Terminals() *terminal.Terminals { return d.terminals }

// LoginLink makes a link that logs the owner in at url, once.
func (d *Server) LoginLink(url string) (string, error) { return d.handlers.logins.Link(url) }

// LiveDirectors is how many directors live, this one among them.
func (d *Server) LiveDirectors() int { return d.handlers.directors.living() }

// Live is the live view.
func (d *Server) Live() *live.Projection { return d.projection }

// New makes a Server and mounts the route table. It fails where a route
// has no handler, or where Addr is public and there is no token.
func New(cfg Config) (*Server, error) {
	if cfg.Engine == nil {
		return nil, errors.New("httpapi: Config.Engine is required")
	}
	if cfg.ToolsOnly && cfg.QueueTools != nil {
		return nil, errors.New("httpapi: a gateway alone has no queue: leave Config.QueueTools out")
	}
	if cfg.Identity == nil {
		var err error
		if cfg.Identity, err = identity.New(context.Background(), nil, identity.Options{Static: cfg.Token}); err != nil {
			return nil, err
		}
	}
	if cfg.Token != "" && !cfg.Identity.Static() {
		return nil, errors.New("httpapi: Config.Identity must know Config.Token, or nobody would be asked for it")
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

// Handler serves the whole API. Without Serve, call Stop before the server
// around it is shut down, or it waits for open streams.
func (d *Server) Handler() http.Handler { return d.handler }

// SetDraining says that no new claims are made, because the director is about
// to stop. Submits are stored as before, for they are durable; GET /readyz
// answers 503, so that a balancer turns to another director.
func (d *Server) SetDraining(on bool) { d.draining.Store(on) }

// Stop ends open streams and long polls, cleanly, so that clients come back.
func (d *Server) Stop() { d.end() }

// WaitTerminals waits, for 10 s at most, until no terminal is served any more.
func (d *Server) WaitTerminals() { d.terminals.Wait(shutdownTimeout) }

type noMetrics struct{}

func (noMetrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
func (noMetrics) Request(string, int, time.Duration)               {}
func (noMetrics) Refused(signalbox.Code)                           {}

// Limits of a connection. There is no limit on a whole answer: long polls and
// streams last, and each write of theirs has its own (writeTimeout).
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	shutdownTimeout   = 10 * time.Second // for answers under way, once streams have ended
)

// Serve answers requests on l until ctx ends. Then open streams and long
// polls end cleanly, answers under way are finished, and it returns nil.
// A listener that is not on loopback is refused without a token.
func (d *Server) Serve(ctx context.Context, l net.Listener) error {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		if err := CheckListen(tcp.String(), d.identity); err != nil {
			return err
		}
	}
	switch {
	case d.identity.Open() && d.cfg.ToolsOnly: // which keeps no tokens, and whose only one stands in its configuration
		d.log.Warn("this gateway is open: whoever reaches it, every program of this host, may call its tools",
			"close", "start it with --token-file FILE")
	case d.identity.Open():
		d.log.Warn("this director is open: whoever reaches it, every program of this host, has every right",
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
	<-failed //nolint:errcheck // it was told to end
	d.WaitTerminals()
	return err
}

// CheckListen refuses an address that others can reach unless a token or an
// admin's password keeps them out: whoever reaches a director can run prompts
// on its agents.
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
		return signalbox.Invalid("token", "will not listen on %s without a token, for whoever reaches it could run tasks and tools: %s127.0.0.1:%s (a director: and make an admin there first)", addr, cure, port)
	case id.Static() && id.ShortStatic():
		return signalbox.Invalid("token", "will not listen on %s with a token that is so short that it can be guessed: %s127.0.0.1:%s", addr, cure, port)
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
