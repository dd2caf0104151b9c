package agentd

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/mask"
)

func (r *run) logExecution(event string, at time.Time, pid int) {
	rec := r.record()
	err := r.d.exec.add(execLine{QueueID: rec.QueueID, TaskID: rec.TaskID, Fence: rec.Fence, Slot: rec.Slot, Event: event, At: at, PID: pid})
	if err != nil {
		r.d.cfg.Logger.Error("execution log", "error", err)
	}
}

// finish records the end, then frees the lane. The record is not synced: it
// survives the end of the daemon, and after a power cut, when nobody can have
// seen the answer but a director that keeps it, the run reads as interrupted.
// The next task need not wait for the disk.
func (r *run) finish(v verdict) {
	d := r.d
	v.message, v.out.Output = r.readable(v.message), mask.Text(r.secrets(), v.out.Output)
	refused := r.readable(v.out.Refusals())
	rec := r.record()
	now := time.Now().UTC()
	if refused != "" {
		r.remark("%s", refused)
	}
	_, last := r.log.progress()
	rec.Log, rec.OutputSeq = r.log.finish()
	rec.State, rec.CompletedAt = v.state, &now
	rec.DurationSeconds = max(0, time.Since(*rec.StartedAt).Seconds())
	rec.ExitCode, rec.TokenUsage, rec.CostUSD, rec.ToolCount = v.out.ExitCode, v.out.Usage, v.out.CostUSD, v.out.ToolCount
	if !last.IsZero() {
		rec.LastProgressAt = &last
	}
	rec.Note = refused
	if v.errType != "" {
		rec.Error = &api.AgentError{Type: v.errType, Message: cmp.Or(v.message, "no readable reason was given")}
	}
	if err := r.saveResult(&rec, v.out.Output); err != nil {
		d.cfg.Logger.Error("the answer of a run could not be stored", "task", rec.TaskID, "error", err)
	}
	if err := r.store(rec); err != nil {
		d.cfg.Logger.Error("the end of a run could not be stored", "task", rec.TaskID, "error", err)
	}
	if rec.Isolated && v.lives == nil {
		os.RemoveAll(filepath.Join(d.disk.runDir(rec.TaskID), "home")) // it links to the login
	}
	r.settle(rec, v.lives)
}

func (r *run) settle(rec record, lives func() []int) {
	d := r.d
	r.mu.Lock()
	r.task.Prompt, r.task.Env, r.task.SystemPrompt, r.task.RunToken = "", nil, "", ""
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
		d.linger(r, lives)
	}
	close(r.done)
}

func (r *run) unlock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	releaseAll(r.locks)
	r.locks = nil
}

// linger keeps the lane of a run that could not be killed until nothing of it
// lives.
func (d *Daemon) linger(r *run, lives func() []int) {
	r.mu.Lock()
	r.lives = lives
	r.mu.Unlock()
	go func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for r.alive() {
			select {
			case <-t.C:
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

// saveResult puts the answer into the record or, when it is long, into a file.
func (r *run) saveResult(rec *record, text string) error {
	b := []byte(text)
	if len(b) > resultCap {
		b = whole(b[:resultCap])
	}
	if len(b) <= resultInRecord {
		rec.Output = clean(b)
		return nil
	}
	path := r.d.resultPath(rec.TaskID)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}
