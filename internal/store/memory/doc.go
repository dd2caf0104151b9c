// Package memory is the store that keeps everything in the process, for trials
// and for tests: nothing survives it. It is the verbs over a Backend of plain
// maps and sorted lists under one lock.
//
// Each task is one row. Every list that a want or a read goes by (a queue's
// line, what is ready, what has ended) is sorted, and one function each puts a
// row into all of its lists and takes it out of them (list and unlist).
package memory
