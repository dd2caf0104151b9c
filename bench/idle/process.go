package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
)

func startDirector(ctx context.Context, dir string) (*director.Process, error) {
	binary, err := director.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	cmd := exec.CommandContext(ctx, binary, "director", "--addr", "127.0.0.1:0", "--data", data, "--grace", "0s", "--log-level", "warn")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "SIGNALBOX_HOME="+data)
	return director.Start(cmd)
}

// ticks is the unit of /proc/PID/stat, the same on every Linux.
const ticks = 100

// cpuTime is the processor time that a process has used, in seconds.
func cpuTime(pid int) (float64, error) {
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

// rss is the memory that a process holds, in bytes.
func rss(pid int) (int64, error) {
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
