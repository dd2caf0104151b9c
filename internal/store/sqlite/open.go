package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"zombiezen.com/go/sqlite"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/atomicfile"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// open opens the connections and computes the live totals.
func (b *Backend) open(ctx context.Context) error {
	path := b.opts.Path
	exists, err := check(path, version)
	if err != nil {
		return err
	}
	if b.opts.Key != nil {
		if b.givenKey, err = b.opts.Key(); err != nil {
			return err
		}
	}
	if !exists {
		if err := create(path, b.givenKey); err != nil {
			return unusable(path, err)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return unusable(path, err)
	}
	if b.writer, err = openConn(path, sqlite.OpenReadWrite); err != nil {
		return unusable(path, err)
	}
	if err := b.prepare(ctx); err != nil {
		return opening(path, err)
	}
	return b.openReaders()
}

// prepare upgrades the file and loads what is kept in memory.
func (b *Backend) prepare(ctx context.Context) error {
	c := b.writer
	durability, err := settings(c)
	if err != nil {
		return err
	}
	if err := upgrade(ctx, c, b.opts.Path, b.givenKey, b.log); err != nil {
		return err
	}
	id, err := b.fill(ctx)
	if err != nil {
		return err
	}
	b.info = store.Info{Kind: "sqlite", ID: id, Durability: durability, Grade: store.GradeDisk, Schema: version}
	return nil
}

// opening explains why a file could not be opened.
func opening(path string, err error) error {
	if isRefusal(err) {
		return err
	}
	if isCorrupt(err) {
		return &signalbox.Error{
			Code: signalbox.CodeStoreCorrupt, Err: err,
			Message: path + " is damaged: restore it from a backup, or move it and its -wal file away to start with an empty one",
		}
	}
	return unusable(path, err)
}

// settings configures the connection and reads back its settings: durability depends on some of
// them.
func settings(c *conn) (string, error) {
	for _, pragma := range []string{
		"PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = FULL",
		"PRAGMA wal_autocheckpoint = 10000",
		// While balancing a tree, SQLite briefly gives a page the number 262145, and so marks its cache as
		// holding such pages: at the commit it scans the whole cache for pages beyond the end of the file. So
		// a larger cache makes each commit slower.
		"PRAGMA cache_size = -16384",
		"PRAGMA temp_store = MEMORY",
		"PRAGMA secure_delete = FAST",
		"PRAGMA trusted_schema = OFF",
		"PRAGMA foreign_keys = OFF",
	} {
		if _, err := c.exec(pragma); err != nil {
			return "", err
		}
	}
	for pragma, want := range map[string]string{"PRAGMA journal_mode": "wal", "PRAGMA synchronous": "2"} {
		got, err := c.exec(pragma)
		if err != nil {
			return "", err
		}
		if got != want {
			return "", signalbox.Errorf(signalbox.CodeStoreFailed,
				"%s is %q, not %q: the file system cannot keep the database safe; choose a local disk with --data", pragma, got, want)
		}
	}
	return "write-ahead log, synchronous=FULL: what was acknowledged survives a crash and a power cut, as far as the disk keeps its word", nil
}

// create creates a database in a temporary file and renames it when it is complete and synced,
// so that a crash leaves nothing half made.
func create(path string, given []byte) error {
	fresh := path + ".new"
	for _, leftover := range []string{fresh, fresh + "-journal", fresh + "-wal", fresh + "-shm"} {
		if err := os.RemoveAll(leftover); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := build(fresh, given); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil { // Windows does not rename an open file
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	return atomicfile.SyncFolder(filepath.Dir(path))
}

func build(fresh string, given []byte) error {
	c, err := openConn(fresh, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	for _, pragma := range []string{
		// A crash only loses this new file, and create syncs it when it is complete.
		"PRAGMA synchronous = OFF", "PRAGMA journal_mode = MEMORY",
		"PRAGMA page_size = 4096", "PRAGMA application_id = " + strconv.Itoa(applicationID),
	} {
		if _, err := c.exec(pragma); err != nil {
			return err
		}
	}
	err = c.transaction(func() error {
		if err := c.execAll(schema); err != nil {
			return err
		}
		if err := c.newMeta(rand.Text(), given); err != nil {
			return err
		}
		return c.setVersion()
	})
	if err != nil {
		return err
	}
	_, err = c.exec("PRAGMA journal_mode = WAL")
	return err
}

// newMeta inserts the row of the counters and the checksum key.
func (c *conn) newMeta(id string, given []byte) error {
	own := make([]byte, KeyBytes)
	_, _ = rand.Read(own) // it never fails
	c.key = keyOf(or(given, own))
	_, err := c.exec(fmt.Sprintf(`INSERT INTO meta(id, store_id, sum_key, sum_check, moment, seq, place, fence, entry, enqueued_ms, woken_ms, cut)
		VALUES(1, '%s', x'%x', %d, 0, 0, 0, 0, 0, 0, 0, 0)`, id, own, c.key.check()))
	return err
}

func or(given, own []byte) []byte {
	if len(given) > 0 {
		return given
	}
	return own
}

func (c *conn) setVersion() error {
	_, err := c.exec("PRAGMA user_version = " + strconv.Itoa(version))
	return err
}

// transaction runs f in a transaction, which is rolled back if f fails.
func (c *conn) transaction(f func() error) error {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		_, err = c.exec("COMMIT")
	}
	if err != nil && !c.db.AutocommitEnabled() {
		if _, back := c.exec("ROLLBACK"); back != nil {
			return fmt.Errorf("%w; and the rollback: %w", err, back)
		}
	}
	return err
}

func (c *conn) execAll(list []string) error {
	for _, sql := range list {
		if _, err := c.exec(sql); err != nil {
			return err
		}
	}
	return nil
}

func (b *Backend) openReaders() error {
	for range cap(b.readers) {
		c, err := openConn(b.opts.Path, sqlite.OpenReadOnly)
		if err != nil {
			return unusable(b.opts.Path, err)
		}
		c.key = b.writer.key
		<-b.readers
		b.readers <- c
		for _, pragma := range []string{"PRAGMA query_only = 1", "PRAGMA cache_size = -8192", "PRAGMA temp_store = MEMORY", "PRAGMA trusted_schema = OFF"} {
			if _, err := c.exec(pragma); err != nil {
				return opening(b.opts.Path, err)
			}
		}
	}
	return nil
}
