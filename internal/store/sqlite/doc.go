// Package sqlite is the store that keeps everything in one SQLite file. It is
// the default of a single director and needs no server.
//
// # Writes
//
// One goroutine, the writer, owns the only connection that writes. It takes
// all verbs that wait, runs them in one transaction, each in a savepoint of
// its own, writes the journal and the counters once, commits, and then
// answers everyone:
//
//	Submit ─┐
//	Claim  ─┼▶ inbox ─▶ BEGIN  {SAVEPOINT verb RELEASE}*  journal, counters  COMMIT ─▶ board ─▶ answers
//	Apply  ─┘
//
// So many callers share one sync of the disk, and nobody is answered before
// it. A verb that is refused, or finds nothing to do, writes nothing; a batch
// in which nobody wrote is not committed at all.
//
// # What is kept in memory
//
// The ledger holds what the writer must know for each verb and would have to
// count otherwise: depths, fences, the tasks in flight, the slots. It changes
// with the rows, and takes its changes back with them: it keeps a list of the
// changes of the batch, which is undone to where the savepoint began.
//
// The board is what readers may see of it. It is brought up to date after the
// commit and before the answers, so that it never shows what is not durable.
// Both are made from the file when it is opened.
//
// # Reads
//
// Readers have connections of their own, which cannot write, and see the last
// commit. Every statement of the package stands in one list (statements.go),
// and a test asks SQLite for the plan of each: all go by an index.
//
// # Faults
//
// A disk that is full refuses the batch, with an error to each caller, and
// the store goes on. After an I/O error on commit nobody can say what is
// stored, so Options.Fatal ends the process. A file that is damaged, of
// another program, or of a newer version is refused and not touched.
package sqlite
