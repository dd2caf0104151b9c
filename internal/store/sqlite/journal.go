package sqlite

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// Journal returns entries with a Seq above after, oldest first.
func (s *Store) Journal(ctx context.Context, after int64, limit int) (list []signalbox.Entry, err error) {
	if limit <= 0 {
		return nil, s.ready(ctx)
	}
	err = s.read(ctx, func(c *conn) error {
		q := c.on(stJournalAfter)
		q.int(after).int(int64(limit)) // a row holds at least one entry
		for len(list) < limit && q.next() {
			entries, err := pack.ReadEntries(q.bytesAt(1), q.intAt(0))
			if err != nil {
				if end := q.end(); end != nil {
					return end
				}
				return signalbox.Errorf(signalbox.CodeStoreCorrupt, "the journal is damaged behind entry %d: run signalbox doctor", after)
			}
			for _, e := range entries {
				if e.Seq > after && len(list) < limit {
					list = append(list, e)
				}
			}
		}
		return q.end()
	})
	return list, err
}

// JournalRange returns the oldest and newest Seq that Journal can return.
func (s *Store) JournalRange(ctx context.Context) (oldest, newest int64, err error) {
	if err := s.ready(ctx); err != nil {
		return 0, 0, err
	}
	oldest, newest = s.board.journalRange()
	return oldest, newest, nil
}
