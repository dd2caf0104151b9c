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
	"strings"
	"syscall"
)

// Build builds the binary in a folder, like `make build`, and returns its path.
func Build(ctx context.Context, dir string) (string, error) {
	return Program(ctx, "github.com/signalbox-ai/signalbox", "cmd/signalbox", filepath.Join(dir, "signalbox"))
}

// Program builds the program in a folder of a module that this one requires, with the
// nearest go.mod.
func Program(ctx context.Context, module, folder, binary string) (string, error) {
	if _, err := os.Stat(binary); err == nil {
		return binary, nil // already built in this run
	}
	where, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("where is %s? Run this in the folder bench: %w", module, err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(strings.TrimSpace(string(where)), folder),
		"-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	return binary, nil
}

// Process is a running director.
type Process struct {
	URL string
	cmd *exec.Cmd
}

// PID returns the process ID of the program that was passed to Start.
func (p *Process) PID() int { return p.cmd.Process.Pid }

var addressForm = regexp.MustCompile(`(?:at|Dashboard) +(http://[0-9.:]+)`)

// Start runs a command line that ends in a director and waits until the director has
// printed its address. Its standard error goes to ours.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a wrapper such as strace ends with the director
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
