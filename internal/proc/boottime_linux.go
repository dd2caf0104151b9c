package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// booted is an instant by the clock that counts also while the machine sleeps,
// and what the calendar said then: what SinceBoot counts from.
var booted, bootedAt = bootTime(), time.Now().Round(0)

// SinceBoot is a clock that nobody sets and that counts also while the machine
// sleeps, as Go's own monotonic clock does not on Linux.
func SinceBoot() time.Time { return bootedAt.Add(bootTime() - booted) }

func bootTime() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		panic("the clock since the start of this machine cannot be read: " + err.Error()) // Linux has had it since 2.6.39
	}
	return time.Duration(at.Nano())
}
