//go:build !linux

package e2e_test

// unmountAllOf: where the tests mount nothing, nothing is left mounted.
func unmountAllOf(string) {}
