// Package model is the reference that the stores are compared with: what it
// does is what every other store must do. It keeps everything in plain data
// structures under one mutex, prefers being obviously right to being fast, and
// shares no code with what is compared with it. It is not in the program.
//
// Each task is one row. Every list that a verb or a read needs (a queue's
// line, the claim index, the ended tasks) is a sorted line of rows, and one
// function each puts a row into all of its lines and takes it out of them
// (list and unlist), so that no list can disagree with the row.
package model
