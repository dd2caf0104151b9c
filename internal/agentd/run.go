package agentd

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/mask"
)

// run is one execution, from its reservation until it is forgotten.
type run struct {
	d        *Daemon
	task     api.AgentTask // prompt and env are cleared at the end
	job      job
	prev     *run // the run in the same lane that this one voids
	replaced *run // the run that had the queue_id before

	admitted     chan struct{} // closed once accepted or refused
	refused      error         // set before admitted is closed
	stopping     chan struct{} // closed by the first requestStop
	stopOnce     sync.Once
	done         chan struct{} // closed once terminal and recorded
	log          *outLog
	endKnown     chan struct{} // closed once a caller has read the end
	endKnownOnce sync.Once

	trace runTrace
	until time.Time // when its programs and checks must have ended; only its own goroutine uses until and turn

	// After failed checks, likewise: the next prompt of the conversation, and how the program
	// ended before.
	turn   string
	before runner.Outcome

	stored sync.Mutex // guards the record on disk; taken before mu
	seq    int64      // of the ledger entry; 0: none
	onDisk bool       // a record file exists

	mu          sync.Mutex
	rec         record
	why         *stop
	lastTrouble string                // last problem that the CLI reported and that persists
	heard       runner.ProviderReport // from the provider
	spends      api.AgentAccount      // its name and login; "" if unknown
	survivors   func() []int          // remaining processes of a run that could not be killed
	locks       []*dirLock
	heardBefore runner.ProviderReport // by the earlier programs
}

// stop says why a run is stopped from outside, and how that is recorded.
type stop struct {
	state   string
	errType string
	message string
	limit   *api.AgentLimit
}

// endedRun is a run of an earlier process.
func (d *Daemon) endedRun(rec record) *run {
	r := &run{d: d, rec: rec, admitted: make(chan struct{}), stopping: make(chan struct{}), done: make(chan struct{}), endKnown: make(chan struct{})}
	r.onDisk = true
	r.log = endedLog(d.outputPath(rec.TaskID), rec.Log, rec.OutputSeq)
	close(r.admitted)
	close(r.done)
	if rec.Reported {
		r.markEndKnown()
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

// requestStop asks the run to end; the first reason counts.
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

// setTrouble records the CLI's current problem; "": none.
func (r *run) setTrouble(heard string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if heard != r.lastTrouble {
		r.lastTrouble = r.printableText(heard)
	}
}

func (r *run) lastTroubleText() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastTrouble
}

// alive reports whether processes of the run are known to have survived its end.
func (r *run) alive() bool {
	r.mu.Lock()
	lives := r.survivors
	r.mu.Unlock()
	return lives != nil && len(lives()) > 0
}

// current is the run as shown in /status and agent_busy.
func (r *run) current() api.AgentCurrentTask {
	rec := r.record()
	c := api.AgentCurrentTask{
		ID: rec.TaskID, QueueID: rec.QueueID, Fence: rec.Fence, Slot: rec.Slot, Isolated: rec.Isolated,
		StartedAt: *rec.StartedAt, PromptPreview: rec.PromptPreview, Note: r.lastTroubleText(),
	}
	if _, last := r.log.progress(); !last.IsZero() {
		c.LastProgressAt = &last
	}
	return c
}

// status is the run as shown by GET /task/{id}, with at most limit bytes of
// the answer.
func (r *run) status(limit int64) (api.AgentTaskStatus, error) {
	rec := r.record()
	s := rec.AgentTaskStatus
	if rec.terminal() {
		if !r.d.cfg.Pull { // otherwise endKnown is closed when a director has acknowledged the end
			r.markEndKnown()
		}
		var err error
		if s.Changes, err = r.withPatch(s.Changes); err != nil {
			return s, err
		}
		return r.withAnswer(s, limit)
	}
	total, last := r.log.progress()
	s.OutputSeq, s.Note, s.Account = total, r.lastTroubleText(), r.account(false)
	s.DurationSeconds = max(0, time.Since(*rec.StartedAt).Seconds())
	s.Output = r.log.recent(int(min(limit, runningOutput)))
	if !last.IsZero() {
		s.LastProgressAt = &last
	}
	return s, nil
}

// withAnswer adds the beginning of an ended run's answer.
func (r *run) withAnswer(s api.AgentTaskStatus, limit int64) (api.AgentTaskStatus, error) {
	if n := int64(len(s.Output)); n > limit {
		s.Output = string(wholeRunes([]byte(s.Output[:limit])))
	} else if n == 0 {
		var err error
		s.Output, err = readHead(r.d.resultPath(s.TaskID), limit)
		return s, err
	}
	return s, nil
}

// change changes the record on disk and then in memory, so that readers see only
// what is stored.
func (r *run) change(f func(*record)) error {
	r.stored.Lock()
	defer r.stored.Unlock()
	rec := r.record()
	f(&rec)
	write := r.d.disk.newRecord
	if r.onDisk {
		write = r.d.disk.replaceRecord
	}
	err := write(rec)
	r.onDisk = true // possibly only in part
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rec = rec
	return err
}

// readHead returns the beginning of a file; a missing one is empty.
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
	return validText(wholeRunes(b)), err
}

func (r *run) logExecution(event string, at time.Time, pid int) {
	rec := r.record()
	err := r.d.exec.add(execLine{QueueID: rec.QueueID, TaskID: rec.TaskID, Fence: rec.Fence, Slot: rec.Slot, Event: event, At: at, PID: pid})
	if err != nil {
		r.d.cfg.Logger.Error("execution log", "error", err)
	}
}

// finish records the end and then frees the lane. The record is not synced: it survives a crash
// of the daemon. After a power cut the run reads as interrupted, unless a director has its end.
// So the next task need not wait for the disk.
func (r *run) finish(v outcome) {
	d := r.d
	if why := r.lastHeard().Used.Over(r.job.budget); v.errType == runner.OverBudget && why != "" {
		v.message = why // with the usage so far
	}
	v.message, v.out.Output = r.printableText(v.message), mask.Text(r.secrets(), v.out.Output)
	refused := r.printableText(v.out.Refusals())
	rec := r.record()
	now := time.Now().UTC()
	if refused != "" {
		r.logNote("%s", refused)
	}
	_, last := r.log.progress()
	rec.Log, rec.OutputSeq = r.log.finish()
	rec.State, rec.CompletedAt = v.state, &now
	rec.DurationSeconds = max(0, time.Since(*rec.StartedAt).Seconds())
	rec.ExitCode, rec.ToolCount = v.out.ExitCode, v.out.ToolCount
	rec.Model = cmp.Or(v.out.Model, r.job.model)
	if rec.Changes = v.changes; rec.Changes != nil {
		rec.Changes.Patch = "" // stored in a file of its own
	}
	rec.Checks, rec.Landed = v.checks, v.landed
	if !last.IsZero() {
		rec.LastProgressAt = &last
	}
	rec.Note = refused
	rec.Limit, rec.Account = r.limitOf(v.limit), r.account(v.limit != nil)
	if v.errType != "" {
		rec.Error = &api.AgentError{Type: v.errType, Message: cmp.Or(v.message, "no readable reason was given")}
	}
	if err := r.saveResult(&rec, v.out.Output); err != nil {
		d.cfg.Logger.Error("the answer of a run could not be stored", "task", rec.TaskID, "error", err)
	}
	if err := r.change(func(now *record) { *now = rec }); err != nil {
		d.cfg.Logger.Error("the end of a run could not be stored", "task", rec.TaskID, "error", err)
	}
	if rec.Isolated && v.alive == nil {
		os.RemoveAll(filepath.Join(d.disk.runDir(rec.TaskID), "home")) // it has links to the login
	}
	r.settle(rec, v.alive)
}

func (r *run) settle(rec record, lives func() []int) {
	d := r.d
	r.mu.Lock()
	r.task.Prompt, r.task.Env, r.task.SystemPrompt, r.task.RunToken, r.task.Resume = "", nil, "", "", nil
	r.prev, r.replaced = nil, nil
	r.mu.Unlock()
	d.mu.Lock()
	d.ended = append(d.ended, r)
	if lives == nil {
		r.unlock()
		if d.lanes[rec.lane()] == r {
			delete(d.lanes, rec.lane())
		}
	}
	d.prune()
	d.notify()
	d.mu.Unlock()
	if lives != nil {
		d.holdLane(r, lives)
	}
	close(r.done)
}

func (r *run) unlock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	releaseAll(r.locks)
	r.locks = nil
}

// holdLane keeps the lane of a run that could not be killed until its processes have
// ended.
func (d *Daemon) holdLane(r *run, lives func() []int) {
	r.mu.Lock()
	r.survivors = lives
	r.mu.Unlock()
	go func() {
		t := time.Tick(time.Second)
		for r.alive() {
			select {
			case <-t:
			case <-d.closed:
				return
			}
		}
		r.unlock()
		d.mu.Lock()
		defer d.mu.Unlock()
		if lane := r.record().lane(); d.lanes[lane] == r {
			delete(d.lanes, lane)
			d.notify()
		}
	}()
}

// saveResult stores the answer in the record or, if it is long, in a file.
func (r *run) saveResult(rec *record, text string) error {
	b := []byte(text)
	if len(b) > resultCap {
		b = wholeRunes(b[:resultCap])
	}
	if len(b) <= resultInRecord {
		rec.Output = validText(b)
		return nil
	}
	path := r.d.resultPath(rec.TaskID)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// The ledger is a ring of slots. A slot has the size of a page, so that a
// write that is torn by a power cut damages no other slot.
const (
	ledgerSlots = 256
	slotSize    = 4096
	slotHeader  = 24 // magic, checksum of the rest, sequence number, length of the entry, 4 spare
)

var (
	slotMagic  = []byte("sbl1")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// entry is one of: a run was accepted; a claim was voided; runs were
// forgotten, so that missing records are expected; or empty, after an accept
// that failed.
type entry struct {
	Accepted  *record  `json:"accepted,omitempty"`
	Void      *record  `json:"void,omitempty"`
	Forgotten []string `json:"forgotten,omitempty"`
}

// encodeSlot encodes a whole slot.
func encodeSlot(seq int64, e entry) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if len(text) > slotSize-slotHeader {
		return nil, fmt.Errorf("an entry of %d bytes does not fit a ledger slot", len(text))
	}
	b := make([]byte, slotSize)
	copy(b, slotMagic)
	binary.LittleEndian.PutUint64(b[8:], uint64(seq))
	binary.LittleEndian.PutUint32(b[16:], uint32(len(text)))
	copy(b[slotHeader:], text)
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	return b, nil
}

// decodeSlot returns false for a slot that was never used or is torn.
func decodeSlot(b []byte) (seq int64, e entry, ok bool) {
	if len(b) != slotSize || !bytes.HasPrefix(b, slotMagic) || binary.LittleEndian.Uint32(b[4:]) != crc32.Checksum(b[8:], castagnoli) {
		return 0, e, false
	}
	seq = int64(binary.LittleEndian.Uint64(b[8:]))
	n := binary.LittleEndian.Uint32(b[16:])
	if seq < 1 || n > slotSize-slotHeader || json.Unmarshal(b[slotHeader:slotHeader+n], &e) != nil {
		return 0, e, false
	}
	return seq, e, true
}
