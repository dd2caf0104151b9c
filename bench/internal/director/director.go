// Package director builds the real binary for the benchmarks and runs it as a
// director on a free port.
package director

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
)

// Build makes the binary in a folder and returns its path.
func Build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "signalbox")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "github.com/signalbox-ai/signalbox/cmd/signalbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return binary, nil
}

// Process is a running director.
type Process struct {
	URL string
	cmd *exec.Cmd
}

// PID is that of the program which Start was given.
func (p *Process) PID() int { return p.cmd.Process.Pid }

var addressForm = regexp.MustCompile(`(?:at|Dashboard) +(http://[0-9.:]+)`)

// Start runs a command line that ends in a director and waits until it has
// said where it is. Its standard error is ours.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what stands before the director, such as strace, ends with it
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
			return &Process{m[1], cmd}, nil
		}
	}
	_ = cmd.Wait()
	return nil, errors.New("the director did not say where it is")
}

// Stop ends it and returns when it has ended.
func (p *Process) Stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	_ = p.cmd.Wait()
}
