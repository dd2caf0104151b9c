package schedule

import (
	"cmp"
	"context"
	"errors"

	"github.com/signalbox-ai/signalbox"
)

// trigger is a request for a firing now.
type trigger struct {
	by   string
	run  signalbox.ScheduleRun // set when it is stored
	done chan struct{}
	err  error
}

// answer completes the request. It is called once.
func (t *trigger) answer(r signalbox.ScheduleRun, err error) {
	t.run, t.err = r, err
	close(t.done)
}

// Trigger fires a schedule now, enabled or not. It returns when the firing is decided or held. If the queue
// does not answer it returns when the context ends, and the firing continues.
//
// Errors: CodeNotFound; CodeConflict while a firing of it is open; CodeUnavailable while the
// scheduler does not run.
func (s *Scheduler) Trigger(ctx context.Context, ref, by string) (signalbox.ScheduleRun, error) {
	row, err := s.Get(ctx, ref)
	if err != nil {
		return signalbox.ScheduleRun{}, err
	}
	t := &trigger{by: by, done: make(chan struct{})}
	if err := s.setTrigger(row, t); err != nil {
		return signalbox.ScheduleRun{}, err
	}
	select {
	case <-t.done:
		return s.result(ctx, row.ID, t)
	case <-ctx.Done():
		return signalbox.ScheduleRun{}, ctx.Err()
	case <-s.ctx.Done():
		return signalbox.ScheduleRun{}, notRunning()
	}
}

func notRunning() error {
	return signalbox.Errorf(signalbox.CodeUnavailable, "the scheduler is not running: start it, or try again when it has started")
}

// setTrigger passes a trigger to the schedule's next turn.
func (s *Scheduler) setTrigger(row signalbox.Schedule, t *trigger) error {
	s.mu.Lock()
	known := s.entries[row.ID] != nil
	running := s.running && !s.closed
	s.mu.Unlock()
	if !running {
		return notRunning()
	}
	if !known {
		s.applyStored(row)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[row.ID]
	switch {
	case e == nil:
		return notFound(row.Name)
	case e.trigger != nil:
		return errUnderWay(row.Name, "")
	case e.busy && len(e.open) > 0: // a submission may be in flight
		return errUnderWay(row.Name, e.open[0].run.Status)
	}
	e.trigger = t
	s.rearm(e)
	s.wakeLoop()
	return nil
}

func errUnderWay(name string, status signalbox.RunStatus) error {
	status = cmp.Or(status, signalbox.RunFiring)
	return signalbox.Errorf(signalbox.CodeConflict, "a firing of schedule %s is under way (%s): wait until it is decided", name, status)
}

// result returns the record of a triggered firing, from the store if another scheduler decided
// it.
func (s *Scheduler) result(ctx context.Context, id string, t *trigger) (signalbox.ScheduleRun, error) {
	if t.err != nil || t.run.Status != signalbox.RunFiring {
		return t.run, t.err
	}
	runs, err := s.store.Runs(ctx, id, signalbox.MaxScheduleRuns)
	for _, r := range runs {
		if r.ID == t.run.ID {
			return r, nil
		}
	}
	return t.run, err
}

// startManual starts the firing of a pending trigger.
func (t *turn) startManual() {
	t.s.mu.Lock()
	tr := t.e.trigger
	t.e.trigger = nil
	t.s.mu.Unlock()
	if tr == nil {
		return
	}
	err := t.startFiring(tr)
	if errors.Is(err, errGone) {
		err = notFound(t.e.row.Name)
	}
	if err != nil {
		tr.answer(signalbox.ScheduleRun{}, err)
	}
}

func (t *turn) startFiring(tr *trigger) error {
	id, err := newID("run-")
	if err != nil {
		return err
	}
	for range maxRetries {
		if len(t.open) > 0 {
			return errUnderWay(t.row.Name, t.open[0].run.Status)
		}
		now := t.s.now()
		tr.run = signalbox.ScheduleRun{
			ID: id, ScheduleID: t.row.ID, Nominal: now, FiredAt: now, Trigger: signalbox.TriggerManual, Status: signalbox.RunFiring, By: tr.by,
		}
		row := t.row
		row.LastRun, row.LastStatus, row.LastError = now, signalbox.RunFiring, ""
		err := t.put(row, []signalbox.ScheduleRun{tr.run}, signalbox.Entry{})
		if errors.Is(err, ErrStale) {
			err = t.read(true)
			if err == nil {
				continue
			}
		}
		if err == nil {
			t.s.mu.Lock()
			if t.e.waiters == nil {
				t.e.waiters = map[string]*trigger{}
			}
			t.e.waiters[id] = tr
			t.s.mu.Unlock()
		}
		return err
	}
	return errUnderWay(t.row.Name, "")
}
