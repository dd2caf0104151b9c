package sqlite

import (
	"encoding/binary"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/signalbox-ai/signalbox"
)

// conn is a connection with its prepared statements. One goroutine uses it at a time.
type conn struct {
	db     *sqlite.Conn
	st     []*sqlite.Stmt // by stmtID
	key    key
	row    []byte         // reused buffer of a packed row
	bare   signalbox.Task // reused buffer of a packed task
	damage []int64        // damaged tasks found, by Seq
}

// busyTimeout bounds the wait for a lock of another program.
const busyTimeout = 5 * time.Second

func openConn(path string, flags sqlite.OpenFlags) (*conn, error) {
	db, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return nil, err
	}
	db.SetBusyTimeout(busyTimeout)
	return &conn{db: db, st: make([]*sqlite.Stmt, len(statements))}, nil
}

func (c *conn) close() error { return c.db.Close() }

// exec runs a statement without caching it: a pragma or a schema step. It returns the first
// column of the last row.
func (c *conn) exec(sql string) (answer string, err error) {
	st, _, err := c.db.PrepareTransient(sql)
	if err != nil {
		return "", err
	}
	for {
		row, err := st.Step()
		if err != nil || !row {
			if end := st.Finalize(); err == nil {
				err = end
			}
			return answer, err
		}
		answer = st.ColumnText(0)
	}
}

// query is a statement in use: parameters are bound in order, then it is run, or stepped
// through and closed.
type query struct {
	st    *sqlite.Stmt
	param int
	left  int64 // rows still to be read; negative: all
	err   error
	once  bool // not cached
}

// on begins a statement.
func (c *conn) on(id stmtID) query {
	st := c.st[id]
	if st == nil {
		var err error
		if st, err = c.db.Prepare(statements[id]); err != nil {
			return query{err: err}
		}
		c.st[id] = st
	}
	return query{st: st, left: -1}
}

// once begins a statement without caching it.
func (c *conn) once(sql string) query {
	st, _, err := c.db.PrepareTransient(sql)
	return query{st: st, left: -1, err: err, once: true}
}

func (q *query) int(v int64) *query {
	q.param++
	if q.err == nil {
		q.st.BindInt64(q.param, v)
	}
	return q
}

func (q *query) bool(v bool) *query {
	if v {
		return q.int(1)
	}
	return q.int(0)
}

func (q *query) null() *query {
	q.param++
	if q.err == nil {
		q.st.BindNull(q.param)
	}
	return q
}

// text binds a string; an empty one is NULL, read back as empty.
func (q *query) text(v string) *query {
	if v == "" {
		return q.null()
	}
	return q.exact(v)
}

// exact binds a string, even an empty one.
func (q *query) exact(v string) *query {
	q.param++
	if q.err == nil {
		q.st.BindText(q.param, v)
	}
	return q
}

// bytes binds bytes, even none.
func (q *query) bytes(v []byte) *query {
	q.param++
	if q.err == nil {
		q.st.BindBytes(q.param, v)
	}
	return q
}

// time binds a time; a zero one is NULL.
func (q *query) time(t time.Time) *query {
	if t.IsZero() {
		return q.null()
	}
	return q.int(t.UnixMilli())
}

// most limits the rows read. LIMIT ? would make SQLite replan whenever another number is bound.
func (q *query) most(n int64) *query {
	q.left = n
	return q
}

// next steps to the next row.
func (q *query) next() bool {
	if q.err != nil || q.left == 0 {
		return false
	}
	q.left--
	var row bool
	row, q.err = q.st.Step()
	return row
}

// end closes the statement and returns its error. A statement that was not stepped to its end
// holds its snapshot until then.
func (q *query) end() error {
	if q.st == nil {
		return q.err
	}
	end := q.st.Reset
	if q.once {
		end = q.st.Finalize
	}
	if err := end(); q.err == nil {
		q.err = err
	}
	return q.err
}

// run executes a statement whose rows, if any, do not matter.
func (q *query) run() error {
	for q.next() {
	}
	return q.end()
}

func (q *query) textAt(col int) string { return q.st.ColumnText(col) }
func (q *query) intAt(col int) int64   { return q.st.ColumnInt64(col) }
func (q *query) boolAt(col int) bool   { return q.st.ColumnInt64(col) != 0 }
func (q *query) isNull(col int) bool   { return q.st.ColumnType(col) == sqlite.TypeNull }

func (q *query) bytesAt(col int) []byte {
	b := make([]byte, q.st.ColumnLen(col))
	q.st.ColumnBytes(col, b)
	return b
}

// appendText appends a text to b in the format of the function appendText.
func (q *query) appendText(b []byte, col int) []byte {
	n := q.st.ColumnLen(col)
	b = binary.AppendUvarint(b, uint64(n)) //nolint:gosec // no length is negative
	b = slices.Grow(b, n)[:len(b)+n]
	q.st.ColumnBytes(col, b[len(b)-n:])
	return b
}

// into reads bytes into a reused buffer.
func (q *query) into(room *[]byte, col int) []byte {
	n := q.st.ColumnLen(col)
	if cap(*room) < n {
		*room = make([]byte, n, 2*n)
	}
	b := (*room)[:n]
	q.st.ColumnBytes(col, b)
	return b
}

func (q *query) timeAt(col int) time.Time {
	if q.isNull(col) {
		return time.Time{}
	}
	return time.UnixMilli(q.st.ColumnInt64(col)).UTC()
}
