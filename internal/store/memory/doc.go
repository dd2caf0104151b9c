// Package memory is the store that keeps everything in plain data structures
// under one mutex. It is the reference: what it does is what every other
// store must do, so it prefers being obviously right to being fast. Nothing
// survives the process.
//
// Each task is one row. Every list that a verb or a read needs (a queue's
// line, the claim index, the ended tasks) is a sorted line of rows, and one
// function each puts a row into all of its lines and takes it out of them
// (list and unlist), so that no list can disagree with the row.
package memory
