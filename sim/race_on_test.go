//go:build race

package sim_test

// raced: the race detector makes a history twenty times as slow.
const raced = true
