// Package overhttp measures the real binary over HTTP: how soon an agent gets a
// task, how many submits are acknowledged, how long a start takes, how large it
// is. The director stands over SQLite on the disk that is measured; the agent is
// a real agent daemon with the demo runner, in this process, so that its moments
// can be compared with those of the submitter without a second clock.
//
// Figures with 1 ms added to each sync need strace and are left out without it.
package overhttp
