package agentd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/proc"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
)

// Daemon is one agent.
type Daemon struct {
	cfg     Config
	runner  runner.Runner
	disk    *disk
	exec    execLog
	started time.Time
	lock    *dirLock // on the data folder

	quit      chan time.Duration // POST /shutdown: how long running tasks may go on
	quitOnce  sync.Once
	wg        sync.WaitGroup // runs and admissions
	closed    chan struct{}
	closeOnce sync.Once

	mu      sync.Mutex
	lanes   map[laneID]*run
	runs    map[string]*run // by task_id: running and the newest ended
	byQueue map[string]*run // newest of each queue_id
	ended   []*run          // oldest first
	fences  map[string]fenceMark
	serving string // director of the newest fence, and that fence
	highest int64
	changed chan struct{}
	port    int
	closing bool
}

// laneID names a place where at most one run lives.
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

// New opens the data folder and ends what an earlier life of the daemon left
// running, with proof; that takes up to KillGrace and some seconds. Errors are
// those of the configuration and of the disk, or that another daemon uses the
// folder.
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
		lanes: map[laneID]*run{}, runs: map[string]*run{}, byQueue: map[string]*run{},
		changed: make(chan struct{}), closed: make(chan struct{}),
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
	if err := d.recover(); err != nil {
		lock.release()
		return nil, err
	}
	return d, nil
}

// Serve answers on ln until ctx ends or POST /shutdown is called. Then no task
// is accepted any more, running ones are stopped with proof and recorded as
// interrupted, and the listener is closed. It refuses a listener beyond
// loopback without a token.
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
		d.Close()
		return err
	case <-ctx.Done():
	case drain = <-d.quit:
	}
	d.stopAll(ctx, drain)
	end, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := srv.Shutdown(end); err != nil {
		srv.Close()
	}
	<-failed
	return d.Close()
}

// stopAll ends the service: no new tasks, running ones may go on for drain
// and are then stopped. It returns once nothing runs, or cannot be stopped.
func (d *Daemon) stopAll(ctx context.Context, drain time.Duration) {
	d.mu.Lock()
	d.closing = true
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
	for _, r := range live {
		r.requestStop(stop{stateFailed, "interrupted", "the agent was shut down while the task ran; its processes were stopped"})
	}
	d.wg.Wait()
}

// Close stops everything that runs, with proof, and gives the data folder
// free. Serve calls it; a program that uses Handler calls it itself.
func (d *Daemon) Close() error {
	d.stopAll(context.Background(), 0)
	d.closeOnce.Do(func() {
		close(d.closed)
		d.lock.release()
	})
	return nil
}

// Changed returns a channel that is closed at the next change of Status, such
// as from working to idle. Take the channel before reading Status.
func (d *Daemon) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// notify tells Changed; the caller holds mu.
func (d *Daemon) notify() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Status is what GET /status answers.
func (d *Daemon) Status() api.AgentStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := api.AgentStatus{
		Type: "agent", Interfaces: []string{"statusable", "observable", "taskable"},
		Version: d.cfg.Version, AgentKind: d.cfg.Kind, State: "idle",
		UptimeSeconds: time.Since(d.started).Seconds(),
		Config:        api.AgentConfig{Port: d.port, Model: d.cfg.Model},
		Name:          d.cfg.Name, Slots: d.cfg.Slots, Fencing: true, LongPoll: true,
		HighestFence: d.highest, Director: d.serving, WorkDir: d.cfg.WorkDir,
	}
	for _, isolated := range []bool{false, true} {
		n := d.cfg.Slots
		if isolated {
			n = d.cfg.IsolatedSlots
		}
		for i := range n {
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

// recover loads the records and ends the runs that were cut off.
func (d *Daemon) recover() error {
	fences, err := d.disk.loadFences()
	if err != nil {
		return err
	}
	d.fences = fences
	if err := d.disk.pruneSessions(); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	recs, bad, err := d.disk.loadRecords()
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	for _, path := range bad {
		d.cfg.Logger.Error("a run record could not be read and was set aside", "file", path)
	}
	var wg sync.WaitGroup
	errs := make([]error, len(recs))
	for i := range recs {
		if !recs[i].terminal() {
			wg.Go(func() { errs[i] = d.interrupt(&recs[i]) })
		}
	}
	wg.Wait()
	var alive *proc.UnkillableError
	for i, rec := range recs {
		r := d.endedRun(rec)
		d.runs[rec.TaskID] = r
		d.ended = append(d.ended, r)
		if rec.QueueID != "" {
			d.byQueue[rec.QueueID] = r
			d.raiseFence(&rec)
		}
		if errors.As(errs[i], &alive) {
			d.lanes[rec.lane()] = r
			d.linger(r, func() []int { return proc.Alive(*rec.Process) })
		} else if errs[i] != nil {
			return errs[i]
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.prune()
}

// interrupt ends what lives of a run that the daemon's own end cut off, and
// records it.
func (d *Daemon) interrupt(rec *record) error {
	if rec.Process == nil { // cut off before the pid was written: the mark still finds it
		rec.Process = &proc.Ident{Mark: rec.TaskID}
	}
	err := proc.Clear(*rec.Process, d.cfg.KillGrace)
	now := time.Now().UTC()
	rec.State, rec.CompletedAt = stateFailed, &now
	rec.DurationSeconds = max(0, now.Sub(*rec.StartedAt).Seconds())
	rec.Error = &api.AgentError{Type: "interrupted", Message: "the agent was restarted while the task ran; its processes are stopped"}
	if err != nil {
		rec.Error = &api.AgentError{Type: "unkillable", Message: "the agent was restarted while the task ran, and " + err.Error()}
	}
	if st, serr := os.Stat(filepath.Join(d.disk.runDir(rec.TaskID), "output.log")); serr == nil {
		rec.Log.Head = min(st.Size(), d.cfg.LogCap)
		rec.OutputSeq = rec.Log.Head
	}
	if serr := d.disk.saveRecord(*rec); serr != nil {
		return serr
	}
	return err
}

// raiseFence notes the fence of a record; the caller holds mu or is alone.
func (d *Daemon) raiseFence(rec *record) {
	if rec.Fence <= 0 {
		return
	}
	key := rec.fenceKey()
	if rec.Fence > d.fences[key].Fence {
		d.fences[key] = fenceMark{rec.Fence, rec.QueueID}
	}
	if rec.Director != d.serving || rec.Fence > d.highest {
		d.serving, d.highest = rec.Director, rec.Fence
	}
}

// prune keeps the newest ended runs; the caller holds mu. The fence of a run
// that is forgotten is written down first.
func (d *Daemon) prune() error {
	for len(d.ended) > historySize {
		old := d.ended[0]
		rec := old.record()
		if d.lanes[rec.lane()] == old {
			return nil // it cannot be killed; all that is younger stays as well
		}
		if rec.Fence > 0 && !d.fenceOnDisk(&rec) {
			if err := d.disk.saveFences(d.fences); err != nil {
				return err
			}
		}
		if err := d.disk.remove(rec.TaskID); err != nil {
			return err
		}
		delete(d.runs, rec.TaskID)
		if d.byQueue[rec.QueueID] == old {
			delete(d.byQueue, rec.QueueID)
		}
		d.ended = d.ended[1:]
	}
	return nil
}

// fenceOnDisk reports whether a younger record holds the fence up.
func (d *Daemon) fenceOnDisk(rec *record) bool {
	for _, r := range d.ended[1:] {
		if o := r.record(); o.fenceKey() == rec.fenceKey() && o.Fence >= rec.Fence {
			return true
		}
	}
	return false
}
