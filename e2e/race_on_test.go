//go:build race

package e2e_test

// raceEnabled says whether this test was built with the race detector.
const raceEnabled = true
