// Package rest measures the cost of an idle director: the real binary over SQLite with
// 1,000 registered agents that send heartbeats, each on its own connection; with
// 10,000 schedules, none of which is due; with nothing; and with a reader that watches
// those agents. They are compared with the smallest programs with a worker of a peer,
// and with a bare net/http server that answers the same heartbeats with a constant.
//
// All run concurrently and are measured over the same period: they are idle, so they do
// not disturb each other. The figure is the processor time of each process, by the
// kernel's accounting.
package rest
