package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/group"
)

// Options says where the store is and how it behaves.
type Options struct {
	// Path of the database file. It is made, with its folder, if it is not
	// there. Beside it stand the write-ahead log (-wal, -shm) and the lock
	// (.lock).
	Path string
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

	migrations []migration // tests
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
	if o.migrations == nil {
		o.migrations = migrations
	}
}

// Store is an open database file. Make one with Open.
type Store struct {
	opts  Options
	log   *slog.Logger
	info  store.Info
	lock  *fileLock
	inbox *group.Inbox[verb]
	board board

	writer  *writer
	broken  error         // only the writer reads and sets it
	stopped chan struct{} // the writer has ended

	readers chan *conn
	closing chan struct{}
}

var _ store.Store = (*Store)(nil)

// Open opens the database file, or makes it. A file that is damaged, that
// another program made, or that a newer version of this one has written is
// refused and not touched; so is one that another process uses.
func Open(ctx context.Context, o Options) (*Store, error) {
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
	s := &Store{
		opts: o, log: o.Log, lock: lock, inbox: group.New[verb](), stopped: make(chan struct{}), closing: make(chan struct{}),
		readers: make(chan *conn, o.Readers),
	}
	s.board.init()
	if err := s.open(); err != nil {
		_ = s.release()
		return nil, err
	}
	go s.writer.loop()
	return s, nil
}

// Info says what the store is and what it promises.
func (s *Store) Info() store.Info { return s.info }

// Close waits for running verbs, then folds the write-ahead log into the
// file. Closing twice does no harm.
func (s *Store) Close() error {
	if !s.inbox.Close() {
		<-s.stopped
		return nil
	}
	close(s.closing)
	<-s.stopped
	return s.release()
}

// release lets go of connections and lock. The writer's connection is the
// last to close: only one that may write can fold the log into the file.
func (s *Store) release() error {
	for range cap(s.readers) {
		c := <-s.readers
		if c != nil {
			_ = c.close()
		}
	}
	var err error
	if s.writer != nil {
		err = s.writer.close()
	}
	s.lock.release()
	if err != nil {
		return fmt.Errorf("close %s: %w", s.opts.Path, err)
	}
	return nil
}
