package sqlite

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// Beat renews the lease of a director and says who else lives.
func (s *Store) Beat(ctx context.Context, b store.Beat) (answer store.Peers, err error) {
	size := 0
	for i := range b.Heard {
		size += len(b.Heard[i].Status)
	}
	err = s.do(ctx, size, func(w *writer) (err error) {
		answer, err = w.beat(&b)
		return err
	})
	if err != nil {
		return store.Peers{}, err
	}
	return answer, nil
}

func (w *writer) beat(b *store.Beat) (answer store.Peers, err error) {
	var rows store.BeatRows
	if rows.Directors, err = w.directors(); err != nil {
		return answer, err
	}
	if rows.Heard, err = w.heard(); err != nil {
		return answer, err
	}
	for _, agents := range [][]string{b.Take, b.Drop} {
		for _, agent := range agents {
			q := w.on(stHoldingGet)
			held, err := holdings(q.exact(agent))
			if err != nil {
				return answer, err
			}
			rows.Holdings = append(rows.Holdings, held...)
		}
	}
	c, answer, err := store.StepBeat(rows, *b)
	if err != nil {
		return answer, err
	}
	return answer, w.changePeers(&c)
}

// changePeers writes what a beat changed.
func (w *writer) changePeers(c *store.BeatChange) error {
	for id, keys := range map[stmtID][]string{stDirectorDelete: c.Gone, stHoldingDelete: c.Free, stHeardDelete: c.Forgot} {
		for _, key := range keys {
			q := w.write(id)
			if err := q.exact(key).run(); err != nil {
				return err
			}
		}
	}
	for i := range c.Put {
		d := &c.Put[i]
		q := w.write(stDirectorPut)
		q.exact(d.ID).text(d.Run).text(d.URL).text(d.Version).text(d.Key)
		if err := q.time(d.StartedAt).time(d.Expires).bool(d.Draining).int(d.Since.UnixMilli()).run(); err != nil {
			return err
		}
	}
	for i := range c.Hold {
		h := &c.Hold[i]
		q := w.write(stHoldingPut)
		if err := q.exact(h.Agent).exact(h.Director).text(h.Run).int(h.Since.UnixMilli()).run(); err != nil {
			return err
		}
	}
	for i := range c.Heard {
		h := &c.Heard[i]
		q := w.write(stHeardPut)
		if err := q.exact(h.Agent).time(h.At).bytes(h.Status).run(); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) directors() (list []store.Director, err error) {
	q := c.on(stDirectorsAll)
	for q.next() {
		list = append(list, store.Director{
			ID: q.textAt(0), Run: q.textAt(1), URL: q.textAt(2), Version: q.textAt(3), Key: q.textAt(4),
			StartedAt: q.timeAt(5), Expires: q.timeAt(6), Draining: q.boolAt(7), Since: q.timeAt(8),
		})
	}
	return list, q.end()
}

func (c *conn) heard() (list []store.Heard, err error) {
	q := c.on(stHeardAll)
	for q.next() {
		list = append(list, store.Heard{Agent: q.textAt(0), At: q.timeAt(1), Status: q.bytesAt(2)})
	}
	return list, q.end()
}

func holdings(q *query) (list []store.Holding, err error) {
	for q.next() {
		list = append(list, store.Holding{Agent: q.textAt(0), Director: q.textAt(1), Run: q.textAt(2), Since: q.timeAt(3)})
	}
	return list, q.end()
}

// Directors lists the directors over the store.
func (s *Store) Directors(ctx context.Context) (list []store.Director, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		list, err = c.directors()
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Holders says which director holds each agent. The directors are read after
// what they hold: who began anew in between holds none of it.
func (s *Store) Holders(ctx context.Context) (holders map[string]string, err error) {
	err = s.read(ctx, func(c *conn) error {
		q := c.on(stHoldingsAll)
		held, err := holdings(&q)
		if err != nil {
			return err
		}
		list, err := c.directors()
		holders = store.HoldersOf(list, held)
		return err
	})
	if err != nil {
		return nil, err
	}
	return holders, nil
}
