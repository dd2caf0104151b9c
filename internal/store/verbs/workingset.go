package verbs

import (
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// workingSet is the writer's cache of the backend, as of one moment, plus the changes of
// the current batch. It holds a part of the backend's rows; each index knows whether what
// it holds is complete.
//
// A verb first asks the set for all that it needs. A miss is recorded in want and sets
// missing: the verb is run again after a load, and must not have changed anything before.
// Changes of the batch take precedence over rows loaded later, which are as they were
// before the batch.
//
// Changes cannot be undone: if a batch is not stored, the whole set is discarded, including
// what the next batch made of it.
type workingSet struct {
	known  bool     // it is as of a moment
	stored Counters // as in the backend
	Counters
	inUse [store.SlotSorts]int

	rows map[int64]*row // by Seq
	ids  map[string]*row
	keys map[string]*row
	// absentIDs and absentKeys were looked up in this batch and do not exist.
	absentIDs, absentKeys map[string]struct{}

	readyQueues map[string]*readyQueue
	turns       map[string]*sessionTurns
	queues      map[string]*queueCount
	limits      map[string]*limitCount
	// counters are numbers stored in docs.
	counters map[DocKey]*counter
	agents   map[string]*agentSlots
	docs     documents

	requests requests // survives forget; requests of edited tasks are dropped from it

	want     wants
	caps     bounds
	missing  bool // the current verb needs something that is not loaded
	lookup   lookup
	prefetch int  // ready tasks to load beyond those that are claimed
	local    bool // the backend is in this process: a load is cheap
	run      int  // counts attempts, so that a verb knows when it starts again

	// Changes of the batch, and what it needs before it can be written.
	changed         []*row
	drafted         int // how many of them
	slots           []*slotRow
	changedQueues   []*queueCount
	changedLimits   []*limitCount
	changedCounters []*counter
	entries         []signalbox.Entry
	claims          []*claim                     // without their requests
	fetched         map[int64]*signalbox.Request // requests loaded for claims
	journalCut      int64
	wrote           bool
	results         singleResults
	logBuf          []byte // reused buffers of a log, and of a task in it
	taskBuf         []byte
}

// singleResults are loaded for a verb that is alone in its batch.
type singleResults struct {
	due     []*row
	nextDue time.Time
	ended   []*row
	cut     int64
	named   map[string]bool
	page    []Doc
	has     bool
}

// lookup says what is looked up for new tasks. What is not looked up is assumed to be new; if it is not, the
// backend refuses the batch.
type lookup int

const (
	lookNothing lookup = iota
	lookKeys
	lookAll // ids, too
)

// errMissing: the verb needs something that is not loaded.
var errMissing = errors.New("something must be loaded first")

// forget empties the set, except requests.
func (x *workingSet) forget() {
	*x = workingSet{
		rows: map[int64]*row{}, ids: map[string]*row{}, keys: map[string]*row{}, absentIDs: map[string]struct{}{}, absentKeys: map[string]struct{}{},
		readyQueues: map[string]*readyQueue{}, turns: map[string]*sessionTurns{}, queues: map[string]*queueCount{}, limits: map[string]*limitCount{}, counters: map[DocKey]*counter{},
		agents: map[string]*agentSlots{}, docs: newDocuments(), fetched: map[int64]*signalbox.Request{},
		requests: x.requests, caps: x.caps, run: x.run, prefetch: x.prefetch, local: x.local, lookup: x.lookup,
		changed: x.changed[:0], slots: x.slots[:0], changedQueues: x.changedQueues[:0], changedLimits: x.changedLimits[:0], changedCounters: x.changedCounters[:0], claims: x.claims[:0], entries: x.entries[:0],
		logBuf: x.logBuf, taskBuf: x.taskBuf,
	}
}

// begin prepares the set for an attempt.
func (x *workingSet) begin() {
	x.run++
	x.missing, x.results = false, singleResults{}
	x.want.clear()
}

// note adds a journal entry.
func (x *workingSet) note(e signalbox.Entry) {
	x.Entry++
	e.Seq = x.Entry
	x.entries = append(x.entries, e)
	x.wrote = true
}

// enqueue gives t the next place. EnqueuedAt never decreases, so a clock that jumps back
// lets no task jump the queue.
func (x *workingSet) enqueue(t *signalbox.Task, now time.Time) {
	x.EnqueuedMS = max(x.EnqueuedMS, now.UnixMilli())
	x.Place++
	t.EnqueuedAt, t.Place = time.UnixMilli(x.EnqueuedMS).UTC(), x.Place
}

// requests keeps the requests of waiting tasks, so that a claim need not read them. When it is full, the
// older half is dropped.
type requests struct {
	young, old map[int64]*signalbox.Request
	size       int // of the younger half
}

const requestBytes = 16 << 20

func (q *requests) keep(seq int64, r *signalbox.Request) {
	size := sizeOf(r)
	if q.young == nil || q.size+size > requestBytes {
		q.old, q.young, q.size = q.young, map[int64]*signalbox.Request{}, 0
	}
	if size <= requestBytes/16 {
		q.young[seq] = r
		q.size += size
	}
}

// get returns a request, nil if it is not known.
func (q *requests) get(seq int64) *signalbox.Request {
	if r := q.young[seq]; r != nil {
		return r
	}
	return q.old[seq]
}

func (q *requests) drop(seq int64) {
	if r := q.young[seq]; r != nil {
		delete(q.young, seq)
		q.size -= sizeOf(r)
		return
	}
	delete(q.old, seq)
}

func sizeOf(r *signalbox.Request) int {
	return 256 + len(r.Prompt) + len(r.SealedEnv) + len(r.SystemPrompt) + len(r.Arguments) + len(r.Metadata)
}
