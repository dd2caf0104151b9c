package sqlite

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// scanSchedule reads a row of the columns n, id, rev, name and body.
func scanSchedule(q *query) (signalbox.Schedule, error) {
	s, err := pack.ReadSchedule(q.textAt(1), q.bytesAt(4))
	s.Rev, s.Name = q.intAt(2), q.textAt(3)
	return s, err
}
