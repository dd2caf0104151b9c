package verbs

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/group"
)

// Options are the settings of a store.
type Options struct {
	// Writer identifies this process among the writers; it must be unique. Empty: a random
	// one.
	Writer string
	Log    *slog.Logger
	// Patience is how long a verb or read waits for a server that cannot be reached, unless
	// its caller gives up earlier; 0: DefaultPatience.
	Patience time.Duration
	// Direct runs each verb on its caller's goroutine: for a backend whose commits take no
	// time, and that no other process writes to.
	Direct bool

	keep   bounds // tests
	many   int    // replaces manyVerbs; tests
	drafts bool   // draft even if no more verbs are expected; tests
}

// DefaultPatience outlasts the restart of a server.
const DefaultPatience = 10 * time.Second

// answerGrace is how long a cancelled caller waits for the answer to a commit in flight;
// nearly always it comes within that time.
const answerGrace = 250 * time.Millisecond

// Store is a store.Store over a Backend. Make one with New.
type Store struct {
	backend    Backend
	shared     SharedBackend // the same one, if other processes may write to it, too
	drafting   Drafting      // the same one, if it is one
	opts       Options
	log        *slog.Logger
	inbox      *group.Inbox[verb]
	writer     *writer
	direct     direct
	generation atomic.Int64
	quarantine quarantine
	pruned     *Doc            // where the search for unused sessions continues; used by the writer
	reads      sync.RWMutex    // read-locked by reads; Close waits for them
	stopped    chan struct{}   // closed when the writer has ended
	ctx        context.Context // of backend calls
	cancel     context.CancelFunc
}

// Shared is a store.Shared over a SharedBackend. Make one with NewShared.
type Shared struct{ *Store }

var (
	_ store.Store  = (*Store)(nil)
	_ store.Shared = (*Shared)(nil)
)

// verb is a call of a store.Writer method. run executes it over the set and keeps the
// result in the verb. It may be run more than once, and starts again each time.
type verb interface{ run(x *workingSet) error }

// New returns a store over a backend that no other process writes to. The store closes the
// backend, also if New fails.
func New(ctx context.Context, g Backend, o Options) (*Store, error) { return open(ctx, g, nil, o) }

// NewShared is New for a backend that other processes may write to.
func NewShared(ctx context.Context, g SharedBackend, o Options) (*Shared, error) {
	s, err := open(ctx, g, g, o)
	if err != nil {
		return nil, err
	}
	return &Shared{s}, nil
}

func open(ctx context.Context, g Backend, shared SharedBackend, o Options) (*Store, error) {
	if o.Writer == "" {
		o.Writer = rand.Text()
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.keep == (bounds{}) {
		o.keep = defaultBounds
		switch {
		case o.Direct:
			o.keep = boundless
		case shared == nil:
			o.keep.turns = localTurns
		}
	}
	o.many = cmp.Or(o.many, manyVerbs)
	s := &Store{backend: g, shared: shared, opts: o, log: o.Log, inbox: group.New[verb](), stopped: make(chan struct{}), quarantine: quarantine{log: o.Log}}
	s.drafting, _ = g.(Drafting)
	s.inbox.Patience = answerGrace
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.writer = newWriter(s)
	if err := s.writer.loadFirst(ctx); err != nil {
		s.cancel()
		_ = g.Close() // the first error says more
		return nil, err
	}
	if o.Direct {
		close(s.stopped)
	} else {
		go s.writer.loop()
	}
	return s, nil
}

// Info describes the store.
func (s *Store) Info() store.Info { return s.backend.Info() }

// Close waits for running verbs and closes the backend. Closing twice is a no-op.
func (s *Store) Close() error {
	if !s.inbox.Close() {
		<-s.stopped
		return nil
	}
	<-s.stopped
	s.direct.mu.Lock()
	defer s.direct.mu.Unlock()
	s.reads.Lock()
	defer s.reads.Unlock()
	s.cancel()
	return s.backend.Close()
}

// do passes a verb to the writer and waits until it is durable.
func (s *Store) do(ctx context.Context, v verb, size int) error {
	if s.opts.Direct {
		return s.doDirect(ctx, v)
	}
	return s.inbox.Do(ctx, v, size, false)
}

// doAlone is do for a verb that must be alone in its batch.
func (s *Store) doAlone(ctx context.Context, v verb) error {
	if s.opts.Direct {
		return s.doDirect(ctx, v)
	}
	return s.inbox.Do(ctx, v, 0, true)
}

// Time is the time by the server's clock, to the millisecond.
func (s *Shared) Time(ctx context.Context) (time.Time, error) {
	at, err := readFrom(ctx, s.Store, func(ctx context.Context) (time.Time, error) { return s.shared.Time(ctx) })
	return time.UnixMilli(at.UnixMilli()).UTC(), err
}

// Generation grows when the server turns out to have lost acknowledged data.
func (s *Shared) Generation() int64 { return s.generation.Load() }

// Changed is signalled when another process may have changed something.
func (s *Shared) Changed() <-chan struct{} { return s.shared.Changed() }

// Others returns journal entries written by other processes.
func (s *Shared) Others(ctx context.Context, after int64, limit int) (entries []signalbox.Entry, through int64, err error) {
	rows, err := s.entries(ctx, after, limit)
	if err != nil {
		return nil, after, err
	}
	through = after
	for i := range rows {
		through = rows[i].Seq
		if rows[i].Writer != s.opts.Writer {
			entries = append(entries, rows[i].Entry)
		}
	}
	return entries, through, nil
}

// direct runs verbs one by one on their callers' goroutines, for a backend whose commits
// take no time: batching would gain nothing.
type direct struct {
	mu  sync.Mutex
	job group.Job[verb]
}

// within bounds a call of the backend, unless it takes no time.
func (s *Store) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.opts.Direct {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.opts.Patience)
}

func (s *Store) doDirect(ctx context.Context, v verb) error {
	if err := group.Gone(ctx); err != nil {
		return err
	}
	d := &s.direct
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.inbox.Closed(); err != nil {
		return err
	}
	d.job = group.Job[verb]{Verb: v}
	batch := &s.writer.batch
	batch.Jobs = append(batch.Jobs[:0], &d.job)
	s.writer.runBatch()
	batch.Jobs = batch.Jobs[:0]
	return d.job.Err
}
