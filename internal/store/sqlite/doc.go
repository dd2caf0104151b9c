// Package sqlite keeps a store in one SQLite file: a verbs.Backend, which loads
// rows, commits deltas and answers reads. What the verbs do is in package verbs.
//
//	verbs ──Load, Commit──▶ one connection that writes ──▶ the file
//	   ▲                        └── live totals: counts, orders, run times, in memory
//	   └──── reads ───── a pool of connections that only read
//
// A task's row is a packed body (package pack) beside the columns that are searched. The body begins with a
// keyed checksum (sum.go), which also covers these columns: a row whose bytes were changed in the file, or
// that was moved to another place, is detected when it is read, and quarantined (damaged.go). Large values
// are separate, so that a change of state does not rewrite them: requests and results, each with its own
// checksum; and sealed environments, which are overwritten when their task ends.
//
// A commit is one transaction, in a write-ahead log with synchronous=FULL. An I/O error on it is fatal
// (Options.Fatal), because after it the stored state is unknown. A lock file beside the database keeps other
// processes out.
//
// A file of an older schema is upgraded when it is opened, in one transaction
// (upgrade.go).
package sqlite
