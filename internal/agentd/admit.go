package agentd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
)

// refusal is an error response.
type refusal struct {
	status int
	body   api.AgentRefusal
}

func (r *refusal) Error() string { return r.body.Message }

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status, api.AgentRefusal{Error: code, Message: fmt.Sprintf(format, args...)}}
}

func invalid(format string, args ...any) *refusal {
	return refuse(http.StatusBadRequest, "validation_error", format, args...)
}

// Accept takes a task as POST /task does, as part of the trace in ctx. It returns once the run
// is durable, before the program has started. If ctx ends earlier, the task may still be
// accepted: ask by its queue_id.
func (d *Daemon) Accept(ctx context.Context, t api.AgentTask) (api.AgentTaskAccepted, error) {
	r, ref := d.reserve(t, trace.SpanContextFromContext(ctx))
	if ref != nil {
		return api.AgentTaskAccepted{}, ref
	}
	select {
	case <-r.admitted:
	case <-ctx.Done():
		return api.AgentTaskAccepted{}, ctx.Err()
	}
	if r.refused != nil {
		return api.AgentTaskAccepted{}, r.refused
	}
	rec := r.record()
	return api.AgentTaskAccepted{
		TaskID: rec.TaskID, SessionID: rec.SessionID, Status: stateWorking,
		QueueID: rec.QueueID, Fence: rec.Fence,
	}, nil
}

// reserve decides under one lock between an earlier run of the same identity, a new run that
// takes its lane, and a refusal.
func (d *Daemon) reserve(t api.AgentTask, caller trace.SpanContext) (*run, *refusal) {
	job, ref := d.check(t)
	if ref != nil {
		return nil, ref
	}
	noRoom := d.noRoomFor(&t, job.place)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return nil, refuse(http.StatusServiceUnavailable, "shutting_down", "the agent is shutting down; try again later")
	}
	if old := d.byQueue[t.QueueID]; old != nil && t.QueueID != "" {
		rec := old.record()
		if rec.Director == t.Director && t.Fence < rec.Fence && t.Fence > 0 {
			return nil, stale(rec.Fence)
		}
		if t.Fence == rec.Fence || t.Fence == 0 {
			return old, nil
		}
	}
	if noRoom != "" {
		return nil, d.refuseForRoom(noRoom)
	}
	lane, ref := d.chooseLane(t)
	if ref != nil {
		return nil, ref
	}
	r := d.newRun(t, job, lane)
	r.trace.caller = caller
	if ref := d.checkFence(r); ref != nil {
		return nil, ref
	}
	if holder := d.lanes[lane]; holder != nil {
		old := holder.record()
		if t.Fence <= old.Fence || old.Fence == 0 || t.Director != old.Director {
			return nil, busy(holder)
		}
		r.prev = holder
	}
	d.lanes[lane] = r
	d.runs[r.rec.TaskID] = r
	if t.QueueID != "" {
		r.replaced = d.byQueue[t.QueueID]
		d.byQueue[t.QueueID] = r
		d.raiseFence(&r.rec)
	}
	d.notify()
	d.wg.Go(func() { d.acceptReserved(r) })
	return r, nil
}

func stale(highest int64) *refusal {
	ref := refuse(http.StatusConflict, "stale_fence", "a newer claim with fence %d has been seen; this one is void", highest)
	ref.body.HighestFence = highest
	return ref
}

func busy(holder *run) *refusal {
	cur := holder.current()
	ref := refuse(http.StatusConflict, "agent_busy", "the agent is busy with %s", cur.ID)
	if rec := holder.record(); rec.terminal() && rec.Error != nil { // otherwise it is still ending
		ref.body.Message = fmt.Sprintf("%s has ended, but its processes cannot be killed: %s", cur.ID, rec.Error.Message)
	}
	ref.body.CurrentTask = &cur
	return ref
}

// checkFence compares the fence with the highest one of the lane. The same fence for another
// task is as stale as a lower one.
func (d *Daemon) checkFence(r *run) *refusal {
	if r.rec.Fence == 0 {
		return nil
	}
	top := d.fences[r.rec.fenceKey()]
	if r.rec.Fence < top.Fence || (r.rec.Fence == top.Fence && r.rec.QueueID != top.QueueID) {
		return stale(top.Fence)
	}
	return nil
}

// chooseLane takes the lane that the task names. A task without a fence, from a director
// without slots, gets any free lane.
func (d *Daemon) chooseLane(t api.AgentTask) (laneID, *refusal) {
	named := laneID{t.Isolated, t.Slot}
	if ref := d.checkLane(named); ref != nil {
		return laneID{}, ref
	}
	if t.Fence > 0 || d.lanes[named] == nil {
		return named, nil
	}
	for i := range d.slots(t.Isolated) {
		if l := (laneID{t.Isolated, i}); d.lanes[l] == nil {
			return l, nil
		}
	}
	return laneID{}, busy(d.lanes[named])
}

// slots returns the number of lanes of a kind.
func (d *Daemon) slots(isolated bool) int {
	if isolated {
		return d.cfg.IsolatedSlots
	}
	return d.cfg.Slots
}

func (d *Daemon) checkLane(l laneID) *refusal {
	if n := d.slots(l.Isolated); l.Slot < 0 || l.Slot >= n {
		return invalid("slot is %d: this agent has the slots 0 to %d", l.Slot, n-1)
	}
	return nil
}

func (d *Daemon) newRun(t api.AgentTask, job job, lane laneID) *run {
	now := time.Now().UTC()
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	r := &run{
		d: d, task: t, job: job,
		admitted: make(chan struct{}), stopping: make(chan struct{}), done: make(chan struct{}), endKnown: make(chan struct{}),
	}
	r.rec = record{
		Slot: lane.Slot, Isolated: lane.Isolated, Director: t.Director, PromptPreview: preview(t.Prompt), Budget: t.Budget,
	}
	r.rec.TaskID = "task-" + hex.EncodeToString(id[:])
	r.rec.State, r.rec.StartedAt = stateWorking, &now
	r.rec.QueueID, r.rec.Fence, r.rec.SessionID = t.QueueID, t.Fence, t.SessionID
	if t.SessionID == "" && !t.Isolated {
		r.rec.SessionID = runner.NewUUID()
	}
	r.log = newOutLog(d.outputPath(r.rec.TaskID), d.cfg.LogCap)
	return r
}

// acceptReserved accepts a reserved run: it stops the old run of its lane and writes the
// ledger. It continues if the caller disconnects, so that a query by queue_id has one answer.
func (d *Daemon) acceptReserved(r *run) {
	ref := d.stopVoided(r)
	if ref == nil {
		if err := d.store(r.writeLedger); err != nil {
			ref = refuse(http.StatusInternalServerError, "storage_error", "the task could not be stored and was not accepted: %v", err)
		}
	}
	if ref != nil {
		d.cancelReservation(r, ref)
		return
	}
	close(r.admitted)
	r.execute()
	d.maintain()
}

// store writes a ledger entry.
func (d *Daemon) store(enter func() error) error {
	if err := d.disk.ready(); err != nil {
		return err
	}
	err := enter()
	if errors.Is(err, errLedgerFull) {
		d.maintain() // writing failed before, or there would be room
		err = enter()
	}
	return err
}

// writeLedger writes the run to the ledger.
func (r *run) writeLedger() error {
	r.stored.Lock()
	defer r.stored.Unlock()
	rec := r.record()
	var err error
	r.seq, err = r.d.ledger.append(entry{Accepted: &rec})
	return err
}

// stopVoided stops the run that r voids, and the run before that if the voided run was itself
// refused.
func (d *Daemon) stopVoided(r *run) *refusal {
	for r.prev != nil {
		old := r.prev
		old.requestStop(stop{state: stateFailed, errType: "stale_fence", message: fmt.Sprintf("a newer claim with fence %d voided this run", r.rec.Fence)})
		<-old.admitted
		if old.refused != nil {
			r.prev = old.prev
			continue
		}
		<-old.done
		if old.alive() {
			return busy(old)
		}
		break
	}
	select {
	case <-r.stopping: // voided or cancelled in the meantime
		if s := r.stopReason(); s != nil && s.errType == "stale_fence" {
			d.mu.Lock()
			defer d.mu.Unlock()
			return stale(d.fences[r.rec.fenceKey()].Fence)
		}
	default:
	}
	return nil
}

func (d *Daemon) cancelReservation(r *run, ref *refusal) {
	d.mu.Lock()
	delete(d.runs, r.rec.TaskID)
	if q := r.rec.QueueID; q != "" && d.byQueue[q] == r {
		delete(d.byQueue, q)
		if r.replaced != nil {
			d.byQueue[q] = r.replaced
		}
	}
	lane := r.rec.lane()
	if d.lanes[lane] == r {
		delete(d.lanes, lane)
		if r.prev != nil && r.prev.alive() {
			d.lanes[lane] = r.prev
		}
	}
	d.notify()
	d.mu.Unlock()
	r.refused = ref
	close(r.admitted)
	close(r.done)
}
