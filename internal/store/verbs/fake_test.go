package verbs_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// server is a server in memory, for any number of connections. It finds rows
// by looking at all of them, and checks each delta against what it has: what
// batch says of the rows before, and its counts, must be right.
type server struct {
	t    testing.TB
	mu   sync.Mutex
	data *data
	lock chan struct{} // capacity 1: who sends has the lock
	// fault is asked before each call of a connection; nil is none.
	fault func(call string, d *verbs.Delta) fault
	calls map[string]int
	conns []*conn
}

// data is all that the server keeps.
type data struct {
	verbs.Counters
	tasks    map[int64]signalbox.Task
	ids      map[string]int64
	keys     map[string]int64
	requests map[int64]signalbox.Request
	results  map[int64]signalbox.Result
	slots    map[[2]string]signalbox.Slot
	inUse    [2]int
	queues   map[string]verbs.QueueCount
	limits   map[string]int
	docs     map[verbs.DocKey]verbs.Doc
	entries  []verbs.Entry
	logs     [][]byte
	writers  map[string]int64
}

func newServer(t testing.TB) *server {
	return &server{t: t, lock: make(chan struct{}, 1), calls: map[string]int{}, data: &data{
		tasks: map[int64]signalbox.Task{}, ids: map[string]int64{}, keys: map[string]int64{}, requests: map[int64]signalbox.Request{}, results: map[int64]signalbox.Result{},
		slots: map[[2]string]signalbox.Slot{}, queues: map[string]verbs.QueueCount{}, limits: map[string]int{},
		docs: map[verbs.DocKey]verbs.Doc{}, writers: map[string]int64{},
	}}
}

func (d *data) clone() *data {
	c := *d
	c.ids, c.keys = maps.Clone(d.ids), maps.Clone(d.keys)
	c.tasks, c.requests, c.results = maps.Clone(d.tasks), maps.Clone(d.requests), maps.Clone(d.results)
	c.slots, c.queues, c.limits = maps.Clone(d.slots), maps.Clone(d.queues), maps.Clone(d.limits)
	c.docs, c.writers, c.entries = maps.Clone(d.docs), maps.Clone(d.writers), slices.Clone(d.entries)
	c.logs = slices.Clone(d.logs)
	return &c
}

// save returns what the server has now, and restore makes it have that again:
// a server that lost what came between.
func (s *server) save() *data {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.clone()
}

func (s *server) restore(d *data) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = d.clone()
}

// fault is what happens to a call.
type fault int

const (
	works         fault = iota
	away                // the server cannot be reached
	refuses             // it refuses the write
	refusesValue        // because of a value of one verb
	moved               // another batch came first
	unknownStored       // the answer is lost, the batch is stored
	unknownLost         // the answer is lost, and so is the batch
	hangs               // no answer comes
)

var (
	errAway    = signalbox.Errorf(signalbox.CodeUnavailable, "the server cannot be reached")
	errRefuses = signalbox.Errorf(signalbox.CodeStoreFailed, "nothing was stored: the disk is full")
)

// conn is a process's way to the server: a verbs.SharedBackend.
type conn struct {
	*server
	holds   bool
	changed chan struct{}
}

func (s *server) connect() *conn {
	c := &conn{server: s, changed: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, c)
	return c
}

// begin counts a call, and says what happens to it.
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

func (c *conn) Info() store.Info {
	return store.Info{Kind: "fake", ID: "fake", Durability: "none", Grade: store.GradeNone}
}

func (c *conn) Time(context.Context) (time.Time, error) { return time.Now(), nil }
func (c *conn) Changed() <-chan struct{}                { return c.changed }
func (c *conn) Close() error                            { return nil }

func (c *conn) Load(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	if _, err := c.begin(ctx, "load", nil); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data.load(w), nil
}

func (c *conn) Lock(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	if _, err := c.begin(ctx, "lock", nil); err != nil {
		return nil, err
	}
	if !c.holds {
		select {
		case c.lock <- struct{}{}:
			c.holds = true
		case <-ctx.Done():
			return nil, errAway
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data.load(w), nil
}

func (c *conn) Unlock(context.Context) {
	if c.holds {
		c.holds = false
		<-c.lock
	}
}

func (c *conn) Commit(ctx context.Context, d *verbs.Delta) error {
	f, err := c.begin(ctx, "commit", d)
	defer c.Unlock(ctx)
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
	err = c.data.commit(d, c.t)
	others := slices.Clone(c.conns)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	for _, o := range others {
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
	c.data.Moment++ // so that a commit that is still on its way finds another one
	return c.data.writers[writer] >= number, nil
}

// called returns how often a connection was used for a call, and begins to
// count anew.
func (s *server) called(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.calls[call]
	s.calls = map[string]int{}
	return n
}

// faults makes the first calls of a sort fail, in order.
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

func slotKey(agent string, slot int) [2]string { return [2]string{agent, fmt.Sprint(slot)} }
