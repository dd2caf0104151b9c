// Command commands measures what a command tool costs above the start of its
// program. The program is true; what is stated is beside a bare loop that does
// nothing but fork, exec and wait for it, in the same round of the same run.
//
//	go run ./bench/commands [--rounds 9] [--runs 300] [--dir DIR] [--json FILE] [--profile FILE]
//
//	bare      os.StartProcess and Wait: no pipes, no environment, no limits
//	run       a run of a tool as the director makes it, without task and store:
//	          a line of JSON in, both outputs read to their end, nothing left alive
//	path      submit, durable, slot, durable start, run, durable result, caller
//	          told: with the director's parts in this process, and through HTTP
//	          with the real binary
//
// The rounds of all take turns; medians of the rounds are shown. --profile
// writes a CPU profile of the path in this process.
package main
