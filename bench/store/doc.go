// Command store measures the SQLite store, bare and through the engine,
// against the disk it stands on.
//
//	go run ./bench/store                    the table, five rounds
//	go run ./bench/store -json store.json   and the figures as JSON
//	go run ./bench/store -only submit       only cases with that in their name
//	go run ./bench/store -only exclusivity  only what one execution at a time per agent costs
//
// Figures of a shared machine mean little by themselves, so all cases run in
// turns within one run, round after round, and each is compared with what the
// disk did in the same round: the number of times that one block can be
// overwritten and synced (fdatasync) in a second, which is faster than
// appending. The table shows the median of the rounds.
//
// A second table compares 10,000 agents with one slot each to one agent with
// 10,000 slots (lanes.go).
package main
