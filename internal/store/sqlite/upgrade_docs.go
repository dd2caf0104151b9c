package sqlite

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// docs converts the rows of a table to docs by f.
func (c *conn) docs(ctx context.Context, sql string, f func(q *query) ([]verbs.Doc, error)) error {
	return c.every(ctx, sql, func(q *query) error {
		docs, err := f(q)
		for i := range docs {
			if err == nil {
				err = c.putDoc(&docs[i])
			}
		}
		return err
	})
}

func (c *conn) upgradeSessions(ctx context.Context) error {
	const all = `SELECT id, agent, source, owner, title, state, turns, created_ms, last_used_ms, current FROM sessions`
	return c.docs(ctx, all, func(q *query) ([]verbs.Doc, error) {
		s := signalbox.Session{
			ID: q.textAt(0), Agent: q.textAt(1), Source: signalbox.Source(q.textAt(2)), Owner: q.textAt(3), Title: q.textAt(4),
			State: signalbox.SessionState(q.textAt(5)), Turns: int(q.intAt(6)), CreatedAt: q.timeAt(7), LastUsed: q.timeAt(8),
			Current: q.boolAt(9),
		}
		if s.State == "" {
			s.State = signalbox.SessionActive
		}
		return verbs.SessionDocs(&s), nil
	})
}

// The flags of an old agent.
const (
	traitFencing = 1
	traitProof   = 2
)

func (c *conn) upgradeFleet(ctx context.Context) error {
	const agents = `SELECT name, kind, url, slots, fencing, source, sealed_token, work_dir, version, created_ms FROM agents`
	err := c.docs(ctx, agents, func(q *query) ([]verbs.Doc, error) {
		a := signalbox.Agent{
			Name: q.textAt(0), Kind: q.textAt(1), URL: q.textAt(2), Slots: int(q.intAt(3)),
			Fencing: q.intAt(4)&traitFencing != 0, Proof: q.intAt(4)&traitProof != 0, Source: signalbox.AgentSource(q.textAt(5)),
			WorkDir: q.textAt(7), Version: q.textAt(8), CreatedAt: q.timeAt(9),
		}
		if !q.isNull(6) {
			a.SealedToken = q.bytesAt(6)
		}
		return []verbs.Doc{verbs.AgentDoc(&a)}, nil
	})
	if err != nil {
		return err
	}
	return c.docs(ctx, `SELECT queue, reason, paused_by, at_ms, until_ms FROM pauses`, func(q *query) ([]verbs.Doc, error) {
		p := signalbox.Pause{Queue: q.textAt(0), Reason: q.textAt(1), By: q.textAt(2), AtMS: q.intAt(3), UntilMS: q.intAt(4)}
		return []verbs.Doc{verbs.PauseDoc(&p)}, nil
	})
}

// upgradeIdentity converts tokens and users, which are packed already.
func (c *conn) upgradeIdentity(ctx context.Context) error {
	for table, doc := range map[string]func(id string, packed []byte) verbs.Doc{"tokens": verbs.TokenDoc, "users": verbs.UserDoc} {
		err := c.docs(ctx, `SELECT id, body FROM `+table, func(q *query) ([]verbs.Doc, error) {
			return []verbs.Doc{doc(q.textAt(0), q.bytesAt(1))}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) upgradeAudit(ctx context.Context) error {
	const all = `SELECT seq, at_ms, event_type, action, principal, user_id, agent_name, resource, result, ip_address,
		user_agent, details, severity, prev, hash FROM audit ORDER BY seq`
	return c.docs(ctx, all, func(q *query) ([]verbs.Doc, error) {
		return verbs.AuditDocs(&signalbox.Audit{
			Seq: q.intAt(0), At: q.timeAt(1), EventType: q.textAt(2), Action: q.textAt(3), Principal: q.textAt(4),
			UserID: q.textAt(5), AgentName: q.textAt(6), Resource: q.textAt(7), Result: q.textAt(8), IPAddress: q.textAt(9),
			UserAgent: q.textAt(10), Details: q.textAt(11), Severity: q.textAt(12), Prev: q.textAt(13), Hash: q.textAt(14),
		}), nil
	})
}

func (c *conn) upgradeSchedules(ctx context.Context) error {
	err := c.docs(ctx, `SELECT id, rev, name, body FROM schedules`, func(q *query) ([]verbs.Doc, error) {
		s, err := pack.ReadSchedule(q.textAt(0), q.bytesAt(3))
		s.Rev, s.Name = q.intAt(1), q.textAt(2)
		return verbs.ScheduleDocs(&s), err
	})
	if err != nil {
		return err
	}
	const runs = `SELECT s.id, r.id, r.body FROM schedule_runs r JOIN schedules s ON s.n = r.schedule`
	return c.docs(ctx, runs, func(q *query) ([]verbs.Doc, error) {
		r, err := pack.ReadRun(q.textAt(0), q.textAt(1), q.bytesAt(2))
		return verbs.RunDocs(&r), err
	})
}

func (c *conn) upgradeCounts(ctx context.Context) error {
	const counts = `SELECT (SELECT count(*) FROM schedules), ticket_place, ticket_fence FROM old_meta`
	err := c.docs(ctx, counts, func(q *query) ([]verbs.Doc, error) {
		return verbs.CountDocs(q.intAt(0), q.intAt(1), q.intAt(2)), nil
	})
	if err != nil {
		return err
	}
	return c.docs(ctx, `SELECT owner, bytes FROM kept`, func(q *query) ([]verbs.Doc, error) {
		return []verbs.Doc{verbs.KeptDoc(q.textAt(0), q.intAt(1))}, nil
	})
}
