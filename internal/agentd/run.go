package agentd

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// run is one execution, from its reservation until it is forgotten.
type run struct {
	d        *Daemon
	task     api.AgentTask // prompt and env are dropped at the end
	job      job
	prev     *run // the run in the same lane that this one voids
	replaced *run // the run that had the queue_id before

	admitted chan struct{} // closed once accepted or refused
	refused  error         // set before admitted is closed
	stopping chan struct{} // closed by the first requestStop
	stopOnce sync.Once
	done     chan struct{} // closed once terminal, and written down
	log      *outLog
	told     chan struct{} // closed once someone was told of the end
	toldOnce sync.Once

	trace runTrace

	stored sync.Mutex // held while the record on disk changes; taken before mu
	seq    int64      // of the entry in the ledger, 0 if it has none
	onDisk bool       // there is a record file

	mu    sync.Mutex
	rec   record
	why   *stop
	heard string       // the last trouble that the CLI told of and has not got over
	lives func() []int // of a run that could not be killed
	locks []*dirLock
}

// stop says why a run is ended from outside, and how it is recorded.
type stop struct {
	state   string
	errType string
	message string
}

// endedRun is a run of an earlier life of the daemon.
func (d *Daemon) endedRun(rec record) *run {
	r := &run{d: d, rec: rec, admitted: make(chan struct{}), stopping: make(chan struct{}), done: make(chan struct{}), told: make(chan struct{})}
	r.onDisk = true
	r.log = endedLog(d.outputPath(rec.TaskID), rec.Log, rec.OutputSeq)
	close(r.admitted)
	close(r.done)
	if rec.Reported {
		r.tell()
	}
	return r
}

func (d *Daemon) outputPath(taskID string) string {
	return filepath.Join(d.disk.runDir(taskID), "output.log")
}

func (d *Daemon) resultPath(taskID string) string {
	return filepath.Join(d.disk.runDir(taskID), "result.txt")
}

func (r *run) record() record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rec
}

// requestStop asks the run to end; the first reason stands.
func (r *run) requestStop(s stop) {
	r.stopOnce.Do(func() {
		r.mu.Lock()
		r.why = &s
		r.mu.Unlock()
		close(r.stopping)
	})
}

func (r *run) stopReason() *stop {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

// note keeps what trouble the CLI has, "" for none.
func (r *run) note(heard string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if heard != r.heard {
		r.heard = r.readable(heard)
	}
}

// trouble is what was noted last.
func (r *run) trouble() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}

// alive reports whether processes of the run are known to live after its end.
func (r *run) alive() bool {
	r.mu.Lock()
	lives := r.lives
	r.mu.Unlock()
	return lives != nil && len(lives()) > 0
}

// current is the run as /status and agent_busy show it.
func (r *run) current() api.AgentCurrentTask {
	rec := r.record()
	c := api.AgentCurrentTask{
		ID: rec.TaskID, QueueID: rec.QueueID, Fence: rec.Fence, Slot: rec.Slot, Isolated: rec.Isolated,
		StartedAt: *rec.StartedAt, PromptPreview: rec.PromptPreview, Note: r.trouble(),
	}
	if _, last := r.log.progress(); !last.IsZero() {
		c.LastProgressAt = &last
	}
	return c
}

// status is the run as GET /task/{id} shows it, with at most limit bytes of
// the answer.
func (r *run) status(limit int64) (api.AgentTaskStatus, error) {
	rec := r.record()
	s := rec.AgentTaskStatus
	if rec.terminal() {
		if !r.d.cfg.Pull { // else it is told when a director has taken it
			r.tell()
		}
		return r.withAnswer(s, limit)
	}
	total, last := r.log.progress()
	s.OutputSeq, s.Note = total, r.trouble()
	s.DurationSeconds = max(0, time.Since(*rec.StartedAt).Seconds())
	s.Output = r.log.recent(int(min(limit, runningOutput)))
	if !last.IsZero() {
		s.LastProgressAt = &last
	}
	return s, nil
}

// withAnswer adds the beginning of the answer to the status of an ended run.
func (r *run) withAnswer(s api.AgentTaskStatus, limit int64) (api.AgentTaskStatus, error) {
	if n := int64(len(s.Output)); n > limit {
		s.Output = string(whole([]byte(s.Output[:limit])))
	} else if n == 0 {
		var err error
		s.Output, err = readHead(r.d.resultPath(s.TaskID), limit)
		return s, err
	}
	return s, nil
}

// store changes the record on disk, and then in memory: what is told is there.
func (r *run) store(rec record) error {
	r.stored.Lock()
	defer r.stored.Unlock()
	write := r.d.disk.newRecord
	if r.onDisk {
		write = r.d.disk.replaceRecord
	}
	err := write(rec)
	r.onDisk = true // or in part
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rec = rec
	return err
}

// readHead returns the beginning of a file; one that does not exist is empty.
func readHead(path string, limit int64) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit))
	return clean(whole(b)), err
}
