// Command idle measures what a director costs that has nothing to do: the
// real binary over SQLite with 1,000 registered agents that beat, each on a
// connection of its own, all played by this process.
//
//	go run ./bench/idle [--agents 1000] [--span 60s] [--rounds 3] [--every 0] [--json FILE]
//
// The agents beat as often as the director asks them to, as ours do; --every
// overrules it. The figure is the processor time that the director's process
// used in each span, by the kernel's account.
package main
