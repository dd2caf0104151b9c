package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
)

// Files of older schemas are upgraded when they are opened, in one transaction, so that a crash leaves the
// file unchanged. Directors, messages of pull agents and tickets are dropped: they belong to processes that
// had the file open, and are gone.

// upgrade upgrades a file to the current schema.
func upgrade(ctx context.Context, c *conn, path string, given []byte, log *slog.Logger) error {
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
	log.Info("the database is being upgraded to a new schema", "path", path, "from", was, "to", version)
	if err := c.transaction(func() error { return c.upgrade(ctx, was, given) }); err != nil {
		return fmt.Errorf("bring %s from schema %d to %d: %w", path, was, version, err)
	}
	// The version must be in the header, where check reads it.
	_, err = c.exec("PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// upgrade does this within a transaction.
func (c *conn) upgrade(ctx context.Context, was int, given []byte) error {
	if was >= sameTables {
		return c.setVersion()
	}
	for n, step := range oldSteps {
		if n+firstStep > was {
			if err := c.execAll(step); err != nil {
				return err
			}
		}
	}
	for _, list := range [...][]string{renameOldTables, schema, keptTables} {
		if err := c.execAll(list); err != nil {
			return err
		}
	}
	if err := c.upgradeMeta(given); err != nil {
		return err
	}
	for _, step := range [...]func(context.Context) error{
		c.upgradeTasks, c.upgradeRequests, c.upgradeResults, c.upgradeSessions, c.upgradeStales, c.upgradeFleet, c.upgradeIdentity,
		c.upgradeAudit, c.upgradeSchedules, c.upgradeCounts,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := c.execAll(droppedTables); err != nil {
		return err
	}
	return c.setVersion()
}

// upgradeMeta carries over the counters.
func (c *conn) upgradeMeta(given []byte) error {
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

// every runs a statement and calls f with each row.
func (c *conn) every(ctx context.Context, sql string, f func(q *query) error) error {
	q := c.once(sql)
	for q.next() {
		err := ctx.Err()
		if err == nil {
			err = f(&q)
		}
		if err != nil {
			_ = q.end() // the earlier error says more
			return err
		}
	}
	return q.end()
}
