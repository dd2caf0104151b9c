package model

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Options are the settings of a store.
type Options struct {
	// ID identifies the store's data; "" is "model".
	ID string
}

// Store keeps everything in memory. Make one with New.
type Store struct {
	id string

	mu     sync.Mutex
	closed bool

	rows  map[string]*row // by task id
	keys  map[string]*row // by idempotency key
	turns map[string]*sessionTurns

	// Lines of rows; the comments give their sort order.
	submitted line  // all: Seq
	pending   line  // pending or parked: OrderKey, Place
	waiting   lines // pending or parked, by queue: OrderKey, Place
	ready     lines // pending and Ready, by queue: OrderKey, Place
	timed     line  // pending, not Ready, with a NotBefore: NotBefore, Place
	bounded   line  // pending with a WaitUntil: WaitUntil, Place
	created   line  // pending or parked: CreatedAt, Seq
	inFlight  line  // in flight: Fence
	ended     line  // terminal: EndedAt, Seq
	limits    map[string]int

	slots    map[string]map[int]*signalbox.Slot // by agent and slot
	used     [store.SlotSorts]map[string]int    // slots in use by agent, of each sort
	inUse    [store.SlotSorts]int               // slots in use over all agents, by sort; executors excluded
	agents   map[string]signalbox.Agent
	accounts map[string]signalbox.Account
	holds    []signalbox.Hold // those of slots that were given back may still be here
	pauses   map[string]signalbox.Pause
	sessions map[string]signalbox.Session
	tokens   map[string]signalbox.Token
	users    map[string]signalbox.User
	audit    []signalbox.Audit // the Seq is the index plus one

	plans     map[string]*plan  // by schedule id
	planNames map[string]string // schedule id by name
	openPlans map[string]*plan  // those with open runs

	usage map[signalbox.UsageKey]signalbox.Usage

	directors directorRows
	tickets   map[string]store.ToolLine // by tool queue, as StepTickets left them

	journal []signalbox.Entry // without gaps: the Seq is the first one's plus the index

	// The counters only grow, even if rows are pruned.
	lastSeq, lastPlace, lastFence, lastEntry int64
	ticketPlace, ticketFence                 int64
	enqueued                                 time.Time // newest EnqueuedAt so far
}

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New(o Options) *Store {
	o.ID = cmp.Or(o.ID, "model")
	return &Store{
		id:       o.ID,
		rows:     map[string]*row{},
		keys:     map[string]*row{},
		turns:    map[string]*sessionTurns{},
		waiting:  lines{},
		ready:    lines{},
		limits:   map[string]int{},
		slots:    map[string]map[int]*signalbox.Slot{},
		used:     [store.SlotSorts]map[string]int{{}, {}},
		agents:   map[string]signalbox.Agent{},
		accounts: map[string]signalbox.Account{},
		pauses:   map[string]signalbox.Pause{},
		sessions: map[string]signalbox.Session{},
		tokens:   map[string]signalbox.Token{},
		usage:    map[signalbox.UsageKey]signalbox.Usage{},
		users:    map[string]signalbox.User{},

		plans:     map[string]*plan{},
		planNames: map[string]string{},
		openPlans: map[string]*plan{},

		directors: newDirectorRows(),
		tickets:   map[string]store.ToolLine{},
	}
}

// Info describes the store.
func (s *Store) Info() store.Info {
	return store.Info{Kind: "model", ID: s.id, Durability: "none: everything is gone when the process ends", Grade: store.GradeNone}
}

// Close refuses all further verbs. Closing twice is a no-op.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// lock begins a verb. If the context has ended nothing is done, since the caller could not learn of it.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "the caller went away, nothing was done", Err: err}
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return signalbox.Errorf(signalbox.CodeUnavailable, "the store is closed")
	}
	return nil
}

// find returns the row of a task, or CodeNotFound.
func (s *Store) find(id string) (*row, error) {
	if r := s.rows[id]; r != nil {
		return r, nil
	}
	return nil, signalbox.Errorf(signalbox.CodeNotFound, "there is no task %q: it never existed or has been pruned", id)
}

// note writes a journal entry.
func (s *Store) note(e signalbox.Entry) {
	s.lastEntry++
	e.Seq = s.lastEntry
	s.journal = append(s.journal, e)
}
