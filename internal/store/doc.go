// Package store is the contract between the engine and whatever keeps its
// rows: memory, SQLite, and later PostgreSQL and Redis.
//
// The methods are the verbs of a task's life, not CRUD. Each is one atomic
// step together with its slot, session and journal rows, durable when it
// returns without an error, and without any effect when it returns one.
// There is no Begin or Commit: a store must be able to make a script of each
// verb.
//
// A store holds no rule of the state machine. Submit and Claim aside, what a
// transition does is decided by signalbox.Next, and a store compares and
// sets: it writes the change where the row still has the revision that the
// change was made from. A Go store calls signalbox.Next for the claim too,
// on the head it chose, within its transaction.
//
// What a store does decide is order:
//
//   - Place. Every enqueueing (a submit, or a change with Back set) gets the
//     next Place and an EnqueuedAt that never decreases, even where the clock
//     does: EnqueuedAt = max(now, the newest EnqueuedAt so far).
//   - Readiness. A pending task is Ready when its NotBefore has passed and no
//     other task of its session is ready or in flight. Where several tasks of
//     a session could be, the one with the lowest order key, then place, is.
//     Submit, Apply, Claim and Wake keep this true in the same step that
//     changes it: the end of one turn readies the next one.
//   - Room and session. Whether a task could start at once, and in which
//     conversation a chat takes place, is decided in the step that stores it.
//     What that means is written once, for all stores: Room.Admit,
//     BeginSession, BindSession. A store counts and keeps.
//   - Fences. Each claim gets a fence above all fences given before by this
//     store and above ClaimRequest.FenceAbove.
//
// A store reads no clock: every method that needs the time is handed it.
//
// Errors are *signalbox.Error: CodeNotFound, CodeQueueFull, CodeIdempotency,
// CodeStoreFailed (the write did not happen), CodeStoreCorrupt; and ErrStale
// from Apply. An error of the disk on commit is fatal, because after it
// nobody can say what is stored: the store calls Options.Fatal of its
// package, which ends the process.
//
// storetest is the suite that every store passes.
package store
