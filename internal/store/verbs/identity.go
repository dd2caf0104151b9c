package verbs

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// putDoc stores a doc that no other row depends on.
type putDoc struct {
	kind, id string
	body     []byte
}

func (v *putDoc) run(x *workingSet) error {
	if x.missing {
		return errMissing
	}
	x.put(v.kind, v.id, 0, v.body, nil)
	return nil
}

// deleteDoc deletes such a doc.
type deleteDoc struct {
	kind, id string
	was      bool
}

func (v *deleteDoc) run(x *workingSet) error {
	was := x.doc(v.kind, v.id)
	if x.missing {
		return errMissing
	}
	if v.was = was != nil; v.was {
		x.drop(v.kind, v.id)
	}
	return nil
}

func (s *Store) deleteDoc(ctx context.Context, kind, id string) (bool, error) {
	v := &deleteDoc{kind: kind, id: id}
	if err := s.do(ctx, v, 0); err != nil {
		return false, err
	}
	return v.was, nil
}

// PutToken stores a token by id.
func (s *Store) PutToken(ctx context.Context, t signalbox.Token) error {
	return s.do(ctx, &putDoc{kindToken, t.ID, pack.Token(&t)}, 0)
}

// DeleteToken deletes a token and reports whether it existed.
func (s *Store) DeleteToken(ctx context.Context, id string) (was bool, err error) {
	return s.deleteDoc(ctx, kindToken, id)
}

// Tokens lists the tokens by id.
func (s *Store) Tokens(ctx context.Context) ([]signalbox.Token, error) {
	return readAll(ctx, s, kindToken, pack.ReadToken)
}

// PutUser stores a user by id.
func (s *Store) PutUser(ctx context.Context, u signalbox.User) error {
	return s.do(ctx, &putDoc{kindUser, u.ID, pack.User(&u)}, 0)
}

// DeleteUser deletes a user and reports whether it existed.
func (s *Store) DeleteUser(ctx context.Context, id string) (was bool, err error) {
	return s.deleteDoc(ctx, kindUser, id)
}

// Users lists the users by id.
func (s *Store) Users(ctx context.Context) ([]signalbox.User, error) {
	return readAll(ctx, s, kindUser, pack.ReadUser)
}

type appendAudit struct {
	row signalbox.Audit
	got signalbox.Audit
}

const auditHead = "head"

// AppendAudit adds a row to the audit log.
func (s *Store) AppendAudit(ctx context.Context, a signalbox.Audit) (signalbox.Audit, error) {
	v := &appendAudit{row: a}
	if err := s.do(ctx, v, len(a.Details)); err != nil {
		return signalbox.Audit{}, err
	}
	return v.got, nil
}

func (v *appendAudit) run(x *workingSet) error {
	head, err := decodeDoc(x.doc(kindAuditHead, auditHead), readHead)
	if err != nil {
		return err
	}
	if x.missing {
		return errMissing
	}
	a := v.row
	a.At = a.At.UTC().Truncate(time.Millisecond)
	a.Seq, a.Prev = 1, signalbox.AuditRoot
	if head != nil {
		a.Seq, a.Prev = head.Seq+1, head.Hash
	}
	a.Hash = a.Sum()
	body := pack.Audit(&a)
	x.put(kindAudit, auditID(a.Seq), a.Seq, body, nil)
	x.put(kindAuditHead, auditHead, a.Seq, headBody(a.Seq, body), &a)
	v.got = a
	return nil
}

// auditID returns ids that sort by Seq.
func auditID(seq int64) string { return fmt.Sprintf("%020d", seq) }

// The head is the newest row, preceded by its Seq.
func headBody(seq int64, row []byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(seq)), row...) //nolint:gosec // never negative
}

func readHead(_ string, body []byte) (signalbox.Audit, error) {
	if len(body) < 8 {
		return signalbox.Audit{}, signalbox.Errorf(signalbox.CodeStoreCorrupt, "the head of the audit log cannot be read: it is damaged")
	}
	return pack.ReadAudit(int64(binary.BigEndian.Uint64(body)), body[8:]) //nolint:gosec // as it was written
}

// AuditHead returns the newest row of the audit log.
func (s *Store) AuditHead(ctx context.Context) (signalbox.Audit, error) {
	head, err := readDoc(ctx, s, kindAuditHead, auditHead, readHead)
	if err != nil || head == nil {
		return signalbox.Audit{}, err
	}
	return *head, nil
}

// auditPage is how many rows AuditLog reads at once.
const auditPage = 1000

// AuditLog lists rows of the audit log.
func (s *Store) AuditLog(ctx context.Context, q store.AuditQuery) (list []signalbox.Audit, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if q.Limit < 1 || q.Limit > 1000 {
		return nil, signalbox.Invalid("limit", "the limit of a page is 1 to 1000, not %d", q.Limit)
	}
	ask := Page{Kind: kindAudit, Falling: q.Newest, Limit: auditPage}
	if q.After != 0 {
		ask.After = &Doc{DocKey: DocKey{kindAudit, auditID(max(0, q.After))}}
	}
	for {
		docs, err := s.page(ctx, ask)
		if err != nil {
			return nil, err
		}
		for i := range docs {
			a, err := pack.ReadAudit(docs[i].Sort, docs[i].Body)
			if err != nil {
				return nil, err
			}
			if q.Matches(&a) {
				list = append(list, a)
			}
			if len(list) == q.Limit {
				return list, nil
			}
		}
		if len(docs) < ask.Limit {
			return list, nil
		}
		ask.After = &docs[len(docs)-1]
	}
}
