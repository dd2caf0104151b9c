// Package alone is what a scheduler needs that stands alone: a book in one file
// instead of a store, the queue of a director that may be on another host, and
// a small HTTP API, that of the seed work-queue.
//
// All that it starts goes through the director's queue. It never speaks to an
// agent: where the director is away, the work waits for it.
package alone
