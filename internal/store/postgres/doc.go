// Package postgres keeps a store in PostgreSQL 14 or newer: a verbs.Backend.
//
// A batch is one transaction. Its first statement updates the row of the table meta, on condition that it is
// unchanged since the batch read it: so the batches of all processes are serialized by that row, and no
// statement locks anything else. All statements of a batch are sent together and answered together, since
// none depends on the result of another.
//
//	meta     one row: the counters, which are the moment
//	writers  the number of each process's last batch
//	tasks    a row for each task, changed in place: no index knows what changes
//	line     what waits, in the order of its queue; a row goes when it is taken
//	turns    what waits or runs of a session, in its order
//	ended    what has ended, by the time of it, with how long it ran
//	slots    slots in use
//	counts   how many wait, by queue and by limit
//	docs     all else: agents, sessions, schedules, the audit log, …
//	journal  a row for each batch that has entries
//	logs     what the newest batches changed, for processes that follow them
//
// tasks is the only table that grows, and the one whose rows change most often. The columns that tasks are
// searched by and that change are in narrow tables of their own, so that a change of state rewrites the row
// within its page and touches no index, and vacuum has little to clean.
//
// Search columns are of type bytea: a name may hold any byte, and the order is that of Go.
package postgres
