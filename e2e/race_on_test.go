//go:build race

package e2e_test

// raceEnabled says that this test was built with the race detector; then the
// binary under test is too.
const raceEnabled = true
