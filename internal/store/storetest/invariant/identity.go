package invariant

import (
	"context"
	"fmt"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func (v *view) loadSessions(ctx context.Context, r store.Reader) error {
	q := store.SessionQuery{Limit: page}
	for {
		p, err := r.Sessions(ctx, q)
		if err != nil {
			return err
		}
		v.sessions = append(v.sessions, p.Sessions...)
		if p.Next == "" {
			return nil
		}
		if p.Next == q.Before {
			return fmt.Errorf("the list of sessions does not get past the cursor %q", p.Next)
		}
		q.Before = p.Next
	}
}

// checkSessions: each is listed once, in order, and an agent has at most one current session.
func (v *view) checkSessions() {
	seen, current := map[string]bool{}, map[string]string{}
	for i, s := range v.sessions {
		if seen[s.ID] {
			v.wrong("session %s is listed twice", s.ID)
		}
		seen[s.ID] = true
		switch s.State {
		case signalbox.SessionActive, signalbox.SessionArchived, signalbox.SessionGone:
		default:
			v.wrong("session %s has the unknown state %q", s.ID, s.State)
		}
		if other, two := current[s.Agent]; s.Current && two {
			v.wrong("sessions %s and %s of agent %s are both current", other, s.ID, s.Agent)
		}
		if s.Current {
			current[s.Agent] = s.ID
		}
		if i > 0 && v.sessions[i-1].LastUsed.Before(s.LastUsed) {
			v.wrong("sessions: %s stands before %s", v.sessions[i-1].ID, s.ID)
		}
	}
}

// loadSchedules reads the schedules and their open runs.
func (v *view) loadSchedules(ctx context.Context, r store.Reader) (err error) {
	if v.schedules, err = r.Schedules(ctx); err != nil {
		return err
	}
	v.openRuns, err = r.OpenRuns(ctx)
	return err
}

// checkSchedules: each is listed once, its name is unique, and each open run belongs to one of them.
func (v *view) checkSchedules() {
	ids := map[string]bool{}
	for i, s := range v.schedules {
		if ids[s.ID] {
			v.wrong("schedule %s is listed twice", s.ID)
		}
		ids[s.ID] = true
		if s.Rev < 1 {
			v.wrong("schedule %s has revision %d", s.ID, s.Rev)
		}
		if i > 0 && v.schedules[i-1].Name >= s.Name {
			v.wrong("schedules: %s stands before %s", v.schedules[i-1].Name, s.Name)
		}
	}
	seen := map[[2]string]bool{}
	for _, run := range v.openRuns {
		switch at := [2]string{run.ScheduleID, run.ID}; {
		case !run.Status.Open():
			v.wrong("firing %s of schedule %s is %s, and listed as open", run.ID, run.ScheduleID, run.Status)
		case !ids[run.ScheduleID]:
			v.wrong("firing %s is open, and there is no schedule %s", run.ID, run.ScheduleID)
		case seen[at]:
			v.wrong("firing %s of schedule %s is listed twice", run.ID, run.ScheduleID)
		default:
			seen[at] = true
		}
	}
}

// checkAudit follows the chain of the audit log to its head. It reads page by page, so the log may grow
// meanwhile.
func (v *view) checkAudit(ctx context.Context, r store.Reader) error {
	head, err := r.AuditHead(ctx)
	if err != nil {
		return err
	}
	var last signalbox.Audit
	var prev *signalbox.Audit
	for {
		rows, err := r.AuditLog(ctx, store.AuditQuery{After: last.Seq, Limit: page})
		if err != nil {
			return err
		}
		for i := range rows {
			if err := signalbox.CheckAudit(prev, &rows[i]); err != nil {
				v.wrong("the audit log: %v", err)
				return nil
			}
			last = rows[i]
			prev = &last
		}
		if len(rows) == 0 {
			break
		}
	}
	if head.Seq > last.Seq || (head.Seq == last.Seq && head != last) {
		v.wrong("the audit log ends with row %d, its head is row %d", last.Seq, head.Seq)
	}
	return nil
}
