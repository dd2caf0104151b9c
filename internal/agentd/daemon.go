package agentd

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/agentd/workspace"
)

// Daemon is one agent.
type Daemon struct {
	cfg           Config
	runner        runner.Runner
	disk          *disk
	exec          execLog
	tracer        trace.Tracer // nil: no spans
	started       time.Time
	lock          *dirLock // on the data folder
	ledger        *ledger
	listMu        sync.Mutex        // serializes listing of conversations
	conversations conversationLocks // for runs within this process
	account       spending
	careMu        sync.Mutex // serializes inspecting and removing worktrees
	sizes         sizes
	room          room
	folder        string     // ID of the folder, if only one run at a time works in it; "": further slots have their own
	maintainMu    sync.Mutex // serializes maintenance of the data folder; taken before stored and mu
	tidied        time.Time  // when worktrees were last cleaned up; guarded by maintainMu

	quit      chan time.Duration // POST /shutdown: the drain time
	quitOnce  sync.Once
	wg        sync.WaitGroup  // runs and admissions
	open      context.Context // ends when the daemon is told to stop
	shut      context.CancelFunc
	closed    chan struct{}
	closeOnce sync.Once

	mu              sync.Mutex
	lanes           map[laneID]*run
	runs            map[string]*run      // by task_id: running ones and the newest ended ones
	byQueue         map[string]*run      // the newest of each queue_id
	ended           []*run               // oldest first
	forgotten       []*run               // unknown to callers, still on disk
	terminals       map[string]*terminal // open, by id
	fences          map[string]fenceMark
	servingDirector string // director of the newest fence
	highest         int64
	changed         chan struct{}
	port            int
	closing         bool
}

// laneID identifies a lane, which has at most one live run.
type laneID struct {
	Isolated bool
	Slot     int
}

func (l laneID) String() string {
	if l.Isolated {
		return fmt.Sprintf("isolated-%d", l.Slot)
	}
	return fmt.Sprintf("slot-%d", l.Slot)
}

// New opens the data folder and ends processes left by an earlier daemon, with proof; that
// takes up to KillGrace plus some seconds. It fails on configuration and disk errors, and if
// another daemon uses the folder.
func New(cfg Config) (*Daemon, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("agent configuration: %w", err)
	}
	r, err := runner.New(cfg.Kind, cfg.Runner)
	if err != nil {
		return nil, fmt.Errorf("agent configuration: %w", err)
	}
	d := &Daemon{
		cfg: cfg, runner: r, exec: execLog{path: cfg.ExecLog}, started: time.Now(),
		quit:  make(chan time.Duration, 1),
		lanes: map[laneID]*run{}, runs: map[string]*run{}, byQueue: map[string]*run{}, terminals: map[string]*terminal{},
		changed: make(chan struct{}), closed: make(chan struct{}), room: room{news: make(chan struct{}, 1)},
	}
	d.open, d.shut = context.WithCancel(context.Background())
	if cfg.Traces != nil {
		d.tracer = cfg.Traces.Tracer(tracerName)
	}
	if d.disk, err = openDisk(cfg.DataDir); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock, ok, err := tryLockDir(filepath.Join(cfg.DataDir, "records"))
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if !ok {
		return nil, fmt.Errorf("the data folder %s is in use by another agent; give each agent a folder of its own", cfg.DataDir)
	}
	d.lock = lock
	if !d.runner.Inside() && (cfg.Slots == 1 || cfg.Workspace.Kind != workspace.KindFolder) {
		if d.folder, err = folderID(cfg.WorkDir); err != nil {
			lock.release()
			return nil, err
		}
	}
	if err := d.recover(); err != nil {
		if d.ledger != nil {
			_ = d.ledger.file.Close()
		}
		lock.release()
		return nil, err
	}
	if d.bounded() {
		d.wg.Go(d.keepRoom)
	}
	return d, nil
}

// Serve serves ln until ctx ends or POST /shutdown. Then it refuses tasks, stops running ones
// with proof, records them as interrupted, and closes the listener. A listener that is not on
// loopback requires a token.
func (d *Daemon) Serve(ctx context.Context, ln net.Listener) error {
	local := loopback(ln.Addr())
	if !local && d.cfg.Token == "" {
		ln.Close()
		return fmt.Errorf("refusing to listen on %s, which others can reach, without a token", ln.Addr())
	}
	if a, ok := ln.Addr().(*net.TCPAddr); ok {
		d.mu.Lock()
		d.port = a.Port
		d.mu.Unlock()
	}
	srv := &http.Server{
		Handler:           d.handler(!local),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	drain := time.Duration(0)
	select {
	case err := <-failed:
		_ = d.Close()
		return err
	case <-ctx.Done():
	case drain = <-d.quit:
	}
	waitEndKnown(d.stopAll(ctx, drain))
	end, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := srv.Shutdown(end); err != nil {
		srv.Close()
	}
	<-failed //nolint:errcheck // it was told to end
	return d.Close()
}

// stopAll refuses new tasks, lets running ones continue for drain and then stops them. It
// returns the runs that were active, once none runs or the rest cannot be stopped.
func (d *Daemon) stopAll(ctx context.Context, drain time.Duration) []*run {
	d.mu.Lock()
	d.closing = true
	d.shut()
	var live []*run
	for _, r := range d.lanes {
		live = append(live, r)
	}
	d.mu.Unlock()
	t := time.NewTimer(drain)
	defer t.Stop()
	for _, r := range live {
		select {
		case <-r.done:
			continue
		case <-t.C:
		case <-ctx.Done():
		}
		break
	}
	d.mu.Lock()
	d.stopTerminals()
	d.mu.Unlock()
	for _, r := range live {
		r.requestStop(stop{state: stateFailed, errType: "interrupted", message: "the agent was shut down while the task ran; its processes were stopped"})
	}
	d.wg.Wait()
	return live
}

// Close stops all runs with proof and unlocks the data folder. Serve calls it; callers of
// Handler must call it themselves.
func (d *Daemon) Close() error {
	d.stopAll(context.Background(), 0)
	d.closeOnce.Do(func() {
		close(d.closed)
		_ = d.ledger.file.Close() // each entry was already synced
		d.lock.release()
	})
	return nil
}

// Changed returns a channel that is closed at the next change of Status. Get the channel before
// reading Status.
func (d *Daemon) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// notify closes the channel that Changed returned; the caller holds mu.
func (d *Daemon) notify() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Status is the answer of GET /status.
func (d *Daemon) Status() api.AgentStatus {
	account, full := d.account.told(d), d.takesNone()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := api.AgentStatus{
		Type: "agent", Interfaces: []string{"statusable", "observable", "taskable"},
		Version: d.cfg.Version, AgentKind: d.cfg.Kind, State: "idle",
		UptimeSeconds: time.Since(d.started).Seconds(),
		Config:        api.AgentConfig{Port: d.port, Model: d.cfg.Model},
		Name:          d.cfg.Name, Slots: d.cfg.Slots, Fencing: true, Proof: d.cfg.Token != "", LongPoll: true, Progress: true,
		HighestFence: d.highest, Director: d.servingDirector, WorkDir: d.cfg.WorkDir, Workspace: d.cfg.Workspace.Kind, FolderID: d.folder,
		IsolatedSlots: d.cfg.IsolatedSlots, Sessions: true, Landing: true, Full: full,
		Terminal: d.cfg.Terminal && d.cfg.Token != "", Terminals: d.openTerminals(), TaskEnv: d.cfg.TaskEnv, TaskChecks: string(d.cfg.Checks.From),
		Steps: d.cfg.Runner.LLM.Steps.Told(), Account: account,
	}
	for _, isolated := range []bool{false, true} {
		for i := range d.slots(isolated) {
			r := d.lanes[laneID{isolated, i}]
			if r == nil {
				continue
			}
			if !isolated {
				s.State = "working"
			}
			s.CurrentTasks = append(s.CurrentTasks, r.current())
		}
	}
	if len(s.CurrentTasks) > 0 {
		s.CurrentTask = &s.CurrentTasks[0]
	}
	return s
}
