package agentd

import (
	"errors"
	"slices"
)

// What a run leaves behind is put in order after its end has been told, so
// that no task waits for it.

// forgetBatch is how many runs are removed from the disk at a time.
const forgetBatch = 20

// tidy makes ledger slots free and removes what is forgotten, when enough of
// either has come together.
func (d *Daemon) tidy() {
	d.keeping.Lock()
	defer d.keeping.Unlock()
	if err := errors.Join(d.checkpoint(), d.forget(forgetBatch)); err != nil {
		d.cfg.Logger.Error("old runs could not be put in order", "error", err)
	}
}

// checkpoint puts on the disk, elsewhere, what old entries of the ledger hold
// up: the fences, and the runs that are not forgotten. The caller holds
// keeping or is alone.
func (d *Daemon) checkpoint() error {
	upTo := d.ledger.due()
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
		if err := r.settleBelow(upTo); err != nil {
			return err
		}
	}
	d.ledger.release(upTo)
	return nil
}

// settleBelow makes a run durable whose entry has a sequence number below upTo.
func (r *run) settleBelow(upTo int64) error {
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

// prune keeps the newest ended runs; the caller holds mu. The others are gone
// for who asks, and leave the disk with the next batch.
func (d *Daemon) prune() {
	for len(d.ended) > historySize {
		old := d.ended[0]
		rec := old.record()
		if d.lanes[rec.lane()] == old {
			return // it cannot be killed; all that is younger stays as well
		}
		if d.cfg.Pull && rec.QueueID != "" && !old.isTold() {
			return // no director has taken its end yet
		}
		delete(d.runs, rec.TaskID)
		if d.byQueue[rec.QueueID] == old {
			delete(d.byQueue, rec.QueueID)
		}
		d.ended = d.ended[1:]
		d.forgotten = append(d.forgotten, old)
	}
}

// forget removes the forgotten runs from the disk when there are at least
// that many. The ledger says so first: it would take a run without a record
// for one that a power cut had cut off. Fences outlive their runs in the
// ledger, and beyond it by checkpoint.
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
