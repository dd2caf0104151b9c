// Package peers keeps a director among the others over its store: it beats
// within its lease, and knows from the answers who else lives and to which
// agents this director dispatches.
//
// Each agent has one director: the one that ranks it highest among those that
// live (rendezvous hashing), so that one which comes or goes moves only its own
// share. A director that should not hold an agent any more stops following it
// and then gives it up; one that should takes it as soon as nobody who lives
// holds it. Until then the agent goes on with who has it.
//
// Two clocks decide. A director counts as living for Lease (10 s) after its last
// beat, by the clock of the store's server. It itself holds what it holds for
// Safe (8 s) after that, by its own monotonic clock: one that stood still, or
// could not reach the store, holds nothing before any other takes over. Others
// take what it had when the server's clock says that its lease is over and they
// have seen no beat of it for Safe by their own clocks: a server whose clock
// jumps ends no lease before its time. Nor does one that goes back prolong any:
// of whom nobody saw a beat for Lease by his own clock is dead whatever it says.
//
// A director whose lease is over by the server's clock alone goes on, and takes
// what it holds anew with the beat that begins its next lease: it loses only
// what another took. Its own clock counts the time in which its machine sleeps.
//
//	0 s     beat stored
//	8 s     Holds is false; Lapse: runs of the director's own executor are killed
//	10 s    the next beat of another director finds the lease over, and takes
//
// One that stops yields first: it gives its agents to the others while it still
// beats, so that what its own executor runs can come to an end. Only then it
// leaves.
//
// A process that starts under the name of one that lives supersedes it. Where
// that one had another address, nothing is taken before it must know.
//
// peerstest has several directors share a store of one process.
package peers
