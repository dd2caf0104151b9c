package sqlite

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// A damaged row of a task is quarantined: it is removed from all indexes, so that it is never claimed and
// lists skip it. Its bytes are kept for inspection. Before its next batch, the writer checks again what a
// reader found.
//
// For the verbs, a quarantine looks like a batch of another writer: the moment changes, so they drop what
// they have loaded.

// maxDamaged bounds a list of damaged tasks.
const maxDamaged = 100

// examineAll checks everything stored of each task, and quarantines what is damaged.
func (b *Backend) examineAll(ctx context.Context) (n int, err error) {
	for after, more := int64(math.MinInt64), true; more; {
		err := b.read(ctx, func(c *conn) (err error) {
			after, more, err = c.examineSome(ctx, after, &n)
			return err
		})
		if err != nil {
			return n, err
		}
	}
	return n, b.quarantineSuspects()
}

func (c *conn) examineSome(ctx context.Context, after int64, n *int) (last int64, more bool, err error) {
	const most = 1000
	var seqs, bad []int64
	q := c.on(stSeqs)
	for q.int(after).most(most); q.next(); {
		seqs = append(seqs, q.intAt(0))
	}
	if err := q.end(); err != nil {
		return 0, false, err
	}
	for _, seq := range seqs {
		_, what, err := c.examine(seq)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, false, err
		}
		if *n, last = *n+1, seq; what != "" {
			bad = append(bad, seq)
		}
	}
	c.damage = append(c.damage[:0], bad...)
	return last, len(seqs) == most, nil
}

func (c *conn) damagedRows() (list []store.Damaged, err error) {
	q := c.on(stDamagedAll)
	for q.most(maxDamaged); q.next(); {
		list = append(list, store.Damaged{ID: q.textAt(0), What: q.textAt(1)})
	}
	return list, q.end()
}

// quarantinedError is the error for a quarantined task.
func (c *conn) quarantinedError(seq int64, id string) error {
	q := c.on(stDamagedGet)
	what := "it cannot be read"
	if q.int(seq); q.next() {
		what = q.textAt(0)
	}
	if err := q.end(); err != nil {
		return err
	}
	return damagedTask(id, what)
}

func damagedTask(id, what string) error {
	return &signalbox.Error{
		Code: signalbox.CodeStoreCorrupt, Err: verbs.ErrValue,
		Message: fmt.Sprintf("the row of task %s is damaged, and set aside: %s; run signalbox doctor", id, what),
	}
}

// addSuspects adds what a connection found damaged to what will be quarantined.
func (b *Backend) addSuspects(c *conn) {
	if len(c.damage) == 0 {
		return
	}
	b.suspects.Lock()
	b.suspects.seqs = append(b.suspects.seqs, c.damage...)
	b.suspects.Unlock()
	c.damage = c.damage[:0]
}

// suspects are tasks that readers found damaged, by Seq.
type suspects struct {
	sync.Mutex
	seqs []int64
}

// quarantineSuspects quarantines, before a batch, what readers found damaged.
func (b *Backend) quarantineSuspects() error {
	if err := b.usable(); err != nil {
		return err
	}
	b.suspects.Lock()
	any := len(b.suspects.seqs) > 0
	b.suspects.Unlock()
	if !any {
		return nil
	}
	if _, err := b.quarantine(); err != nil {
		return b.failed(err, false)
	}
	return nil
}

func (b *Backend) takeSuspects() []int64 {
	b.addSuspects(b.writer)
	b.suspects.Lock()
	defer b.suspects.Unlock()
	seqs := b.suspects.seqs
	b.suspects.seqs = nil
	return seqs
}

// quarantine quarantines those tasks that are really damaged, if any, and counts again.
func (b *Backend) quarantine() (any bool, err error) {
	c := b.writer
	if err := c.do(stBegin); err != nil {
		return false, err
	}
	if any, err = b.quarantineTx(); err != nil || !any {
		if bad := c.do(stRollback); err == nil {
			err = bad
		}
		return false, err
	}
	n := b.totals.Counters
	n.Moment += 1 + rand.Int64N(1<<16) //nolint:gosec // not a secret
	totals, err := c.totals()
	if err == nil {
		err = c.putMeta(&n, b.totals.prunedUpTo)
	}
	if err == nil {
		err = c.do(stCommit)
	}
	if err != nil {
		return false, b.rollback(err)
	}
	b.totals.replace(totals, n.Moment)
	return true, nil
}

func (b *Backend) quarantineTx() (any bool, err error) {
	for _, seq := range b.takeSuspects() {
		id, what, err := b.writer.examine(seq)
		if err != nil {
			return any, err
		}
		if what == "" {
			continue // rewritten meanwhile, or quarantined already
		}
		b.log.Error("a damaged row was quarantined: everything else continues", "task", id, "what", what)
		if err := b.writer.quarantine(seq, id, what); err != nil {
			return any, err
		}
		any = true
	}
	b.writer.damage = b.writer.damage[:0]
	return any, nil
}

func (c *conn) quarantine(seq int64, id, what string) error {
	q := c.on(stSetAside)
	if err := q.int(seq).int(rowDamaged).run(); err != nil {
		return err
	}
	q = c.on(stDamagedPut)
	if err := q.int(seq).exact(id).exact(what).run(); err != nil {
		return err
	}
	// Its execution may still run: the slot is freed once that is known to be over.
	q = c.on(stSlotWithhold)
	return q.exact(id).run()
}

// examine describes the damage of a task; nothing if it is quarantined already.
func (c *conn) examine(seq int64) (id, what string, err error) {
	q := c.on(stTaskBySeq)
	there := q.int(seq).next() && q.intAt(2) != rowDamaged
	if there {
		id = q.textAt(1)
		_, what = c.readTask(&q)
	}
	if err := q.end(); err != nil || !there || what != "" {
		return id, what, err
	}
	c.damage = c.damage[:0]
	if _, err := c.request(seq); err != nil || len(c.damage) > 0 {
		return id, "what was asked for is not what was written", err
	}
	if _, err := c.result(seq); err != nil || len(c.damage) > 0 {
		return id, "its result is not the one that was written", err
	}
	return id, "", nil
}
