// Package verbs makes a store.Store of a server that keeps rows: a Backend,
// such as PostgreSQL or Redis.
//
//	verbs ──inbox──▶ writer ──Want──▶ Backend.Load or Lock ──Loaded──▶ workingSet
//	                   │  the verbs run over the set, one after the other
//	                   └──Delta──▶ Backend.Commit ──▶ all who wait are answered
//
// The rules of the verbs are written once, in Go, here. All verbs that wait in
// a process go into one batch: what they need is read in one exchange, what
// they changed is written in one. A batch is one atomic step of the server, and
// the batches of all processes have one order, their Moment: that is what makes
// limits, places, fences and the journal exact over any number of directors.
//
// The writer has two modes. A process that is alone (alone.go) keeps what it
// read in the working set for the next batch: Commit refuses a batch that began
// at an older Moment (ErrMoved). So it needs one exchange for a batch, and makes
// the next one ready while that is in flight. A Backend that no other process
// writes to never knows another mode.
//
// Over a SharedBackend, where others write, too (among.go), a batch takes the
// lock first; then nobody can be refused for ever. With the lock come the logs of what the others did since, by which
// the set follows them (follow.go), so that a batch is two exchanges. A process
// that missed a log forgets what it knew and loads what it needs. A backend may
// hand a batch on while it is stored (Loaded.Handed): the next process makes its
// own upon it, which is stored only if that one is.
//
// An answer that never came is asked for, not guessed: each batch leaves its
// number with its writer's name, in the same step (SharedBackend.Committed). The same
// number shows when a server has lost what it acknowledged: then a new
// generation begins (generation.go), whose numbers lie above all that were
// ever given.
package verbs
