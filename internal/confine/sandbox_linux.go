package confine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// sandboxReport tests once which sandboxes are available.
func (h *Host) sandboxReport() []SandboxReport {
	h.sandboxes.Do(func() {
		h.found = []SandboxReport{h.probeBwrap(), h.probeLandlock()}
	})
	return h.found
}

// probeLandlock asks the kernel for its version of Landlock, and whether a
// child can have a network namespace. Forbidding sockets also takes the network
// away, but breaks more programs.
func (h *Host) probeLandlock() SandboxReport {
	r := SandboxReport{Kind: landlocked}
	abi, err := landlockABI()
	if most := h.o.landlock; most != nil {
		if abi = min(abi, *most); abi == 0 {
			err = syscall.ENOSYS
		}
	}
	if err != nil {
		r.Note = fmt.Sprintf("the kernel has it not, or not switched on (lsm=landlock): %v", err)
		return r
	}
	if _, err := (filter{landlock: abi}).program(); err != nil {
		r.Note = err.Error()
		return r
	}
	h.landlock = abi
	r.OK, r.Note = true, fmt.Sprintf("version %d", abi)
	r.Weak, r.TooWeak = weakLandlock(abi), abi < landlockTruncates
	if h.netns = canUnshareNet(); !h.netns {
		r.Note += "; without network a program can make no sockets at all"
	}
	return r
}

// weakLandlock says what a version does not cover, or breaks; "" is nothing.
func weakLandlock(abi int) string {
	switch {
	case abi < landlockTruncates:
		return fmt.Sprintf("Landlock of version %d lets a program empty files that it may not write, so that no tool that requires a sandbox runs in it", abi)
	case abi < landlockSignals:
		return fmt.Sprintf("Landlock of version %d does not keep signals inside: a program in it can signal nothing but its own process group", abi)
	}
	return ""
}

// canUnshareNet reports whether a child can have a network namespace. Without
// a user namespace, only root can create one.
func canUnshareNet() bool {
	path, err := exec.LookPath("true")
	if err != nil || os.Getuid() != 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	return cmd.Run() == nil
}

// choose selects the sandbox of a run; "" is none.
func (h *Host) choose(s Sandbox) (string, error) {
	if !s.On {
		return "", nil
	}
	if k := s.Kind; k != "" && k != bubblewrap && k != landlocked {
		return "", fmt.Errorf("sandbox kind is %q; it must be bubblewrap or landlock", k)
	}
	if err := placesThere(s); err != nil {
		return "", err
	}
	var why []string
	for _, r := range h.sandboxReport() {
		if s.Kind != "" && s.Kind != r.Kind {
			continue
		}
		switch {
		case !r.OK:
			why = append(why, r.Kind+": "+r.Note)
		case s.Required && r.TooWeak:
			why = append(why, r.Kind+": "+r.Weak)
		default:
			if r.Weak != "" {
				h.weak.Do(func() {
					h.o.Log.Warn("Commands run in a sandbox that is weaker here than elsewhere", "reason", r.Weak, "cure", CureSandbox)
				})
			}
			return r.Kind, nil
		}
	}
	reason := strings.Join(why, "; ")
	if s.Required {
		return "", fmt.Errorf("the sandbox is required and not available: %s", reason)
	}
	h.warned.Do(func() {
		h.o.Log.Warn("Commands run without the sandbox they ask for", "reason", reason)
	})
	return "", nil
}

// placesThere returns an error if a path of the sandbox does not exist.
func placesThere(s Sandbox) error {
	for _, p := range slices.Concat(s.Read, s.Write) {
		if !filepath.IsAbs(p) {
			return fmt.Errorf("sandbox: %s is not an absolute path", p)
		}
		if _, err := os.Stat(p); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	return nil
}

// wrap changes cmd so that it runs in the box's sandbox. It returns what
// Landlock must allow the thread, if Landlock is used, and otherwise a file to
// close once cmd has started.
func (b *Box) wrap(cmd *exec.Cmd) (kept *ruleset, sent *os.File, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if b.kind == "" {
		return nil, nil, nil
	}
	if cmd.Err != nil {
		return nil, nil, cmd.Err
	}
	if err := resolve(cmd); err != nil {
		return nil, nil, err
	}
	s := b.sandbox
	s.Read = readable(cmd, s)
	hidden := b.h.hidden()
	if b.kind == bubblewrap {
		filtered, sent, err := filter{}.pass(cmd)
		if err != nil {
			return nil, nil, fmt.Errorf("sandbox bubblewrap: %w", err)
		}
		cmd.Args = slices.Concat([]string{"bwrap"}, filtered, bwrapArgs(s, hidden, cmd.Dir), []string{cmd.Path}, cmd.Args[1:])
		cmd.Path = b.h.bwrap
		return nil, sent, nil
	}
	for seen, place := range s.covering(hidden) {
		if s.Required {
			return nil, nil, fmt.Errorf("sandbox landlock: it cannot show %s and hide %s, which is Signalbox's own: keep them apart, or install bubblewrap", place, seen)
		}
	}
	if err := b.ownTemp(); err != nil {
		return nil, nil, err
	}
	cmd.Env = withTemp(cmd.Environ(), b.tmp)
	if !s.Network && b.h.netns {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	}
	return &ruleset{
		abi: b.h.landlock, read: slices.Concat(systemFolders, s.Read), write: append(slices.Clone(s.Write), b.tmp),
		network: s.Network || b.h.netns,
	}, nil, nil
}

// resolve finds problems that the sandbox would report less clearly.
func resolve(cmd *exec.Cmd) error {
	if cmd.Dir != "" {
		if st, err := os.Stat(cmd.Dir); err != nil {
			return err
		} else if !st.IsDir() {
			return &os.PathError{Op: "chdir", Path: cmd.Dir, Err: syscall.ENOTDIR}
		}
	}
	if !filepath.IsAbs(cmd.Path) {
		path, err := filepath.Abs(filepath.Join(cmd.Dir, cmd.Path))
		if err != nil {
			return err
		}
		cmd.Path = path
	}
	_, err := exec.LookPath(cmd.Path)
	return err
}

// SandboxKind names the active sandbox: bubblewrap, landlock or "".
func (b *Box) SandboxKind() string { return b.kind }
