// Package peers is the membership of directors over a store: a director sends heartbeats
// within its lease, and learns from the answers which others are alive and which agents it
// holds.
//
// Each agent has one director: the live one that ranks it highest (rendezvous hashing), so a director that
// joins or leaves moves only its own share. A director that should no longer hold an agent stops following it
// and then gives it up; the one that should takes it as soon as no live director holds it. Until then the
// agent stays with its holder.
//
// Two clocks decide. A director counts as alive for Lease (10 s) after its last beat, by the clock of the
// store's server. It considers its own lease valid for Safe (8 s) after that, by its own monotonic clock: a
// director that was paused, or could not reach the store, holds nothing by the time another takes over.
// Others take its agents when its lease is over by the server's clock and they have seen no beat of it for
// Safe by their own clocks: so a jump of the server's clock ends no lease early. Setting it back extends none
// either: a director without a beat for Lease, by the observer's own clock, is dead.
//
// If a director's lease is over by the server's clock only, it continues, and takes its agents again with the
// beat that starts its next lease: it loses only what another took. Its own clock includes the time in which
// its machine sleeps.
//
//	0 s     beat stored
//	8 s     Holds is false; Lapse: runs of the director's own executor are killed
//	10 s    the next beat of another director finds the lease over, and takes
//
// A director that stops yields first: it hands its agents to the others while it is still
// alive, so that runs of its own executor can finish. Then it leaves.
//
// A process that starts under the name of a live one supersedes it. If the old one had another address, the
// new one takes nothing until the old one must know.
//
// peerstest lets several directors share a store within one process.
package peers
