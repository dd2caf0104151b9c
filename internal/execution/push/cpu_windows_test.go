package push_test

import (
	"syscall"
	"testing"
	"time"
)

// cpu is the CPU time that the process has used so far.
func cpu(t testing.TB) time.Duration {
	var begun, ended, kernel, user syscall.Filetime
	self, err := syscall.GetCurrentProcess()
	if err == nil {
		err = syscall.GetProcessTimes(self, &begun, &ended, &kernel, &user)
	}
	if err != nil {
		t.Fatal(err)
	}
	ticks := func(f syscall.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) } // units of 100 ns
	return time.Duration(100 * (ticks(kernel) + ticks(user)))
}
