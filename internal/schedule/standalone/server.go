package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpguard"
)

// Scheduler is implemented by *schedule.Scheduler.
type Scheduler interface {
	All(ctx context.Context) ([]signalbox.Schedule, error)
	Get(ctx context.Context, ref string) (signalbox.Schedule, error)
	Trigger(ctx context.Context, ref, by string) (signalbox.ScheduleRun, error)
	Next(s signalbox.Schedule, n int) []time.Time
	Zone() string
}

// ServerOptions configure a Server.
type ServerOptions struct {
	Scheduler Scheduler
	Store     *Store
	Queue     *Queue
	Token     string   // required of callers; "": none
	Hosts     []string // accepted Host headers besides loopback names
	AnyIP     bool     // listens beyond loopback: IP addresses in the Host header are accepted
	Version   string
	Metrics   http.Handler // GET /metrics; nil: none
	Log       *slog.Logger
}

// Server is the scheduler's HTTP API:
//
//	GET  /status         the jobs and their last firings
//	POST /trigger/{job}  fires a job now
//	GET  /healthz        the process is alive
//	GET  /metrics        for Prometheus
type Server struct {
	o        ServerOptions
	ended    endedCache
	stopping atomic.Bool
}

// NewServer returns a Server.
func NewServer(o ServerOptions) *Server {
	return &Server{o: o, ended: endedCache{queue: o.Queue, recheckAfter: recheckAfter}}
}

// Times of the server.
const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 5 * time.Second // for requests in flight
	triggerWait     = 10 * time.Second
)

// Serve serves until ctx ends, then completes requests in flight.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(short)
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// Handler serves the API.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", s.status)
	mux.HandleFunc("POST /trigger/{job}", s.trigger)
	if s.o.Metrics != nil {
		mux.Handle("GET /metrics", s.o.Metrics)
	}
	open := http.NewServeMux()
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, api.Health{Status: "ok"}) })
	open.Handle("/", s.requireToken(jsonErrors(mux)))
	return s.guard(jsonErrors(open))
}

// status is GET /status.
func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	rows, err := s.o.Scheduler.All(r.Context())
	if err != nil {
		s.refuse(w, err)
		return
	}
	open := map[string]bool{}
	runs, err := s.o.Store.Open(r.Context())
	if err != nil {
		s.refuse(w, err)
		return
	}
	for _, run := range runs {
		open[run.ScheduleID] = true
	}
	s.ended.refresh(r.Context(), rows)
	out := api.SchedulerStatus{
		Type: "helper", Interfaces: []string{"statusable", "observable"}, Version: s.o.Version, State: "running", Director: s.o.Queue.URL(),
		Jobs: make([]api.SchedulerJob, len(rows)),
	}
	if s.stopping.Load() {
		out.State = "stopping"
	}
	for i := range rows {
		out.Jobs[i] = s.job(&rows[i])
		out.Jobs[i].IsRunning = open[rows[i].ID] || rows[i].LastQueueID != "" && !s.ended.has(rows[i].LastQueueID)
	}
	answer(w, http.StatusOK, out)
}

// nextRuns is how many next instants of a job are shown.
const nextRuns = 3

func (s *Server) job(row *signalbox.Schedule) api.SchedulerJob {
	j := api.SchedulerJob{
		Name: row.Name, Schedule: row.Cron, Timezone: row.Timezone, Enabled: row.Enabled, NextRuns: s.o.Scheduler.Next(*row, nextRuns),
		LastStatus: string(row.LastStatus), LastQueueID: row.LastQueueID, LastError: row.LastError,
	}
	if j.Timezone == "" {
		j.Timezone = s.o.Scheduler.Zone()
	}
	if len(j.NextRuns) > 0 {
		j.NextRun = &j.NextRuns[0]
	}
	if !row.LastRun.IsZero() {
		j.LastRun = &row.LastRun
	}
	return j
}

// triggered is the answer to POST /trigger/{job}.
type triggered struct {
	Job     string `json:"job"`
	Status  string `json:"status"`             // queued; held, until the previous task has ended; firing, while the director does not answer
	QueueID string `json:"queue_id,omitempty"` // of the task, once it exists
}

// trigger is POST /trigger/{job}. It answers when the firing is decided or held, or with 202
// after triggerWait.
func (s *Server) trigger(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("job")
	row, err := s.o.Scheduler.Get(r.Context(), name)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound || err == nil && row.Name != name && row.ID != name {
		fail(w, http.StatusNotFound, "job_not_found", "there is no job "+quoted(name)+": GET /status lists them")
		return
	}
	var run signalbox.ScheduleRun
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), triggerWait)
		defer cancel()
		run, err = s.fire(ctx, row.ID, "a caller at "+host(r.RemoteAddr))
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded): // the firing continues
		answer(w, http.StatusAccepted, triggered{Job: row.Name, Status: string(signalbox.RunFiring)})
	case signalbox.CodeOf(err) == signalbox.CodeConflict:
		fail(w, http.StatusConflict, "job_already_running", "job "+row.Name+" is being submitted already: "+err.Error())
	case err != nil:
		s.refuse(w, err)
	default:
		decided(w, row.Name, &run)
	}
}

// startWait is how often a scheduler that is starting is retried: the API answers before it
// runs.
const startWait = 20 * time.Millisecond

// fire fires a job, and waits for a scheduler that is starting.
func (s *Server) fire(ctx context.Context, id, by string) (signalbox.ScheduleRun, error) {
	for {
		run, err := s.o.Scheduler.Trigger(ctx, id, by)
		if signalbox.CodeOf(err) != signalbox.CodeUnavailable || s.stopping.Load() {
			return run, err
		}
		select {
		case <-time.After(startWait):
		case <-ctx.Done():
			return run, err
		}
	}
}

// decided writes the outcome of a firing.
func decided(w http.ResponseWriter, name string, run *signalbox.ScheduleRun) {
	switch run.Status {
	case signalbox.RunQueued:
		answer(w, http.StatusCreated, triggered{Job: name, Status: string(run.Status), QueueID: run.QueueID})
	case signalbox.RunHeld, signalbox.RunFiring:
		answer(w, http.StatusAccepted, triggered{Job: name, Status: string(run.Status)})
	case signalbox.SkippedBusy:
		fail(w, http.StatusConflict, "job_already_running", "the task before of job "+name+" has not ended: "+run.Error)
	case signalbox.SkippedQueueFull:
		fail(w, http.StatusServiceUnavailable, string(signalbox.CodeQueueFull), run.Error)
	case signalbox.SkippedNoDirector:
		fail(w, http.StatusServiceUnavailable, "no_director", run.Error)
	default:
		fail(w, http.StatusBadGateway, "submit_failed", "job "+name+" was not submitted: "+run.Error)
	}
}

// refuse writes an error of the scheduler.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	if signalbox.CodeOf(err) == signalbox.CodeUnavailable || s.stopping.Load() {
		fail(w, http.StatusServiceUnavailable, string(signalbox.CodeUnavailable), "the scheduler is starting, or about to stop: try again")
		return
	}
	s.o.Log.Error("a request failed", "error", err)
	fail(w, http.StatusInternalServerError, string(signalbox.CodeInternal), "it could not be done; the scheduler's log has the cause")
}

func answer(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil { // the types above always encode
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // a failed write: the caller is gone
}

// fail writes an error in the format of the seeds.
func fail(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, api.Error{Error: code, Message: message})
}

// guard rejects unknown Host headers (DNS rebinding) and cross-origin requests.
func (s *Server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusForbidden, string(signalbox.CodeForbidden), "requests from pages of other sites are refused")
	}))
	protected, hosts := cross.Handler(next), httpguard.NewHosts(s.o.AnyIP, s.o.Hosts...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts.Allow(r.Host) {
			fail(w, http.StatusForbidden, string(signalbox.CodeForbidden), "the Host header names none of this scheduler's hosts: add it to hosts in the configuration")
			return
		}
		protected.ServeHTTP(w, r)
	})
}

// host is an address without its port.
func host(addr string) string {
	if h, _, err := net.SplitHostPort(addr); err == nil {
		return h
	}
	return addr
}

func (s *Server) requireToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.o.Token != "" && !httpguard.SameToken(r.Header.Get("Authorization"), s.o.Token) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="signalbox scheduler"`)
			fail(w, http.StatusUnauthorized, string(signalbox.CodeUnauthorized), "this scheduler wants its token (scheduler.token): Authorization: Bearer …")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// jsonErrors makes the mux's own errors (no such path, wrong method) JSON.
func jsonErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch allow, none := httpguard.Unmatched(mux, r); {
		case !none:
			mux.ServeHTTP(w, r)
		case allow != "":
			w.Header().Set("Allow", allow)
			fail(w, http.StatusMethodNotAllowed, string(signalbox.CodeMethodNotAllowed), quoted(r.Method)+" is not possible here: use "+allow)
		default:
			fail(w, http.StatusNotFound, string(signalbox.CodeNotFound), "there is nothing here: GET /status, POST /trigger/{job}, GET /healthz and GET /metrics are what there is")
		}
	})
}

// quoted quotes a caller's text for an error, shortened.
func quoted(s string) string {
	if len(s) > 100 {
		s = s[:100] + "..."
	}
	return strconv.QuoteToASCII(s)
}
