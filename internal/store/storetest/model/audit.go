package model

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// AppendAudit adds a row to the audit log.
func (s *Store) AppendAudit(ctx context.Context, a signalbox.Audit) (signalbox.Audit, error) {
	if err := s.lock(ctx); err != nil {
		return signalbox.Audit{}, err
	}
	defer s.mu.Unlock()
	a.At = a.At.UTC().Truncate(time.Millisecond)
	a.Seq, a.Prev = int64(len(s.audit))+1, signalbox.AuditRoot
	if a.Seq > 1 {
		a.Prev = s.audit[a.Seq-2].Hash
	}
	a.Hash = a.Sum()
	s.audit = append(s.audit, a)
	return a, nil
}

// AuditHead returns the newest row of the audit log.
func (s *Store) AuditHead(ctx context.Context) (signalbox.Audit, error) {
	if err := s.lock(ctx); err != nil {
		return signalbox.Audit{}, err
	}
	defer s.mu.Unlock()
	if len(s.audit) == 0 {
		return signalbox.Audit{}, nil
	}
	return s.audit[len(s.audit)-1], nil
}

// AuditLog lists rows of the audit log.
func (s *Store) AuditLog(ctx context.Context, q store.AuditQuery) ([]signalbox.Audit, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if q.Limit < 1 || q.Limit > 1000 {
		return nil, signalbox.Invalid("limit", "the limit of a page is 1 to 1000, not %d", q.Limit)
	}
	rows := slices.Clone(s.audit)
	if q.Newest {
		slices.Reverse(rows)
	}
	var list []signalbox.Audit
	for _, a := range rows {
		if len(list) == q.Limit {
			break
		}
		if q.Matches(&a) {
			list = append(list, a)
		}
	}
	return list, nil
}
