// Package verbs implements store.Store over a Backend, a server that keeps rows, such as
// PostgreSQL or Redis.
//
//	verbs ──inbox──▶ writer ──Want──▶ Backend.Load or Lock ──Loaded──▶ workingSet
//	                   │  the verbs run over the set, one after the other
//	                   └──Delta──▶ Backend.Commit ──▶ all callers are answered
//
// The rules of the verbs are written once, in Go, here. All verbs that wait in a process
// form one batch: what they need is read in one exchange, what they changed is written in
// one. A batch is one atomic step of the server, and the batches of all processes are
// totally ordered by their Moment: this makes limits, places, fences and the journal exact
// over any number of directors.
//
// The writer has two modes. A process that is the only writer (exclusive_mode.go) keeps
// what it read in the working set for the next batch: Commit refuses a batch based on an
// older Moment (ErrMoved). So a batch needs one exchange, and the next one is prepared
// while it is in flight. A Backend that no other process writes to is always in this mode.
//
// Over a SharedBackend with other writers (shared_mode.go), a batch takes the lock first,
// so that none can be refused for ever. The lock comes with the logs of what the others
// have done since, by which the set is brought up to date (follow.go); a batch is two
// exchanges. A process that missed a log discards its set and loads what it needs. A
// backend may pass the lock on while a batch is being stored (Loaded.Handed): the next
// process builds its own batch on it, which is stored only if that one is.
//
// A lost answer is resolved, not guessed: each batch stores its number with its writer's
// name, in the same step (SharedBackend.Committed). The same number shows when a server has
// lost acknowledged data: then a new generation starts (generation.go), whose numbers are
// above all that were ever given.
package verbs
