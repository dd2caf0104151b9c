package sqlite

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// The states by their number in rows.
var stateNumbers = map[signalbox.State]int64{
	signalbox.Pending: rowPending, signalbox.Dispatching: rowDispatching, signalbox.Working: rowWorking,
	signalbox.Cancelling: rowCancelling, signalbox.Completed: rowCompleted, signalbox.Failed: rowFailed,
	signalbox.Cancelled: rowCancelled, signalbox.Timeout: rowTimeout,
	signalbox.Parked: rowParked,
}

// readyOf is 1 or 0 while a task waits, then -1 for NULL.
func readyOf(t *signalbox.Task) int64 {
	switch {
	case !t.State.Waiting():
		return -1
	case t.Ready:
		return 1
	}
	return 0
}

// textColumns are the columns that the body leaves out. Its checksum includes them.
var textColumns = [...]int{colID, colQueue, colSession, colParent, colKey}

// texts are the text columns of a task, in the order of textColumns.
func texts(t *signalbox.Task) [len(textColumns)]*string {
	return [...]*string{&t.ID, &t.Queue, &t.SessionID, &t.ParentID, &t.IdempotencyKey}
}

// packTask returns the body of a task's row.
func (c *conn) packTask(t *signalbox.Task) []byte {
	c.bare = *t
	var end int
	c.row = c.key.summed(c.row[:0], sumTask, t.Seq, func(b []byte) []byte {
		for _, text := range texts(&c.bare) {
			*text = ""
		}
		b = pack.Task(b, &c.bare)
		end = len(b)
		for _, text := range texts(t) {
			b = appendText(b, *text)
		}
		return b
	})
	return c.row[:end]
}

// bindTask binds all columns.
func (c *conn) bindTask(q *query, t *signalbox.Task) *query {
	q.int(t.Seq).exact(t.ID).int(stateNumbers[t.State]).exact(t.Queue)
	q.ready(t).int(t.OrderKey()).int(t.Place).text(t.SessionID).time(t.NotBefore).time(t.WaitUntil)
	return q.time(t.EndedAt).text(t.ParentID).text(t.IdempotencyKey).bytes(c.packTask(t))
}

func (q *query) ready(t *signalbox.Task) *query {
	if r := readyOf(t); r >= 0 {
		return q.int(r)
	}
	return q.null()
}

// updateOf is the cheapest statement that writes a change.
func updateOf(before, after *signalbox.Task) stmtID {
	switch {
	case before.ID != after.ID, before.Queue != after.Queue, before.Place != after.Place, before.SessionID != after.SessionID,
		before.ParentID != after.ParentID, before.IdempotencyKey != after.IdempotencyKey, before.OrderKey() != after.OrderKey(),
		!before.NotBefore.Equal(after.NotBefore), !before.WaitUntil.Equal(after.WaitUntil):
		return stTaskUpdate
	case !before.EndedAt.Equal(after.EndedAt):
		if readyOf(before) != readyOf(after) {
			return stTaskUpdate
		}
		return stTaskEnd
	case readyOf(before) != readyOf(after):
		return stTaskReady
	}
	return stTaskState
}

// update writes a change of a task.
func (c *conn) update(before, after *signalbox.Task) error {
	id := updateOf(before, after)
	q := c.on(id)
	if id == stTaskUpdate {
		return c.bindTask(&q, after).run()
	}
	q.int(after.Seq).int(stateNumbers[after.State]).bytes(c.packTask(after))
	switch id {
	case stTaskReady:
		q.ready(after)
	case stTaskEnd:
		q.time(after.EndedAt)
	}
	return q.run()
}

// scanTask reads a row of taskColumns; nil if it is damaged, which is recorded.
func (c *conn) scanTask(q *query) *signalbox.Task {
	t, wrong := c.readTask(q)
	if wrong != "" {
		c.damage = append(c.damage, q.intAt(colSeq))
		return nil
	}
	return t
}

// readTask reads a row, or describes its damage.
func (c *conn) readTask(q *query) (t *signalbox.Task, wrong string) {
	seq := q.intAt(colSeq)
	row := q.into(&c.row, colBody)
	end := len(row)
	var ends [len(textColumns)]int
	for n, col := range textColumns {
		row = q.appendText(row, col)
		ends[n] = len(row)
	}
	c.row = row
	if _, ok := c.key.checked(row, sumTask, seq); !ok || end < sumBytes {
		return nil, "its bytes are not those that were written"
	}
	task, err := pack.ReadTask(row[sumBytes:end])
	if err != nil {
		return nil, "it cannot be read"
	}
	t = &task
	for n, text := range texts(t) {
		*text = string(row[ends[n]-q.st.ColumnLen(textColumns[n]) : ends[n]])
	}
	for _, col := range [...]struct {
		name string
		same bool
	}{
		{"number", t.Seq == seq},
		{"state", q.intAt(colState) == stateNumbers[t.State]},
		{"ready", isReady(q, t)},
		{"order", q.intAt(colOrder) == t.OrderKey()},
		{"place", q.intAt(colPlace) == t.Place},
		{"not_before", isTime(q, colNotBefore, t.NotBefore)},
		{"wait_until", isTime(q, colWaitUntil, t.WaitUntil)},
		{"ended", isTime(q, colEnded, t.EndedAt)},
	} {
		if !col.same {
			return nil, fmt.Sprintf("its %s is not the one that was written", col.name)
		}
	}
	return t, ""
}

func isReady(q *query, t *signalbox.Task) bool {
	if want := readyOf(t); want >= 0 {
		return !q.isNull(colReady) && q.intAt(colReady) == want
	}
	return q.isNull(colReady)
}

func isTime(q *query, col int, want time.Time) bool {
	if want.IsZero() {
		return q.isNull(col)
	}
	return q.intAt(col) == want.UnixMilli() && !q.isNull(col)
}

// one runs a statement that returns at most one task; nil if there is none or it is damaged.
func (c *conn) one(q *query) (t *signalbox.Task, err error) {
	if q.next() {
		t = c.scanTask(q)
	}
	return t, q.end()
}

// each runs a statement that returns tasks, and skips damaged ones.
func (c *conn) each(q *query, take func(*signalbox.Task)) error {
	for q.next() {
		if t := c.scanTask(q); t != nil {
			take(t)
		}
	}
	return q.end()
}

func (c *conn) all(q *query) (list []signalbox.Task, err error) {
	err = c.each(q, func(t *signalbox.Task) { list = append(list, *t) })
	return list, err
}

func (c *conn) pointers(q *query) (list []*signalbox.Task, err error) {
	err = c.each(q, func(t *signalbox.Task) { list = append(list, t) })
	return list, err
}

// request reads the request of a task; nil if there is none or it is damaged.
func (c *conn) request(seq int64) (r *signalbox.Request, err error) {
	q := c.on(stRequestGet)
	if q.int(seq); q.next() {
		body, ok := c.key.checked(q.into(&c.row, 0), sumRequest, seq)
		var sealed []byte
		if !q.isNull(1) {
			sealed = q.bytesAt(1)
		}
		if ok {
			r, err = pack.ReadRequestRow(body, sealed)
		}
		if !ok || err != nil {
			r, c.damage = nil, append(c.damage, seq)
		}
	}
	return r, q.end()
}

// result reads the result of a task; nil if there is none or it is damaged.
func (c *conn) result(seq int64) (r *signalbox.Result, err error) {
	q := c.on(stResultGet)
	if q.int(seq); q.next() {
		body, ok := c.key.checked(q.into(&c.row, 0), sumResult, seq)
		if ok {
			r, err = pack.ReadResultRow(body)
		}
		if !ok || err != nil {
			r, c.damage = nil, append(c.damage, seq)
		}
	}
	return r, q.end()
}
