// Package tiny builds and starts the smallest programs with a peer and a worker
// (bench/tiny).
package tiny

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
)

// Build builds the program of a peer.
func Build(ctx context.Context, dir, peer string) (string, error) {
	return director.Program(ctx, "github.com/signalbox-ai/signalbox/bench", filepath.Join("tiny", peer), filepath.Join(dir, "tiny-"+peer))
}

// Process is a program that has reported that it is ready.
type Process struct{ cmd *exec.Cmd }

// Start runs it on the queue at an address, and waits until it is ready.
func Start(ctx context.Context, binary, at string) (*Process, error) {
	cmd := exec.CommandContext(ctx, binary, at)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd}
	if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "ready" {
		p.Stop()
		return nil, errors.New(binary + " did not become ready")
	}
	return p, nil
}

// PID returns its process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop ends it.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}
