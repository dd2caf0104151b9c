package agentd

import (
	"net/http"

	"github.com/signalbox-ai/signalbox/api"
)

func (d *Daemon) postVoid(w http.ResponseWriter, req *http.Request) {
	var v api.AgentVoid
	if ref := d.decode(w, req, &v, false); ref != nil {
		replyError(w, ref)
		return
	}
	done, err := d.Void(req.PathValue("id"), v)
	if err != nil {
		replyError(w, err)
		return
	}
	reply(w, http.StatusOK, done)
}

// Void promises that a claim which never came here is taken no more, as
// POST /task/{queue_id}/void does. It returns once the promise is on disk. A
// claim that did come is refused: ask what became of it.
func (d *Daemon) Void(queueID string, v api.AgentVoid) (api.AgentVoided, error) {
	ref := d.checkVoid(queueID, &v)
	mark := record{Slot: v.Slot, Isolated: v.Isolated, Director: v.Director}
	mark.Fence = v.Fence
	if ref == nil {
		ref = d.raiseVoid(queueID, &mark)
	}
	if ref != nil {
		return api.AgentVoided{}, ref
	}
	if err := d.store(func() error { _, err := d.ledger.append(entry{Void: &mark}); return err }); err != nil {
		return api.AgentVoided{}, refuse(http.StatusInternalServerError, "storage_error", "that the claim is void could not be stored: %v", err)
	}
	return api.AgentVoided{QueueID: queueID, Fence: v.Fence, Status: api.StatusVoid}, nil
}

func (d *Daemon) checkVoid(queueID string, v *api.AgentVoid) *refusal {
	switch {
	case !queueForm.MatchString(queueID):
		return invalid("the task is named by its queue_id: 1 to 200 letters, digits, '.', '_', ':' or '-'")
	case v.Fence < 1:
		return invalid("fence is required, from 1")
	case len(v.Director) > 200:
		return invalid("director may have 200 bytes at most")
	}
	return d.checkLane(laneID{v.Isolated, v.Slot})
}

// raiseVoid counts the fence as seen, under the lock under which offers are
// decided about. A mark without a task lets no task have that fence.
func (d *Daemon) raiseVoid(queueID string, mark *record) *refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.byQueue[queueID]; r != nil {
		if rec := r.record(); rec.Fence == mark.Fence && rec.Director == mark.Director {
			return inHand(r)
		}
	}
	d.raiseFence(mark)
	return nil
}

// inHand refuses what only a task that never began, or has ended, allows.
func inHand(r *run) *refusal {
	if rec := r.record(); rec.terminal() {
		return alreadyEnded(rec)
	}
	ref := busy(r)
	ref.body.Error = "task_in_progress"
	return ref
}
