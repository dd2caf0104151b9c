package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
)

// Files of the schemas before this one are carried over as they are opened: in
// one transaction, so that a process which ends in the middle leaves the file
// as it was. Directors, what agents said to them, and tickets are left behind:
// they are of processes that had the file open, and are gone.

// carryOver brings a file up to date.
func carryOver(ctx context.Context, c *conn, path string, given []byte, log *slog.Logger) error {
	text, err := c.exec("PRAGMA user_version")
	if err != nil {
		return err
	}
	was, err := strconv.Atoi(text)
	switch {
	case err != nil || was == version:
		return err
	case was > version:
		return checkVersion(path, int64(was), version)
	}
	log.Info("the database is carried over to a new schema", "path", path, "from", was, "to", version)
	if err := c.transaction(func() error { return c.carry(ctx, was, given) }); err != nil {
		return fmt.Errorf("bring %s from schema %d to %d: %w", path, was, version, err)
	}
	// The version must stand in the header, where check reads it.
	_, err = c.exec("PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// carry does so within a transaction.
func (c *conn) carry(ctx context.Context, was int, given []byte) error {
	for n, step := range oldSteps {
		if n+firstStep > was {
			if err := c.execAll(step); err != nil {
				return err
			}
		}
	}
	for _, list := range [...][]string{putAway, schema, carried} {
		if err := c.execAll(list); err != nil {
			return err
		}
	}
	if err := c.carryMeta(given); err != nil {
		return err
	}
	for _, carry := range [...]func(context.Context) error{
		c.carryTasks, c.carryRequests, c.carryResults, c.carrySessions, c.carryStales, c.carryFleet, c.carryIdentity,
		c.carryAudit, c.carrySchedules, c.carryCounts,
	} {
		if err := carry(ctx); err != nil {
			return err
		}
	}
	if err := c.execAll(dropped); err != nil {
		return err
	}
	return c.setVersion()
}

// carryMeta carries over the counters.
func (c *conn) carryMeta(given []byte) error {
	q := c.once(`SELECT store_id, seq, place, fence, entry, enqueued_ms, commits FROM old_meta WHERE id = 1`)
	if !q.next() {
		if err := q.end(); err != nil {
			return err
		}
		return errNoCounters
	}
	id := q.textAt(0)
	numbers := make([]any, 0, 6)
	for col := 1; col <= 6; col++ {
		numbers = append(numbers, q.intAt(col))
	}
	if err := q.end(); err != nil {
		return err
	}
	if err := c.newMeta(id, given); err != nil {
		return err
	}
	_, err := c.exec(fmt.Sprintf(`UPDATE meta SET seq = %d, place = %d, fence = %d, entry = %d, enqueued_ms = %d, moment = %d`, numbers...))
	return err
}

// every runs a statement and gives each row to f.
func (c *conn) every(ctx context.Context, sql string, f func(q *query) error) error {
	q := c.once(sql)
	for q.next() {
		err := ctx.Err()
		if err == nil {
			err = f(&q)
		}
		if err != nil {
			_ = q.end() // what went wrong before says more
			return err
		}
	}
	return q.end()
}
