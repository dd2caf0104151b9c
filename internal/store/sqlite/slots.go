package sqlite

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// Renew moves the end of slot leases and returns how many of them exist.
func (s *Store) Renew(ctx context.Context, leases []store.Lease) (renewed int, err error) {
	err = s.do(ctx, 0, func(w *writer) error {
		renewed = 0
		for _, l := range leases {
			if _, held := w.slot(l.Agent, l.Slot, l.Fence); !held {
				continue
			}
			q := w.write(stSlotRenew)
			if err := q.exact(l.Agent).int(int64(l.Slot)).time(l.Expires).run(); err != nil {
				return err
			}
			renewed++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return renewed, nil
}

// FreeSlot removes a withheld slot row, if it is still there with that fence.
func (s *Store) FreeSlot(ctx context.Context, agent string, slot int, fence int64) (freed bool, err error) {
	err = s.do(ctx, 0, func(w *writer) error {
		row, held := w.slot(agent, slot, fence)
		if freed = held && row.withheld; !freed {
			return nil
		}
		return w.dropSlot(agent, slot)
	})
	return freed && err == nil, err
}
