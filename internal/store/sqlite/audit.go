package sqlite

import (
	"context"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func bindAudit(q *query, a *signalbox.Audit) *query {
	q.int(a.Seq).time(a.At).text(a.EventType).text(a.Action).text(a.Principal).text(a.UserID).text(a.AgentName)
	q.text(a.Resource).text(a.Result).text(a.IPAddress).text(a.UserAgent).text(a.Details).text(a.Severity)
	return q.exact(a.Prev).exact(a.Hash)
}

func scanAudit(q *query) signalbox.Audit {
	return signalbox.Audit{
		Seq: q.intAt(0), At: q.timeAt(1), EventType: q.textAt(2), Action: q.textAt(3), Principal: q.textAt(4),
		UserID: q.textAt(5), AgentName: q.textAt(6), Resource: q.textAt(7), Result: q.textAt(8), IPAddress: q.textAt(9),
		UserAgent: q.textAt(10), Details: q.textAt(11), Severity: q.textAt(12), Prev: q.textAt(13), Hash: q.textAt(14),
	}
}

// AppendAudit adds a row to the audit log.
func (s *Store) AppendAudit(ctx context.Context, a signalbox.Audit) (got signalbox.Audit, err error) {
	a.At = a.At.UTC().Truncate(time.Millisecond)
	err = s.do(ctx, len(a.Details)+len(a.UserAgent), func(w *writer) error {
		head, err := w.auditLog(&store.AuditQuery{Newest: true, Limit: 1})
		if err != nil {
			return err
		}
		got = a // the writer may run this twice
		got.Seq, got.Prev = 1, signalbox.AuditRoot
		if len(head) > 0 {
			got.Seq, got.Prev = head[0].Seq+1, head[0].Hash
		}
		got.Hash = got.Sum()
		q := w.write(stAuditInsert)
		return bindAudit(&q, &got).run()
	})
	if err != nil {
		return signalbox.Audit{}, err
	}
	return got, nil
}

// AuditHead returns the newest row of the audit log.
func (s *Store) AuditHead(ctx context.Context) (signalbox.Audit, error) {
	head, err := s.AuditLog(ctx, store.AuditQuery{Newest: true, Limit: 1})
	if err != nil || len(head) == 0 {
		return signalbox.Audit{}, err
	}
	return head[0], nil
}

// AuditLog lists rows of the audit log.
func (s *Store) AuditLog(ctx context.Context, a store.AuditQuery) (list []signalbox.Audit, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if a.Limit < 1 || a.Limit > 1000 {
		return nil, signalbox.Invalid("limit", "the limit of a page is 1 to 1000, not %d", a.Limit)
	}
	err = s.read(ctx, func(c *conn) (err error) {
		list, err = c.auditLog(&a)
		return err
	})
	return list, err
}

func (c *conn) auditLog(a *store.AuditQuery) (list []signalbox.Audit, err error) {
	id, from := stAuditAfter, a.After
	if a.Newest {
		id = stAuditBefore
		if from == 0 {
			from = math.MaxInt64
		}
	}
	q := c.on(id)
	q.int(from).text(a.EventType).text(a.Action).text(a.UserID).text(a.AgentName).text(a.Severity).time(a.Since)
	q.int(int64(a.Limit))
	for q.next() {
		list = append(list, scanAudit(&q))
	}
	return list, q.end()
}
