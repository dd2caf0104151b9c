// Package model is the reference that the stores are compared with: every other store must do what it does.
// It keeps everything in plain data structures under one mutex, prefers being obviously right to being fast,
// and shares no code with the stores. It is not part of the program.
//
// Each task is one row. Every list that a verb or a read needs (a queue, the claim index, the ended tasks) is
// a sorted line of rows. One function, list, adds a row to all of its lines, and one, unlist, removes it, so
// no line can disagree with the row.
package model
