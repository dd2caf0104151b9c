package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// process is the director under measurement.
type process struct {
	url string
	cmd *exec.Cmd
}

var addressForm = regexp.MustCompile(`at (http://[0-9.:]+)`)

func startDirector(ctx context.Context, dir string) (*process, error) {
	binary := filepath.Join(dir, "signalbox")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "github.com/signalbox-ai/signalbox/cmd/signalbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	data := filepath.Join(dir, "data")
	cmd := exec.CommandContext(ctx, binary, "director", "--addr", "127.0.0.1:0", "--data", data, "--grace", "0s", "--log-level", "warn")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "SIGNALBOX_HOME="+data)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := addressForm.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return &process{m[1], cmd}, nil
		}
	}
	_ = cmd.Wait()
	return nil, fmt.Errorf("the director did not say where it is")
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait()
}

// ticks is the unit of /proc/PID/stat, the same on every Linux.
const ticks = 100

// cpu is the processor time that the process has used, in seconds.
func (p *process) cpu() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
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

// rss is the memory that the process holds, in bytes.
func (p *process) rss() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
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
