// Package confine bounds what a child process and all that it starts may use,
// and knows what of it lives.
//
//	Open ──▶ Host ──Take──▶ Box ──Start──▶ a process, confined before its first instruction
//	          │              │ Alive, Signal, Struck
//	          └─ Report      └─ Free (only when nothing lives in it)
//
// A Box is a place for one run at a time. Where the system has control groups
// (version 2) a box is one, used again and again: what lives in it is
// known without a look at all processes, whatever it calls (setsid, a second
// fork, another environment). Where it has none, limits are those of each
// process (rlimits), and proc finds by other means what lives.
//
// A box has a thread of its own, on which programs are started: what a thread
// gives up (new privileges, by Landlock its right to files) its children never
// get, and the rest of the director keeps. It lives as long as what it started:
// the kernel ties the child's death to it.
//
// A process that is allowed to write the control groups, as root is, can leave
// its box. The sandbox takes that from it.
package confine
