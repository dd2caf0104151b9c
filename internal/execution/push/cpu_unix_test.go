//go:build unix

package push_test

import (
	"syscall"
	"testing"
	"time"
)

// cpu is the CPU time that the process has used so far.
func cpu(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
