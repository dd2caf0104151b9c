//go:build race

package e2e_test

// raceEnabled says that this test was built with the race detector.
const raceEnabled = true
