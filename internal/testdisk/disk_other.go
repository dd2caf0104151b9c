//go:build !linux

package testdisk

import "testing"

// New skips the test: only Linux can mount small disks.
func New(t testing.TB, _ string) string {
	t.Helper()
	t.Skip("small disks are mounted on Linux alone")
	return ""
}

// Mount skips the test.
func Mount(t testing.TB, _, _ string) {
	t.Helper()
	t.Skip("small disks are mounted on Linux alone")
}
