// Package sqlite compares the SQLite store, alone and through the engine, with other
// queues on SQLite and with their common disk.
//
// The rate of the disk is measured in the same round: how many times one block can be
// overwritten and synced (fdatasync) in a second, which is faster than appending; and
// for one caller, an append of as many bytes as its submit writes. Peers use the same
// SQLite, with WAL and synchronous=FULL, as ours does.
package sqlite
