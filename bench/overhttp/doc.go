// Package overhttp measures the real binary over HTTP: how soon an agent gets a
// task, how many submits are acknowledged, the start time and the size. The director
// uses SQLite on the measured disk. The agent is a real agent daemon with the demo
// runner in this process, so that its times and those of the submitter come from one
// clock.
//
// Figures with 1 ms added to each sync need strace and are skipped without it.
package overhttp
