// Package sim plays histories: the real engine, the real dispatcher and the real server of pull agents, over
// a store, against simulated agents and a simulated network, in simulated time. One seed is one history, step
// by step, on every store.
//
//	seed ──▶ world ──▶ scheduler: whose turn is it?
//	                    ├─ goroutines of the dispatchers (push.Options.Turn)
//	                    ├─ verbs of the store: fail, or the director dies before or after
//	                    ├─ agents that pull: claims, reports, beats
//	                    ├─ requests: refused, lost, reset, late, twice, garbled, answers lost
//	                    ├─ logins at a provider: used up, refused, overloaded, reset
//	                    └─ users: submit, cancel, retry, release, clear, pause, open and close accounts, come back with a key
//
// Agents restart, forget, hang and lie; directors die and are paused; clocks jump. After each step that
// stored something, the invariants of the design (§4) are checked; then all faults stop, and every task must
// end. See docs/decisions/0022-simulation.md for why one seed always gives the same history.
//
//	go test ./sim -run TestHistories -seeds 2000              that many histories, from seed 1
//	go test ./sim -run TestHistories -seed 596 -seeds 1       one of them, again
//	go test ./sim -run TestHistories -store sqlite -seeds 50
//	SIGNALBOX_SIM_BUDGET=5m go test -v ./sim                  as many as there is time for
package sim
