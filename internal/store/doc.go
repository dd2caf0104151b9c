// Package store is the contract between the engine and the stores of its rows: memory, SQLite, PostgreSQL and
// Redis.
//
// The methods are the verbs of a task's life, not CRUD. Each is one atomic step together
// with its slot, session and journal rows, durable when it returns without an error, and
// without any effect when it returns one. There is no Begin or Commit.
//
// A store holds no rule of the state machine. Submit and Claim aside, signalbox.Next
// decides what a transition does, and a store compares and sets: it writes the change if
// the row still has the revision that the change was made from. A store calls
// signalbox.Next for the claim too, on the task it chose, within its transaction.
//
// What a store does decide is order:
//
//   - Place. Every enqueueing (a submit, or a change with Back set) gets the next Place and an EnqueuedAt that never decreases, even if the clock does: EnqueuedAt = max(now, the newest EnqueuedAt so far).
//   - Readiness. A pending task is Ready when its NotBefore has passed and no other task of its session is ready or in flight. If several tasks of a session could be, it is the one with the lowest order key, then place. Submit, Apply, Claim and Wake keep this true in the same step that changes it: the end of one turn makes the next one ready.
//   - Room and session. Whether a task could start at once, and in which session a chat takes place, is decided in the step that stores it. These rules are written once, for all stores: Room.Admit, BeginSession, BindSession.
//   - Fences. Each claim gets a fence above all fences given before by this store and above ClaimRequest.FenceAbove.
//
// A store reads no clock: every method that needs the time gets it as a parameter.
//
// Errors are *signalbox.Error: CodeNotFound, CodeQueueFull, CodeIdempotency, CodeStoreFailed (the write did
// not happen), CodeStoreCorrupt; and ErrStale from Apply. A disk error on commit is fatal, because after it
// the stored state is unknown: the store calls Options.Fatal of its package, which ends the process.
//
// storetest is the conformance suite of all stores.
package store
