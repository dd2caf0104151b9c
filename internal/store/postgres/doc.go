// Package postgres keeps a store in PostgreSQL 14 or newer: a batch.Backend.
//
// A batch is one transaction. Its first statement writes the row of the table
// meta, on the condition that nobody wrote it since the batch read it: so the
// batches of all processes stand in one line, that row's, and no statement
// locks anything else. All statements of a batch go out together and are
// answered together; between them stands nothing that the program decides.
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
// tasks is the only table that grows, and it is the one whose rows change most
// often. What tasks are sought by and changes stands in narrow tables beside
// it, so that a change of state rewrites the row within its page and touches no
// index, and vacuum has little to clean.
//
// What is sought by is a bytea: a name may hold any byte, and the order is that
// of Go.
package postgres
