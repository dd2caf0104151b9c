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

// Options says where the store is and how it behaves.
type Options struct {
	// Path of the database file. It is made, with its folder, if it is not
	// there. Beside it stand the write-ahead log (-wal, -shm) and the lock
	// (.lock).
	Path string
	// Key returns the key of the sums of rows, KeyBytes long, which is kept
	// elsewhere; it is asked once the lock is taken. Without it the key stands in
	// the file.
	Key func() ([]byte, error)
	// Fatal is called when nobody can say what is stored: an I/O error on
	// commit, or a damaged file. It must end the process; if it returns, the
	// store refuses all writes from then on. The default prints the error
	// and exits with code 1.
	Fatal func(error)
	Log   *slog.Logger
	// Readers is the number of connections for reads, 4 if 0.
	Readers int
	// CommitDelay is added to each commit. It stands for a slower disk in
	// measurements.
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

// Open opens the database file, or makes it. A file that is damaged, that
// another program made, or that a newer version of this one has written is
// refused and not touched; so is one that another process uses.
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

// Damaged lists tasks whose rows are not as they were written, and were set
// aside, the oldest first.
func (s *Store) Damaged(ctx context.Context) ([]store.Damaged, error) {
	return fetch(ctx, s.backend, (*conn).damagedRows)
}

// Examine reads all that is kept of each task, so that Damaged lists all rows that
// are not as they were written, and returns how many tasks there are. Nobody may
// write meanwhile.
func (s *Store) Examine(ctx context.Context) (tasks int, err error) { return s.backend.examineAll(ctx) }

// Strays returns ids of tasks that are in no place: their rows say that they
// run, and no slot has them. Nobody would ever end them. It looks at the newest
// tasks only, so that it costs the same however many there were.
func (s *Store) Strays(ctx context.Context) ([]string, error) { return s.backend.strays(ctx) }

// Backend is a database file, for package verbs.
type Backend struct {
	opts  Options
	log   *slog.Logger
	info  store.Info
	lock  *fileLock
	given []byte // the key of sums, if there is one
	board board

	writer *conn
	packer pack.Packer
	who    string // the writer of the newest batch, and
	number int64  // the number of that
	broken error  // why nothing is written any more
	draft  draft

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

// Info says what the store is and what it promises.
func (b *Backend) Info() store.Info { return b.info }

// Close folds the write-ahead log into the file.
func (b *Backend) Close() error { return b.release() }

// release lets go of connections and lock. The writer's connection is the
// last to close: only one that may write can fold the log into the file.
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
