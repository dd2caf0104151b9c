// Package sqlite keeps a store in one SQLite file: a verbs.Backend, which loads
// rows, commits deltas and answers reads. What the verbs do is in package verbs.
//
//	verbs ──Load, Commit──▶ one connection that writes ──▶ the file
//	   ▲                        └── live totals: counts, orders, run times, in memory
//	   └──── reads ───── a pool of connections that only read
//
// A task's row is a packed body (package pack) beside the columns that something
// is sought by. The body is led by a keyed sum over it (sum.go), and holds all
// that the columns hold: a row whose bytes were changed in the file, or that was
// moved to another place, is found when it is read, and quarantined (damaged.go).
// What is large stands apart, so that a change of state does not rewrite it:
// requests and results, each with a sum of its own; and sealed environments,
// which are overwritten when their task ends.
//
// A commit is one transaction, in a write-ahead log with synchronous=FULL. An I/O
// error on it is fatal (Options.Fatal): nobody can say then what is stored. One
// process has the file, by a lock beside it.
//
// A file of an older schema is upgraded when it is opened, in one transaction
// (upgrade.go).
package sqlite
