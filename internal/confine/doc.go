// Package confine limits what a child process and its descendants may use,
// and knows which of them are alive.
//
//	Open ──▶ Host ──Take──▶ Box ──Start──▶ a process, confined before its first instruction
//	          │              │ Alive, Signal, Struck
//	          └─ Report      └─ Free (only when no process in it is alive)
//
// A Box is a place for one run at a time. If the system has control groups
// (version 2), a box is a control group that is reused. It knows its living
// processes without scanning all processes, whatever they call (setsid, a
// second fork, another environment). Without control groups, limits apply to
// each process (rlimits), and package proc finds the living processes by
// other means.
//
// Each box has its own thread, on which programs are started. What a thread
// gives up (new privileges, or with Landlock access to files) its children
// never get, and the rest of the director keeps. The thread lives as long as
// the processes that it started, because the kernel ties the child's death to
// it.
//
// A process that may write the control groups, as root may, can leave its box.
// The sandbox prevents that.
package confine
