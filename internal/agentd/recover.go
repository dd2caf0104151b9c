package agentd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// recover loads the state of earlier processes and ends interrupted runs.
func (d *Daemon) recover() error {
	fences, err := d.disk.loadFences()
	if err != nil {
		return err
	}
	d.fences = fences
	if err := d.clearTerminals(); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if err := d.disk.pruneSessions(d.forgetSession); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	ledger, past, err := openLedger(d.disk.ledgerPath())
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	d.ledger = ledger
	for _, id := range past.order() {
		rec := past.accepted[id]
		d.raiseFence(&rec)
	}
	for _, mark := range past.voided {
		d.raiseFence(&mark)
	}
	recs, err := d.loadRuns(past)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if err := d.restoreRuns(recs, past); err != nil {
		return err
	}
	d.clearLandings()
	d.mu.Lock()
	d.prune()
	d.mu.Unlock()
	if err := errors.Join(d.checkpoint(), d.forget(1)); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return nil
}

// loadRuns returns the records in order of their start. The ledger's entries replace missing or
// torn records.
func (d *Daemon) loadRuns(p history) ([]record, error) {
	for id := range p.forgotten {
		if err := d.disk.remove(id); err != nil { // a crash came between the ledger entry and the deletion
			return nil, err
		}
		delete(p.accepted, id)
	}
	recs, bad, err := d.disk.loadRecords(func(id string) bool { _, ok := p.accepted[id]; return ok })
	if err != nil {
		return nil, err
	}
	for _, path := range bad {
		d.cfg.Logger.Error("a run record could not be read and was set aside", "file", path)
	}
	for _, rec := range recs {
		delete(p.accepted, rec.TaskID)
	}
	for _, rec := range p.accepted {
		recs = append(recs, rec)
	}
	slices.SortFunc(recs, func(a, b record) int { return a.StartedAt.Compare(*b.StartedAt) })
	return recs, nil
}

// restoreRuns restores ended runs from the records.
func (d *Daemon) restoreRuns(recs []record, p history) error {
	errs := d.interruptAll(recs, p)
	var alive *proc.UnkillableError
	for i, rec := range recs {
		r := d.endedRun(rec)
		r.seq = p.seqs[rec.TaskID]
		d.runs[rec.TaskID] = r
		d.ended = append(d.ended, r)
		if rec.QueueID != "" {
			d.byQueue[rec.QueueID] = r
			d.raiseFence(&rec)
		}
		if errors.As(errs[i], &alive) {
			d.lanes[rec.lane()] = r
			d.holdLane(r, func() []int { return proc.Alive(*rec.Process) })
		} else if errs[i] != nil {
			return errs[i]
		}
	}
	for _, rec := range recs {
		d.account.hear(d, rec.Account)
	}
	slices.SortStableFunc(d.ended, func(a, b *run) int { return endedAt(a.rec, p).Compare(endedAt(b.rec, p)) })
	return nil
}

func (d *Daemon) interruptAll(recs []record, p history) []error {
	var wg sync.WaitGroup
	errs := make([]error, len(recs))
	for i := range recs {
		if !recs[i].terminal() {
			wg.Go(func() { errs[i] = d.interrupt(&recs[i], p) })
		}
	}
	wg.Wait()
	return errs
}

// endedAt is when a run ended, for the order of pruning. If that is unknown, it is
// near the start.
func endedAt(r record, p history) time.Time {
	if r.CompletedAt == nil || (p.surelyEnded(r) && r.Error != nil && r.Error.Type == "interrupted") {
		return *r.StartedAt
	}
	return *r.CompletedAt
}

// interrupt kills the remaining processes of an interrupted run, and records it. What is in
// the ledger need not be synced.
func (d *Daemon) interrupt(rec *record, p history) error {
	if rec.Process == nil { // interrupted before the PID was written: the mark finds the processes
		rec.Process = &proc.Ident{Mark: rec.TaskID}
	}
	var err error
	if !p.surelyEnded(*rec) {
		err = proc.Clear(*rec.Process, d.cfg.KillGrace)
	}
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
	if err == nil {
		d.finishLanding(rec)
		d.keepInterrupted(rec)
	}
	save := d.disk.saveRecord
	if p.seqs[rec.TaskID] > 0 {
		save = d.disk.replaceRecord
	}
	if serr := save(*rec); serr != nil {
		return serr
	}
	return err
}

// raiseFence records a fence; the caller holds mu or no other goroutine runs yet. A record
// without a task is a voided claim: no task may use its fence.
func (d *Daemon) raiseFence(rec *record) {
	if rec.Fence <= 0 {
		return
	}
	key := rec.fenceKey()
	if top := d.fences[key].Fence; rec.Fence > top || (rec.Fence == top && rec.QueueID == "") {
		d.fences[key] = fenceMark{rec.Fence, rec.QueueID}
	}
	if rec.Director != d.servingDirector || rec.Fence > d.highest {
		d.servingDirector, d.highest = rec.Director, rec.Fence
	}
}

// Cleanup of a run happens after its end was reported, so that no task waits
// for it.

// forgetBatch is how many runs are deleted at a time.
const forgetBatch = 20

// maintain frees ledger slots and deletes forgotten runs, in batches.
func (d *Daemon) maintain() {
	d.maintainMu.Lock()
	defer d.maintainMu.Unlock()
	if err := errors.Join(d.checkpoint(), d.forget(forgetBatch)); err != nil {
		d.cfg.Logger.Error("old runs could not be cleaned up", "error", err)
	}
	if time.Since(d.tidied) >= tidyEvery {
		d.tidied = time.Now()
		d.tidyWorktrees(spareWorktrees)
		d.tidyMirrors(mirrorKept)
	}
	d.lookForRoom()
}

// checkpoint stores elsewhere what old ledger entries are still needed for: the fences, and
// runs that are not forgotten. The caller holds maintainMu or no other goroutine runs yet.
func (d *Daemon) checkpoint() error {
	upTo := d.ledger.compactBelow()
	if upTo == 0 {
		return nil
	}
	d.mu.Lock()
	fences, err := encodeFences(d.fences)
	old := slices.Clone(d.forgotten)
	for _, r := range d.runs {
		old = append(old, r)
	}
	d.mu.Unlock()
	if err == nil {
		err = d.disk.saveFences(fences)
	}
	if err != nil {
		return err
	}
	for _, r := range old {
		if err := r.syncBelow(upTo); err != nil {
			return err
		}
	}
	d.ledger.release(upTo)
	return nil
}

// syncBelow makes a run durable whose ledger entry has a sequence number
// below upTo.
func (r *run) syncBelow(upTo int64) error {
	r.stored.Lock()
	defer r.stored.Unlock()
	if r.seq == 0 || r.seq >= upTo {
		return nil
	}
	rec := r.record()
	if err := syncIfThere(r.d.resultPath(rec.TaskID)); err != nil {
		return err
	}
	if err := r.d.disk.saveRecord(rec); err != nil {
		return err
	}
	r.onDisk = true
	return nil
}

// prune keeps the newest ended runs; the caller holds mu. The others are unknown to callers
// from now on, and are deleted with the next batch.
func (d *Daemon) prune() {
	for len(d.ended) > historySize {
		old := d.ended[0]
		rec := old.record()
		if d.lanes[rec.lane()] == old {
			return // it cannot be killed: newer runs are kept as well
		}
		if d.cfg.Pull && rec.QueueID != "" && !old.endIsKnown() {
			return // its end is not acknowledged
		}
		delete(d.runs, rec.TaskID)
		if d.byQueue[rec.QueueID] == old {
			delete(d.byQueue, rec.QueueID)
		}
		d.ended = d.ended[1:]
		d.forgotten = append(d.forgotten, old)
	}
}

// forget deletes the forgotten runs once there are enough. It writes the ledger first:
// otherwise a missing record would look like a power cut. Fences outlive their runs in the
// ledger, and beyond that through checkpoint.
func (d *Daemon) forget(least int) error {
	d.mu.Lock()
	gone := d.forgotten
	if len(gone) == 0 || len(gone) < least {
		d.mu.Unlock()
		return nil
	}
	d.forgotten = nil
	d.mu.Unlock()
	for len(gone) > 0 {
		batch := gone[:min(len(gone), 5*forgetBatch)]
		if err := d.removeRuns(batch); err != nil {
			d.mu.Lock()
			d.forgotten = append(gone, d.forgotten...)
			d.mu.Unlock()
			return err
		}
		gone = gone[len(batch):]
	}
	return nil
}

func (d *Daemon) removeRuns(batch []*run) error {
	ids := make([]string, len(batch))
	for i, r := range batch {
		ids[i] = r.record().TaskID
	}
	if _, err := d.ledger.append(entry{Forgotten: ids}); err != nil {
		return err
	}
	for _, id := range ids {
		if err := d.disk.remove(id); err != nil {
			return err
		}
	}
	return nil
}
