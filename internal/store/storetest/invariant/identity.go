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

// checkSessions: each is listed once, in order, and chats of an agent go on
// with one at most.
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

// checkAudit follows the chain of the audit log to its head. It reads page by
// page, because the log only grows.
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
