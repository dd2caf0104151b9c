package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/group"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Options configures a store.
type Options struct {
	// Path of the database file. It is created with its folder if missing. Beside it are the
	// write-ahead log (-wal, -shm) and the lock (.lock).
	Path string
	// Key returns the key of the row checksums, KeyBytes long, which is stored elsewhere; it is called once
	// the lock is held. If Key is nil the key is in the file.
	Key func() ([]byte, error)
	// Fatal is called when it is unknown what is stored: an I/O error on commit, or a damaged
	// file. It must end the process; if it returns, the store refuses all writes. The default
	// prints the error and exits with code 1.
	Fatal func(error)
	Log   *slog.Logger
	// Readers is the number of connections for reads, 4 if 0.
	Readers int
	// CommitDelay is added to each commit, to simulate a slower disk in measurements.
	CommitDelay time.Duration
}

const defaultReaders = 4

func (o *Options) fill() {
	if o.Fatal == nil {
		o.Fatal = func(err error) {
			fmt.Fprintln(os.Stderr, "signalbox:", err)
			os.Exit(1)
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Readers <= 0 {
		o.Readers = defaultReaders
	}
}

// Store is an open database file. Make one with Open.
type Store struct {
	store.Store
	backend *Backend
}

// Open opens or creates the database file. A file that is damaged, of another program, of a
// newer version, or in use by another process is refused and left unchanged.
func Open(ctx context.Context, o Options) (*Store, error) {
	b, err := openBackend(ctx, o)
	if err != nil {
		return nil, err
	}
	s, err := verbs.New(ctx, b, verbs.Options{Log: b.log})
	if err != nil {
		return nil, err
	}
	return &Store{s, b}, nil
}

// Damaged lists quarantined tasks, whose rows are not as they were written, oldest first.
func (s *Store) Damaged(ctx context.Context) ([]store.Damaged, error) {
	return fetch(ctx, s.backend, (*conn).damagedRows)
}

// Examine reads everything stored of each task, so that Damaged lists all damaged rows, and returns the
// number of tasks. Nothing may write meanwhile.
func (s *Store) Examine(ctx context.Context) (tasks int, err error) { return s.backend.examineAll(ctx) }

// TasksWithoutSlot returns IDs of tasks that have no slot although their rows say that they run, so they
// would never end. It checks only the newest tasks, at constant cost.
func (s *Store) TasksWithoutSlot(ctx context.Context) ([]string, error) {
	return s.backend.tasksWithoutSlot(ctx)
}

// Backend is a database file, for package verbs.
type Backend struct {
	opts     Options
	log      *slog.Logger
	info     store.Info
	lock     *fileLock
	givenKey []byte // the checksum key, if any
	totals   liveTotals

	writer     *conn
	packer     pack.Packer
	lastWriter string // writer of the newest batch
	lastNumber int64  // and its number
	fatalErr   error  // why writes are refused
	draft      draft

	readers  chan *conn
	suspects suspects
}

var _ verbs.Backend = (*Backend)(nil)

func openBackend(ctx context.Context, o Options) (*Backend, error) {
	o.fill()
	if err := group.Gone(ctx); err != nil {
		return nil, err
	}
	if err := checkPath(o.Path); err != nil {
		return nil, err
	}
	lock, err := lockFile(o.Path)
	if err != nil {
		return nil, err
	}
	b := &Backend{opts: o, log: o.Log, lock: lock, readers: make(chan *conn, o.Readers)}
	for range o.Readers {
		b.readers <- nil // so that release finds all of them
	}
	if err := b.open(ctx); err != nil {
		return nil, errors.Join(err, b.release())
	}
	return b, nil
}

// Info describes the store and its guarantees.
func (b *Backend) Info() store.Info { return b.info }

// Close checkpoints the write-ahead log and closes the file.
func (b *Backend) Close() error { return b.release() }

// release closes connections and lock. The writer's connection is closed last: only it can
// checkpoint the log.
func (b *Backend) release() error {
	for range cap(b.readers) {
		c := <-b.readers
		if c != nil {
			_ = c.close()
		}
	}
	var err error
	if b.writer != nil {
		err = b.writer.close()
	}
	b.lock.release()
	if err != nil {
		return fmt.Errorf("close %s: %w", b.opts.Path, err)
	}
	return nil
}
