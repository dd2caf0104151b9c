package verbs_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// server is a server in memory, for any number of connections: a memory.Backend with a lock, logs and faults.
// It checks each delta against its state: the previous rows and the counts in it must be right.
type server struct {
	t      testing.TB
	mu     sync.Mutex
	rows   *memory.Backend
	deltas []*verbs.Delta // all that were committed
	logs   [][]byte
	queues map[string]verbs.QueueCount // by the deltas
	limits map[string]int
	lock   chan struct{} // capacity 1: whoever sends has the lock
	// hands: the lock is handed on with the log of a batch. Then storing is held while that is stored, and
	// handed is the last such batch.
	hands   bool
	storing chan struct{} // capacity 1
	handed  *verbs.Handed
	// onHanded is called when a batch is handed to the next process; may be nil.
	onHanded func()
	// fault chooses the fault of each call of a connection; may be nil.
	fault func(call string, d *verbs.Delta) fault
	calls map[string]int
	conns []*conn
}

func newServer(t testing.TB) *server {
	s := &server{t: t, lock: make(chan struct{}, 1), storing: make(chan struct{}, 1), calls: map[string]int{}}
	s.empty()
	return s
}

func (s *server) empty() {
	s.rows, s.deltas, s.logs = memory.NewBackend(memory.Options{}), nil, nil
	s.queues, s.limits = map[string]verbs.QueueCount{}, map[string]int{}
}

// save returns the server's current length, and restore truncates the server to it: a server that lost what
// came in between.
func (s *server) save() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.deltas)
}

func (s *server) restore(saved int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	deltas := s.deltas[:saved]
	s.empty()
	for _, d := range deltas {
		if err := s.write(d); err != nil {
			s.t.Error(err)
		}
	}
	for _, c := range s.conns {
		c.Backend = s.rows
	}
}

// write commits a delta, and keeps a copy of it and its log.
func (s *server) write(d *verbs.Delta) error {
	if err := s.rows.Commit(context.Background(), d); err != nil {
		return err
	}
	kept := *d
	kept.Tasks, kept.Requests, kept.Results = slices.Clone(d.Tasks), slices.Clone(d.Requests), slices.Clone(d.Results)
	kept.Slots, kept.Docs, kept.Entries, kept.Log = slices.Clone(d.Slots), slices.Clone(d.Docs), slices.Clone(d.Entries), slices.Clone(d.Log)
	s.deltas = append(s.deltas, &kept)
	for _, q := range d.Queues {
		s.queues[q.Queue] = q.QueueCount
	}
	for _, l := range d.Limits {
		s.limits[l.Limit] = l.N
	}
	if kept.Log != nil {
		s.logs = append(s.logs, kept.Log)
		s.logs = s.logs[max(0, len(s.logs)-verbs.LogsKept):]
	}
	return nil
}

// load reads what is wanted, with the logs, and with the requests of tasks in queues, except every third, as
// if it were large.
func (s *server) load(w *verbs.Want) *verbs.Loaded {
	l, err := s.rows.Load(context.Background(), w)
	if err != nil {
		s.t.Error(err)
	}
	for _, line := range l.Lines {
		small := make([]*signalbox.Request, len(line))
		for i, t := range line {
			if t.Seq%3 != 0 {
				q, err := s.rows.Load(context.Background(), &verbs.Want{Requests: []int64{t.Seq}})
				if err != nil {
					s.t.Error(err)
				}
				small[i] = q.Requests[0]
			}
		}
		l.LineRequests = append(l.LineRequests, small)
	}
	for n, log := range slices.Backward(s.logs) {
		if from, _ := verbs.LogSpan(log); w.Since != 0 && from == w.Since {
			l.Logs = slices.Clone(s.logs[n:])
		}
	}
	return l
}

// fault is a fault of a call.
type fault int

const (
	works         fault = iota
	away                // the server cannot be reached
	refuses             // it refuses the write
	refusesValue        // it refuses a value of one verb
	moved               // another batch came first
	unknownStored       // the answer is lost, the batch is stored
	unknownLost         // the answer and the batch are lost
	hangs               // there is no answer
)

var (
	errAway    = signalbox.Errorf(signalbox.CodeUnavailable, "the server cannot be reached")
	errRefuses = signalbox.Errorf(signalbox.CodeStoreFailed, "nothing was stored: the disk is full")
)

// conn is a process's connection to the server: a verbs.SharedBackend. Its own reads can fail.
type conn struct {
	*server
	*memory.Backend
	holds   bool // it has the lock
	stores  bool // it has storing
	changed chan struct{}
}

func (s *server) connect() *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &conn{server: s, Backend: s.rows, changed: make(chan struct{}, 1)}
	s.conns = append(s.conns, c)
	return c
}

// begin counts a call, and returns its fault.
func (c *conn) begin(ctx context.Context, call string, d *verbs.Delta) (fault, error) {
	c.mu.Lock()
	c.calls[call]++
	ask := c.fault
	c.mu.Unlock()
	f := works
	if ask != nil {
		f = ask(call, d)
	}
	switch f {
	case away:
		return f, errAway
	case refuses:
		return f, errRefuses
	case refusesValue:
		return f, errRefusesValue
	case hangs:
		<-ctx.Done()
		return f, signalbox.Errorf(signalbox.CodeUnavailable, "no answer: %v", ctx.Err())
	}
	return f, ctx.Err()
}

func (c *conn) Time(context.Context) (time.Time, error) { return time.Now(), nil }
func (c *conn) Changed() <-chan struct{}                { return c.changed }

func (c *conn) Load(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	if _, err := c.begin(ctx, "load", nil); err != nil {
		return nil, err
	}
	if c.holds && !take(ctx, c.storing, &c.stores) {
		return nil, errAway
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stored(w.Parent) {
		return nil, verbs.ErrMoved
	}
	return c.load(w), nil
}

func (c *conn) Lock(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	if _, err := c.begin(ctx, "lock", nil); err != nil {
		return nil, err
	}
	if !take(ctx, c.lock, &c.holds) || (w.Since == 0 && !take(ctx, c.storing, &c.stores)) {
		return nil, errAway
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.load(w)
	if h := c.handed; h != nil && w.Since != 0 {
		if from, _ := verbs.LogSpan(h.Log); from == l.Moment {
			l.Handed = h
			if c.onHanded != nil {
				c.onHanded()
			}
		}
	}
	return l, nil
}

// stored reports whether a batch is stored, and is its writer's last one.
func (s *server) stored(b *verbs.BatchID) bool {
	return b == nil || s.load(&verbs.Want{Writer: b.Writer}).Number == b.Number
}

// take sends to a channel of capacity 1, unless it has already.
func take(ctx context.Context, what chan struct{}, has *bool) bool {
	if !*has {
		select {
		case what <- struct{}{}:
			*has = true
		case <-ctx.Done():
		}
	}
	return *has
}

func give(what chan struct{}, has *bool) {
	if *has {
		*has = false
		<-what
	}
}

func (c *conn) Unlock(context.Context) {
	give(c.lock, &c.holds)
	give(c.storing, &c.stores)
}

// handOn hands the lock on with the log of a batch.
func (c *conn) handOn(ctx context.Context, d *verbs.Delta) bool {
	if !c.holds || !c.hands || d.Log == nil {
		return true
	}
	if !take(ctx, c.storing, &c.stores) {
		return false
	}
	c.mu.Lock()
	c.handed = &verbs.Handed{BatchID: verbs.BatchID{Writer: d.Writer, Number: d.Number}, Log: slices.Clone(d.Log)}
	c.mu.Unlock()
	give(c.lock, &c.holds)
	return true
}

func (c *conn) Commit(ctx context.Context, d *verbs.Delta) error {
	defer c.Unlock(ctx)
	if !c.handOn(ctx, d) {
		return errAway
	}
	f, err := c.begin(ctx, "commit", d)
	switch {
	case f == hangs:
		return verbs.ErrUnknown
	case err != nil:
		return err
	case f == moved:
		return verbs.ErrMoved
	case f == unknownLost:
		return verbs.ErrUnknown
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stored(d.Parent) {
		return verbs.ErrMoved
	}
	if err := c.checked(d); err != nil {
		return err
	}
	for _, o := range c.conns {
		if o != c {
			select {
			case o.changed <- struct{}{}:
			default:
			}
		}
	}
	if f == unknownStored {
		return verbs.ErrUnknown
	}
	return nil
}

func (c *conn) Committed(ctx context.Context, writer string, number int64) (bool, error) {
	if _, err := c.begin(ctx, "committed", nil); err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.load(&verbs.Want{Writer: writer}).Number >= number, nil
}

func (c *conn) Counts(ctx context.Context) (n store.Counts, err error) {
	if _, err := c.begin(ctx, "read", nil); err != nil {
		return n, err
	}
	return c.Backend.Counts(ctx)
}

func (c *conn) Task(ctx context.Context, id string) (*signalbox.Task, error) {
	if _, err := c.begin(ctx, "read", nil); err != nil {
		return nil, err
	}
	return c.Backend.Task(ctx, id)
}

// Before counts only up to most.
func (c *conn) Before(ctx context.Context, id string, most int) (n int, exact bool, task *signalbox.Task, err error) {
	n, _, task, err = c.Backend.Before(ctx, id, most)
	return min(n, most), n < most, task, err
}

// called returns how often a call was made, and resets the count.
func (s *server) called(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.calls[call]
	s.calls = map[string]int{}
	return n
}

// faults makes the first calls of a kind fail, in order.
func (s *server) faults(call string, list ...fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var mu sync.Mutex
	s.fault = func(c string, _ *verbs.Delta) fault {
		mu.Lock()
		defer mu.Unlock()
		if c != call || len(list) == 0 {
			return works
		}
		f := list[0]
		list = list[1:]
		return f
	}
}

func (s *server) setFault(f func(call string, d *verbs.Delta) fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// open opens a store over the server.
func (s *server) open(t testing.TB, o verbs.Options) *verbs.Shared {
	t.Helper()
	st, err := verbs.NewShared(context.Background(), s.connect(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}
