package director

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// CPUTime returns the processor time that a process has used, in seconds with
// nanosecond resolution. /proc/PID/stat counts hundredths of a second, which is more
// than a reader may cost a director in a second.
func CPUTime(pid int) (float64, error) {
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &spent); err != nil { // clock_getcpuclockid(3)
		return 0, fmt.Errorf("the processor time of process %d: %w", pid, err)
	}
	return float64(spent.Nano()) / 1e9, nil
}

// RSS returns the resident memory of a process, in bytes.
func RSS(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/PID/statm reads %q", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
