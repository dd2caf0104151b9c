package sqlite

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"zombiezen.com/go/sqlite"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// open opens the connections and fills ledger and board.
func (s *Store) open() error {
	path, steps := s.opts.Path, s.opts.migrations
	s.noReaders()
	exists, err := check(path, steps[len(steps)-1].version)
	if err != nil {
		return err
	}
	if !exists {
		if err := create(path, steps); err != nil {
			return unusable(path, err)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return unusable(path, err)
	}
	c, err := openConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return unusable(path, err)
	}
	s.writer = &writer{conn: c, store: s}
	s.writer.ledger.init()
	if err := s.prepare(c); err != nil {
		return opening(path, err)
	}
	return s.openReaders()
}

// prepare brings the file up to date and reads what the writer must know.
func (s *Store) prepare(c *conn) error {
	durability, err := settings(c)
	if err != nil {
		return err
	}
	version, err := migrate(c, s.opts.Path, s.opts.migrations)
	if err != nil {
		return err
	}
	id, err := s.load()
	if err != nil {
		return err
	}
	s.info = store.Info{Kind: "sqlite", ID: id, Durability: durability, Grade: store.GradeDisk, Schema: version}
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

// settings sets what the connection must be and reads back what it is: some
// of it decides whether an acknowledged write survives a power cut.
func settings(c *conn) (string, error) {
	for _, pragma := range []string{
		"PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = FULL",
		"PRAGMA wal_autocheckpoint = 10000",
		// Where a tree is balanced, SQLite gives a page a number of 262145 for a
		// moment, and so takes its cache for one that holds such pages: at the
		// commit it looks through all of it for pages behind the end of the
		// file. So each commit costs the more, the larger the cache is.
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

// create makes a new database beside the path and moves it there when it is
// complete and on the disk, so that a crash leaves nothing half made.
func create(path string, steps []migration) error {
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
	if err := build(fresh, path, steps); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func build(fresh, path string, steps []migration) error {
	c, err := openConn(fresh, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	for _, pragma := range []string{"PRAGMA page_size = 4096", "PRAGMA application_id = " + strconv.Itoa(applicationID)} {
		if _, err := c.exec(pragma); err != nil {
			return err
		}
	}
	if _, err := migrate(c, path, steps); err != nil {
		return err
	}
	_, err = c.exec(fmt.Sprintf("INSERT INTO meta(id, store_id, seq, place, fence, entry, enqueued_ms, commits) VALUES(1, '%s', 0, 0, 0, 0, 0, 0)", rand.Text()))
	if err != nil {
		return err
	}
	_, err = c.exec("PRAGMA journal_mode = WAL")
	return err
}

// migrate runs the steps that the file has not seen, each in a transaction,
// and returns the version that the file has then.
func migrate(c *conn, path string, steps []migration) (int, error) {
	text, err := c.exec("PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	version, err := strconv.Atoi(text)
	if err != nil {
		return 0, err
	}
	newest := steps[len(steps)-1].version
	if version > newest {
		return 0, checkVersion(path, int64(version), newest)
	}
	for _, step := range steps {
		if step.version <= version {
			continue
		}
		if err := step.run(c); err != nil {
			return 0, fmt.Errorf("bring %s from schema %d to %d: %w", path, version, step.version, err)
		}
		version = step.version
		// The version must stand in the header, where check reads it.
		if _, err := c.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			return 0, err
		}
	}
	return version, nil
}

func (m *migration) run(c *conn) error {
	list := append([]string{"BEGIN IMMEDIATE"}, m.sql...)
	list = append(list, "PRAGMA user_version = "+strconv.Itoa(m.version), "COMMIT")
	for _, sql := range list {
		if _, err := c.exec(sql); err != nil {
			if !c.db.AutocommitEnabled() {
				_, back := c.exec("ROLLBACK")
				if back != nil {
					return fmt.Errorf("%w; and the rollback: %w", err, back)
				}
			}
			return err
		}
	}
	return nil
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// noReaders fills the pool with nothing, so that release finds all of it.
func (s *Store) noReaders() {
	for range cap(s.readers) {
		s.readers <- nil
	}
}

func (s *Store) openReaders() error {
	for range cap(s.readers) {
		c, err := openConn(s.opts.Path, sqlite.OpenReadOnly)
		if err != nil {
			return unusable(s.opts.Path, err)
		}
		<-s.readers
		s.readers <- c
		for _, pragma := range []string{"PRAGMA query_only = 1", "PRAGMA cache_size = -8192", "PRAGMA temp_store = MEMORY", "PRAGMA trusted_schema = OFF"} {
			if _, err := c.exec(pragma); err != nil {
				return opening(s.opts.Path, err)
			}
		}
	}
	return nil
}
