package store

import (
	"fmt"
	"math"

	"github.com/signalbox-ai/signalbox"
)

// ParseCursor reads the cursor of a page of history: when the last task on it
// ended, in Unix milliseconds, and its Seq. An empty one stands behind all. What
// is no cursor is refused with CodeValidation.
func ParseCursor(cursor string) (endedMS, seq int64, err error) {
	if cursor == "" {
		return math.MaxInt64, math.MaxInt64, nil
	}
	var rest string
	if n, _ := fmt.Sscanf(cursor, "%d-%d%s", &endedMS, &seq, &rest); n != 2 {
		return 0, 0, signalbox.Invalid("before", "%.100q is not the cursor of an earlier page", cursor)
	}
	return endedMS, seq, nil
}

// Cursor is a place in a queue's order; the zero Cursor is before all.
type Cursor struct {
	OrderKey int64
	Place    int64
}

// CursorOf returns the place of t.
func CursorOf(t *signalbox.Task) Cursor { return Cursor{OrderKey: t.OrderKey(), Place: t.Place} }

// Before reports whether c stands before d.
func (c Cursor) Before(d Cursor) bool {
	return c.OrderKey < d.OrderKey || (c.OrderKey == d.OrderKey && c.Place < d.Place)
}
