package confine

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
)

// probe finds how a child comes into its group, with one that does nothing.
func (h *Host) probe() error {
	h.byFD, h.trace = h.members != "", true
	path, _ := exec.LookPath("true")
	if path == "" {
		return nil // nothing harmless to try it with: the first run tells
	}
	try := func(trace bool) error {
		b, err := h.box(func(b *Box) error { return b.begin(Limits{}, Sandbox{}, "") })
		if err != nil {
			return err
		}
		b.stopAlways = trace
		defer func() { b.stopAlways = false }()
		ctx, cancel := context.WithTimeout(context.Background(), probeWait)
		defer cancel()
		cmd := exec.CommandContext(ctx, path)
		if err = b.Start(cmd); err == nil {
			err = cmd.Wait()
		}
		return errors.Join(err, b.Free())
	}
	err := try(true)
	if errors.Is(err, syscall.EPERM) {
		h.trace = false
		h.note("ptrace is refused: limits of single processes, and in Landlock those of the group, hold from just after their start")
	}
	err = try(false)
	if err != nil && h.byFD {
		h.byFD = false
		err = try(true)
	}
	if err != nil && h.members != "" && h.o.Method != byV2 {
		h.note("no child can be started in a control group: %v", reason(err))
		err = h.withoutGroups()
	}
	if err != nil {
		return fmt.Errorf("confine: no program can be started in a box: %w", err)
	}
	return nil
}

// withoutGroups goes on with rlimits alone.
func (h *Host) withoutGroups() error {
	h.mu.Lock()
	boxes := h.idle
	h.idle = nil
	h.mu.Unlock()
	for _, b := range boxes {
		b.retire()
	}
	err := h.removeAll()
	h.unlock()
	h.by, h.members, h.method = map[string]string{}, "", byRlimit
	h.fillRlimits()
	return err
}
