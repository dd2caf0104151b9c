// Package sqlite measures the SQLite store, bare and through the engine, beside
// the queues that others have built on SQLite, and against the disk that all
// of them stand on.
//
// The disk is what it is compared with in the same round: how many times one
// block can be overwritten and synced (fdatasync) in a second, which is faster
// than appending; and for one caller, an append of as many bytes as its submit
// writes. Peers run on the same SQLite, with WAL and synchronous=FULL, as ours
// does.
package sqlite
