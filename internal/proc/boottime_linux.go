package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// booted is a reading of the clock that also counts while the machine sleeps,
// and bootedAt the wall clock at that time: the base of SinceBoot.
var booted, bootedAt = bootTime(), time.Now().Round(0)

// SinceBoot is a clock that is never set and also counts while the machine
// sleeps, unlike Go's own monotonic clock on Linux.
func SinceBoot() time.Time { return bootedAt.Add(bootTime() - booted) }

func bootTime() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		panic("the clock since the start of this machine cannot be read: " + err.Error()) // Linux has had it since 2.6.39
	}
	return time.Duration(at.Nano())
}
