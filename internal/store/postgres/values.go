package postgres

import (
	"encoding/binary"
	"math"
	"time"
)

// The types of parameters, by their OIDs in pg_type.
const (
	oidBool  = 16
	oidBytea = 17
	oidInt8  = 20
	oidInt2  = 21
)

// column is an array parameter in the server's binary format. It is refilled for each batch, and keeps its
// memory.
type column struct {
	b     []byte
	n     int
	nulls int // of the n
}

// header is the number of bytes of an array before its values.
const header = 20

func (c *column) clear() { c.b, c.n, c.nulls = append(c.b[:0], make([]byte, header)...), 0, 0 }

func (c *column) int8(v int64) {
	c.n++
	c.b = binary.BigEndian.AppendUint32(c.b, 8)
	c.b = binary.BigEndian.AppendUint64(c.b, uint64(v)) //nolint:gosec // the same bits
}

func (c *column) int2(v int) {
	c.n++
	c.b = binary.BigEndian.AppendUint32(c.b, 2)
	c.b = binary.BigEndian.AppendUint16(c.b, uint16(v)) //nolint:gosec // states are few
}

func (c *column) bool(v bool) {
	c.n++
	c.b = append(binary.BigEndian.AppendUint32(c.b, 1), byteOf(v))
}

func byteOf(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func (c *column) null() {
	c.n++
	c.nulls++
	c.b = binary.BigEndian.AppendUint32(c.b, math.MaxUint32)
}

// text adds a string; some adds NULL if it is empty.
func (c *column) text(v string) {
	c.n++
	c.b = append(binary.BigEndian.AppendUint32(c.b, uint32(len(v))), v...) //nolint:gosec // far below
}

func (c *column) some(v string) {
	if v == "" {
		c.null()
		return
	}
	c.text(v)
}

func (c *column) bytes(v []byte) {
	if v == nil {
		c.null()
		return
	}
	c.n++
	c.b = append(binary.BigEndian.AppendUint32(c.b, uint32(len(v))), v...) //nolint:gosec // far below
}

// fill adds what f appends.
func (c *column) fill(f func(b []byte) []byte) {
	c.n++
	at := len(c.b)
	c.b = f(append(c.b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(c.b[at:], uint32(len(c.b)-at-4)) //nolint:gosec // far below
}

// time adds a time in milliseconds; NULL for the zero time.
func (c *column) time(t time.Time) {
	if t.IsZero() {
		c.null()
		return
	}
	c.int8(t.UnixMilli())
}

// array is the finished parameter: nil, which is NULL, if it has no values (given).
func (c *column) array(oid uint32) []byte {
	if c.nulls == c.n {
		return nil
	}
	binary.BigEndian.PutUint32(c.b[0:], 1) // dimensions
	binary.BigEndian.PutUint32(c.b[4:], uint32(byteOf(c.nulls > 0)))
	binary.BigEndian.PutUint32(c.b[8:], oid)
	binary.BigEndian.PutUint32(c.b[12:], uint32(c.n)) //nolint:gosec // a batch is small
	binary.BigEndian.PutUint32(c.b[16:], 1)           // the first index
	return c.b
}

func texts(list []string) []byte {
	var c column
	c.clear()
	for _, s := range list {
		c.text(s)
	}
	return c.array(oidBytea)
}

func numbers(list []int64) []byte {
	var c column
	c.clear()
	for _, v := range list {
		c.int8(v)
	}
	return c.array(oidInt8)
}

// number is an int8 parameter; text a bytea or text parameter.
func number(v int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(v)) //nolint:gosec // the same bits
}

func text(s string) []byte { return []byte(s) }

// row is a row of an answer. Its bytes are valid until the next row.
type row [][]byte

func (r row) int(n int) int64 {
	switch v := r[n]; len(v) {
	case 8:
		return int64(binary.BigEndian.Uint64(v)) //nolint:gosec // the same bits
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v))) //nolint:gosec // the same bits
	case 2:
		return int64(int16(binary.BigEndian.Uint16(v))) //nolint:gosec // the same bits
	}
	return 0
}

func (r row) text(n int) string { return string(r[n]) }

func (r row) bytes(n int) []byte {
	if r[n] == nil {
		return nil
	}
	return append([]byte{}, r[n]...)
}

func (r row) bool(n int) bool { return len(r[n]) == 1 && r[n][0] != 0 }

func (r row) time(n int) time.Time {
	if r[n] == nil {
		return time.Time{}
	}
	return time.UnixMilli(r.int(n)).UTC()
}

// at returns the index of a row in the requested list: SQL counts from 1.
func (r row) at() int { return int(r.int(0)) - 1 }
