// Package standalone is a scheduler outside of the director: a store in one file, a queue that
// submits to a director, possibly on another host, and the HTTP API of the seed work-queue.
//
// Everything goes through the director's queue, never to an agent: if the director is down, the
// work waits.
package standalone
