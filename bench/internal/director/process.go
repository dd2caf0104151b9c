package director

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticks is the unit of /proc/PID/stat, the same on every Linux.
const ticks = 100

// CPUTime is the processor time that a process has used, in seconds.
func CPUTime(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name stands in parentheses and may hold spaces; utime and stime are
	// the 14th and 15th field, the 12th and 13th behind it.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat reads %q", text)
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticks, err
}

// RSS is the memory that a process holds, in bytes.
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
