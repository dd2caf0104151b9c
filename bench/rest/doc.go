// Package rest measures what a director costs that has nothing to do: the real
// binary over SQLite, once with 1,000 registered agents that beat, each on a
// connection of its own, once with 10,000 schedules of which none is due, and
// once with nothing, and what one costs who looks at those agents. Beside them stand the smallest programs with a worker of a
// peer, and a bare net/http server that answers the same heartbeats with a
// constant.
//
// All run side by side, and the same stretch of time counts for all: they are
// idle, so none is in another's way. The figure is the processor time of each
// process, by the kernel's account.
package rest
