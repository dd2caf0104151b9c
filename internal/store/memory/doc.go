// Package memory is the store that keeps everything in the process, for trials and tests:
// nothing survives it. It is the verbs over a Backend of maps and sorted lists under one lock.
//
// Each task is one row. Every list that a want or a read uses (a queue's waiting tasks, the
// ready ones, the ended ones) is sorted; one function adds a row to all its lists and one
// removes it (addToLists and removeFromLists).
package memory
