package verbs

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Want is what a batch needs to load. The same item may be named twice.
type Want struct {
	Writer string // Loaded.Number is that of its last batch
	// Since is a moment: the logs of the batches since then are wanted, if all are still
	// kept. 0: none.
	Since int64
	// Parent is the batch that the caller, which holds the lock, builds on although it was not stored when
	// the lock was passed on. Load waits until it is stored, and returns ErrMoved if it fails. nil: none.
	Parent *BatchID

	Tasks    []string   // by id
	Keys     []string   // by idempotency key
	Requests []int64    // by Seq of the task; with SealedEnv
	Lines    []LineWant // ready tasks of a queue
	Queues   []string   // how many wait, and are ready
	Limits   []string   // how many wait
	Turns    []string   // pending and in-flight tasks of a session
	// Heads ask for a part of sessions. Only used with a backend that no other process
	// writes to.
	Heads []HeadWant
	Named []string // whether any task names a session
	Slots []string // slot rows of an agent
	InUse bool     // slots in use over all agents
	Due   *DueWant
	Ended *EndedWant
	Cut   *time.Time // the journal: entries older than this
	Docs  []DocKey
	Pages []Page
}

// LineWant asks for the first ready tasks of a queue after a cursor.
type LineWant struct {
	Queue string
	After store.Cursor // the zero Cursor: from the head
	N     int
}

// HeadWant asks for the tasks of a session that are in flight or ready, and for the first N of those that
// have not ended.
type HeadWant struct {
	Session string
	N       int
}

// DueWant asks for tasks of the timed index with a NotBefore above After and
// at or before Until, and for the first NotBefore above Until.
type DueWant struct {
	After, Until time.Time
	AfterPlace   int64 // of those at exactly After, the ones with a higher place are included
	N            int
}

// EndedWant asks for the tasks that ended first, after a cursor and before a time in Unix
// milliseconds.
type EndedWant struct {
	After  store.EndedCursor
	Before int64
	N      int
}

// Loaded answers a Want: its lists have the order and length of those asked for. The
// receiver may modify it.
type Loaded struct {
	Counters
	// Number is that of the last batch of Want.Writer; 0: none. It is kept for at least a
	// week: if it decreases, the server has lost batches.
	Number int64
	Logs   [][]byte // Delta.Log of each batch since Want.Since, in order; empty if one is missing
	// Handed is a batch based on all the rest: its process has passed the lock on and is still storing it.
	// Only Lock with a Since may return it; without a Since, Lock waits until no batch is being stored.
	Handed *Handed

	Tasks    []*signalbox.Task // nil: there is none
	Keys     []*signalbox.Task
	Requests []*signalbox.Request
	Lines    [][]*signalbox.Task
	// LineRequests are the requests of the tasks in Lines, as far as the backend has them
	// at little cost; nil otherwise. A whole list may be missing.
	LineRequests [][]*signalbox.Request
	Queues       []QueueCount
	Limits       []int
	Turns        [][]*signalbox.Task // by OrderKey, Place
	Heads        []Head
	Named        []bool
	Slots        [][]signalbox.Slot // by slot
	InUse        [2]int             // by sort: normal and isolated; slots of executors excluded
	Due          []*signalbox.Task
	NextDue      time.Time
	Ended        []*signalbox.Task // oldest end first
	Cut          int64             // Seq of the last older entry at the beginning of the journal; 0: none
	Docs         []*Doc
	Pages        [][]Doc
}

// Head answers a HeadWant. Its tasks have no order, and may be named twice.
type Head struct {
	Tasks []*signalbox.Task
	UpTo  store.Cursor // all up to here are in it; EndOfLine: all of the session
}

// EndOfLine is after all tasks.
var EndOfLine = store.Cursor{OrderKey: math.MaxInt64, Place: math.MaxInt64}

// BatchID identifies a batch, uniquely for ever.
type BatchID struct {
	Writer string
	Number int64
}

// Handed is a batch that is passed on before it is stored.
type Handed struct {
	BatchID
	Log []byte
}

// QueueCount is how many tasks of a queue wait, and how many of them are ready.
type QueueCount struct{ Waiting, Ready int }

// Doc is a row of a kind with few rows, or whose rows are read as a whole.
type Doc struct {
	DocKey
	Sort int64 // the order of a Page
	Body []byte
}

// DocKey names a doc.
type DocKey struct{ Kind, ID string }

// Page asks for docs of a kind: by ID, or with BySort by Sort, then ID; with Falling in descending order.
// After, if set, is where the previous page ended.
type Page struct {
	Kind    string
	BySort  bool
	Falling bool
	After   *Doc // its Sort and ID
	Limit   int  // 0: all
}

// Delta is the changes of a batch.
type Delta struct {
	Writer   string // who commits, and
	Number   int64  // number of the batch of this writer: increasing, from 1
	From, To Counters
	// Parent is the batch that From is of, if it was passed on and may not be stored: if it
	// fails, this one must fail, too (ErrMoved). nil: From is stored.
	Parent *BatchID

	Tasks    []TaskChange // one for each task
	Requests []RequestRow // of new tasks
	Results  []ResultRow  // in place of the stored ones
	Queues   []QueueChange
	Limits   []LimitChange
	Slots    []SlotChange
	InUse    [2]int // after the batch
	Docs     []Doc  // put; one with a nil Body is deleted if it exists
	Entries  []signalbox.Entry
	Cut      int64 // journal entries up to this Seq are deleted; 0: none
	// Log is the changes of the batch for processes that know the state before it
	// (LogSpan). The newest LogsKept are kept, possibly less durably than the rows; nil:
	// there is none.
	Log []byte
}

// LogsKept is how many logs a backend keeps.
const LogsKept = 64

// logHead is the length of what LogSpan reads.
const logHead = 16

// LogSpan returns the moments that a log's batch began at and leads to.
func LogSpan(log []byte) (from, to int64) {
	return int64(binary.BigEndian.Uint64(log)), int64(binary.BigEndian.Uint64(log[8:])) //nolint:gosec // as they were written
}

// TaskChange is a task before and after: Before is nil for a new one, which may already have ended, After for
// a deleted one, whose request and result are deleted, too. When a task ends whose Before has HasEnv, the
// SealedEnv of its request is erased.
type TaskChange struct {
	Before, After *signalbox.Task
	Drafted       *signalbox.Task // as it was drafted; nil: it was not
}

// RequestRow is the request of a task that is new or was edited. If edited, SealedEnv is nil, and the stored
// environment stays.
type RequestRow struct {
	Seq     int64
	Request signalbox.Request
}

type ResultRow struct {
	Seq    int64
	Result signalbox.Result
}

// QueueChange is the counts of a queue after the batch; without waiting tasks the row is
// deleted. A backend that can count cheaply need not store them.
type QueueChange struct {
	Queue string
	QueueCount
}

// LimitChange is the count under a limit after the batch; at 0 its row is deleted. A backend that can count
// cheaply need not store it.
type LimitChange struct {
	Limit string
	N     int
}

// SlotChange is a slot before and after; nil: there is no row.
type SlotChange struct {
	Agent         string
	Slot          int
	Before, After *signalbox.Slot
}

// wants collects what verbs need, each item once.
type wants struct {
	Want
	asked       map[wanted]struct{}
	readyQueues []*readyQueue
	any         bool
}

type wanted struct {
	what byte
	a, b string
}

func (w *wants) clear() {
	if !w.any {
		return
	}
	for _, l := range w.readyQueues {
		l.need, l.wanted = 0, false
	}
	*w = wants{}
}

// once reports whether an item is wanted for the first time.
func (w *wants) once(what byte, a, b string) bool {
	w.any = true
	key := wanted{what, a, b}
	if _, known := w.asked[key]; known {
		return false
	}
	if w.asked == nil {
		w.asked = map[wanted]struct{}{}
	}
	w.asked[key] = struct{}{}
	return true
}

func (w *wants) task(id string) {
	if w.once('t', id, "") {
		w.Tasks = append(w.Tasks, id)
	}
}

func (w *wants) key(key string) {
	if w.once('k', key, "") {
		w.Keys = append(w.Keys, key)
	}
}

func (w *wants) queue(queue string) {
	if w.once('q', queue, "") {
		w.Queues = append(w.Queues, queue)
	}
}

func (w *wants) limit(limit string) {
	if w.once('l', limit, "") {
		w.Limits = append(w.Limits, limit)
	}
}

func (w *wants) turn(session string) {
	if w.once('s', session, "") {
		w.Turns = append(w.Turns, session)
	}
}

func (w *wants) head(session string, n int) {
	if w.once('h', session, "") {
		w.Heads = append(w.Heads, HeadWant{session, n})
	}
}

func (w *wants) slots(agent string) {
	if w.once('a', agent, "") {
		w.Slots = append(w.Slots, agent)
	}
}

func (w *wants) doc(key DocKey) {
	if w.once('d', key.Kind, key.ID) {
		w.Docs = append(w.Docs, key)
	}
}

func (w *wants) page(kind string) {
	if w.once('p', kind, "") {
		w.Pages = append(w.Pages, Page{Kind: kind})
	}
}

func (w *wants) readyQueue(l *readyQueue) {
	w.any = true
	if !l.wanted {
		l.wanted = true
		w.readyQueues = append(w.readyQueues, l)
	}
}

func (w *wants) request(seq int64) {
	w.any = true
	w.Requests = append(w.Requests, seq)
}
