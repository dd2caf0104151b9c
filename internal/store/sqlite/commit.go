package sqlite

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Commit writes d in one transaction, or nothing. It does not end with its context.
func (b *Backend) Commit(_ context.Context, d *verbs.Delta) error {
	if !b.draft.begun {
		if err := b.quarantineSuspects(); err != nil {
			return err
		}
	}
	if d.From.Moment != b.totals.Moment {
		return verbs.ErrMoved
	}
	onCommit, err := b.write(d)
	if err != nil {
		err = b.rollback(err)
	}
	b.draft = draft{}
	if err != nil {
		return b.failed(err, onCommit)
	}
	b.totals.apply(d)
	b.lastWriter, b.lastNumber = d.Writer, d.Number
	return nil
}

// write runs the transaction. onCommit: the error came from the commit.
func (b *Backend) write(d *verbs.Delta) (onCommit bool, err error) {
	c := b.writer
	if err := b.begin(); err != nil {
		return false, err
	}
	for _, write := range [...]func(*conn, *verbs.Delta) error{writeTasks, writeLarge, writeSlots, writeDocs, b.writeJournal, b.writeMeta} {
		if err := write(c, d); err != nil {
			return false, err
		}
	}
	if b.opts.CommitDelay > 0 {
		time.Sleep(b.opts.CommitDelay)
	}
	return true, c.do(stCommit)
}

// draft is the transaction of a batch whose rows are written ahead of its Commit.
type draft struct {
	begun bool
	err   error // for its Commit
}

// Draft writes rows of the next batch ahead of its Commit.
func (b *Backend) Draft(d *verbs.Delta) {
	if b.draft.err != nil {
		return
	}
	if !b.draft.begun {
		if b.draft.err = b.quarantineSuspects(); b.draft.err != nil {
			return
		}
	}
	if b.draft.err = b.begin(); b.draft.err != nil {
		return
	}
	if b.draft.err = writeTasks(b.writer, d); b.draft.err == nil {
		b.draft.err = writeLarge(b.writer, d)
	}
}

// Undraft rolls back what was drafted.
func (b *Backend) Undraft() {
	if b.draft.begun {
		_ = b.rollback(nil)
	}
	b.draft = draft{}
}

// begin begins a transaction, or continues that of a draft.
func (b *Backend) begin() error {
	if b.draft.begun || b.draft.err != nil {
		return b.draft.err
	}
	err := b.writer.do(stBegin)
	b.draft.begun = err == nil
	return err
}

// do runs a statement without parameters.
func (c *conn) do(id stmtID) error {
	q := c.on(id)
	return q.run()
}

// rollback rolls back, unless SQLite has done so.
func (b *Backend) rollback(err error) error {
	if b.writer.db.AutocommitEnabled() {
		return err
	}
	if bad := b.writer.do(stRollback); bad != nil {
		b.fail(bad)
	}
	return err
}

func writeTasks(c *conn, d *verbs.Delta) error {
	for i := range d.Tasks {
		before, after := d.Tasks[i].Before, d.Tasks[i].After
		if drafted := d.Tasks[i].Drafted; drafted != nil {
			before = drafted
		}
		switch {
		case before == after: // unchanged since it was drafted
		case before == nil:
			q := c.on(stTaskInsert)
			if err := c.bindTask(&q, after).run(); err != nil {
				return taken(err)
			}
		case after == nil:
			if err := c.erase(before.Seq, stRequestDelete, stResultDelete, stTaskDelete); err != nil {
				return err
			}
		default:
			if err := c.update(before, after); err != nil {
				return taken(err)
			}
			if before.HasEnv && after.State.Terminal() && !before.State.Terminal() {
				if err := c.erase(before.Seq); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// taken distinguishes a duplicate ID or key from other errors: no other column is unique.
func taken(err error) error {
	if sqlite.ErrCode(err) == sqlite.ResultConstraintUnique {
		return verbs.ErrTaken
	}
	return err
}

// erase overwrites and deletes the environment of a task, with its other rows.
func (c *conn) erase(seq int64, others ...stmtID) error {
	for _, id := range append([]stmtID{stEnvBlank, stEnvDelete}, others...) {
		q := c.on(id)
		if err := q.int(seq).run(); err != nil {
			return err
		}
	}
	return nil
}

func writeLarge(c *conn, d *verbs.Delta) error {
	for i := range d.Requests {
		r := &d.Requests[i]
		if err := c.putRequest(r.Seq, &r.Request); err != nil {
			return err
		}
		if len(r.Request.SealedEnv) > 0 {
			q := c.on(stEnvPut)
			if err := q.int(r.Seq).bytes(r.Request.SealedEnv).run(); err != nil {
				return err
			}
		}
	}
	for i := range d.Results {
		if err := c.putResult(d.Results[i].Seq, &d.Results[i].Result); err != nil {
			return err
		}
	}
	return nil
}

// putRequest stores a request without its environment.
func (c *conn) putRequest(seq int64, r *signalbox.Request) error {
	c.row = c.key.summed(c.row[:0], sumRequest, seq, func(b []byte) []byte { return pack.RequestRow(b, r) })
	q := c.on(stRequestPut)
	return q.int(seq).bytes(c.row).run()
}

func (c *conn) putResult(seq int64, r *signalbox.Result) error {
	c.row = c.key.summed(c.row[:0], sumResult, seq, func(b []byte) []byte { return pack.ResultRow(b, r) })
	q := c.on(stResultPut)
	return q.int(seq).bytes(c.row).run()
}

func writeSlots(c *conn, d *verbs.Delta) error {
	for i := range d.Slots {
		change := &d.Slots[i]
		q := c.on(stSlotDelete)
		if s := change.After; s != nil {
			q = c.on(stSlotPut)
			q.exact(change.Agent).int(int64(change.Slot)).exact(s.TaskID).int(s.Fence).time(s.Expires).bool(s.Withheld)
		} else {
			q.exact(change.Agent).int(int64(change.Slot))
		}
		if err := q.run(); err != nil {
			return err
		}
	}
	return nil
}

func writeDocs(c *conn, d *verbs.Delta) error {
	for i := range d.Docs {
		if err := c.putDoc(&d.Docs[i]); err != nil {
			return err
		}
	}
	return nil
}

// putDoc stores a doc, or deletes it if it has no body.
func (c *conn) putDoc(doc *verbs.Doc) error {
	if doc.Body == nil {
		q := c.on(stDocDelete)
		return q.exact(doc.Kind).exact(doc.ID).run()
	}
	q := c.on(stDocPut)
	return q.exact(doc.Kind).exact(doc.ID).int(doc.Sort).bytes(doc.Body).run()
}

// writeJournal writes the entries of a batch as one row, and deletes rows that are pruned as a
// whole.
func (b *Backend) writeJournal(c *conn, d *verbs.Delta) error {
	if d.Cut > 0 {
		q := c.on(stJournalDelete)
		if err := q.int(d.Cut).run(); err != nil {
			return err
		}
	}
	if len(d.Entries) == 0 {
		return nil
	}
	return c.putEntries(d.Entries, d.To.Entry, &b.packer)
}

func (c *conn) putEntries(entries []signalbox.Entry, last int64, p *pack.Packer) error {
	c.row = c.row[:0]
	newest := entries[0].At.UnixMilli()
	for i := range entries {
		c.row = p.Entry(c.row, &entries[i])
		newest = max(newest, entries[i].At.UnixMilli())
	}
	q := c.on(stJournalInsert)
	return q.int(last).int(last - int64(len(entries)) + 1).int(newest).bytes(c.row).run()
}

func (b *Backend) writeMeta(c *conn, d *verbs.Delta) error {
	return c.putMeta(&d.To, max(b.totals.prunedUpTo, d.Cut))
}

func (c *conn) putMeta(n *verbs.Counters, cut int64) error {
	q := c.on(stMetaPut)
	return q.int(n.Moment).int(n.Seq).int(n.Place).int(n.Fence).int(n.Entry).int(n.EnqueuedMS).int(n.WokenMS).int(cut).run()
}
