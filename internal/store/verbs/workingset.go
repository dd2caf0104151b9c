package verbs

import (
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// workingSet is what the writer knows of the backend, as of one moment, with the
// changes of the batch at hand on top. It is a part of the backend's rows: each
// index holds those that it has, and knows whether these are all.
//
// A verb first asks the set for all that it needs. What is not there is noted
// in want, and makes the verb short: it is run again when that was loaded, and
// must not have changed anything before. What the batch changed wins over what
// is loaded later, which is as the backend has it, before the batch.
//
// There is no way back from a change: where a batch does not come to be stored
// the whole set is forgotten, with what the next batch made of it.
type workingSet struct {
	known  bool     // it has a moment
	stored Counters // as they are in the backend
	Counters
	inUse [store.SlotSorts]int

	rows map[int64]*row // by Seq
	ids  map[string]*row
	keys map[string]*row
	// noID and noKey were looked up in this batch, and there is none.
	noID, noKey map[string]struct{}

	lines  map[string]*line
	turns  map[string]*turn
	queues map[string]*queueCount
	limits map[string]*limitCount
	// counters are numbers that are kept in docs.
	counters map[DocKey]*counter
	agents   map[string]*usage
	docs     documents

	requests requests // outlives what the set forgets: a request does not change

	want  wants
	keep  bounds
	short bool // the verb at hand needs something that is not there
	look  look
	ahead int  // ready tasks to load beyond those that are claimed
	near  bool // a load costs no exchange with a server
	run   int  // counts the runs of batches, so that a verb knows when it begins anew

	// What the batch changed, and needs before it can be written.
	changed  []*row
	drafted  int // how many of them
	slots    []*slotRow
	bumped   []*queueCount
	limited  []*limitCount
	counted  []*counter
	entries  []signalbox.Entry
	claims   []*claim                     // without their requests
	fetched  map[int64]*signalbox.Request // what was loaded for them
	cut      int64
	wrote    bool
	answered answers
	logged   []byte // the room of a log, and of a task in it
	scratch  []byte
}

// answers are loaded for a verb that is alone in its batch.
type answers struct {
	due     []*row
	nextDue time.Time
	ended   []*row
	cut     int64
	named   map[string]bool
	page    []Doc
	has     bool
}

// look is what of new tasks is looked up, and taken to be new otherwise: the
// backend refuses the batch where that is not so.
type look int

const (
	lookNothing look = iota
	lookKeys
	lookAll // ids, too
)

// errShort says that a verb needs what the set has not.
var errShort = errors.New("something must be loaded first")

// forget empties the set. A request cannot change, and stays.
func (x *workingSet) forget() {
	*x = workingSet{
		rows: map[int64]*row{}, ids: map[string]*row{}, keys: map[string]*row{}, noID: map[string]struct{}{}, noKey: map[string]struct{}{},
		lines: map[string]*line{}, turns: map[string]*turn{}, queues: map[string]*queueCount{}, limits: map[string]*limitCount{}, counters: map[DocKey]*counter{},
		agents: map[string]*usage{}, docs: newDocuments(), fetched: map[int64]*signalbox.Request{},
		requests: x.requests, keep: x.keep, run: x.run, ahead: x.ahead, near: x.near, look: x.look,
		changed: x.changed[:0], slots: x.slots[:0], bumped: x.bumped[:0], limited: x.limited[:0], counted: x.counted[:0], claims: x.claims[:0], entries: x.entries[:0],
		logged: x.logged, scratch: x.scratch,
	}
}

// begin readies the set for a batch.
func (x *workingSet) begin() {
	x.run++
	x.short, x.answered = false, answers{}
	x.want.clear()
}

// note writes a journal entry.
func (x *workingSet) note(e signalbox.Entry) {
	x.Entry++
	e.Seq = x.Entry
	x.entries = append(x.entries, e)
	x.wrote = true
}

// enqueue gives t the next place. Its time never lies before that of an
// earlier enqueueing, so a clock that jumps back lets nobody jump the line.
func (x *workingSet) enqueue(t *signalbox.Task, now time.Time) {
	x.EnqueuedMS = max(x.EnqueuedMS, now.UnixMilli())
	x.Place++
	t.EnqueuedAt, t.Place = time.UnixMilli(x.EnqueuedMS).UTC(), x.Place
}
