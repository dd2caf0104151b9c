package confine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// probeWait bounds the trial of bubblewrap.
const probeWait = 5 * time.Second

// sandboxReport tries once which sandboxes can be had.
func (h *Host) sandboxReport() []SandboxReport {
	h.sandboxes.Do(func() {
		h.found = []SandboxReport{h.probeBwrap(), h.probeLandlock()}
	})
	return h.found
}

// probeBwrap runs it as it will be run.
func (h *Host) probeBwrap() SandboxReport {
	r := SandboxReport{Kind: bubblewrap}
	path, err := exec.LookPath("bwrap")
	if err != nil {
		r.Note = "no bwrap on PATH: install the package bubblewrap"
		return r
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeWait)
	defer cancel()
	version, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		r.Note = fmt.Sprintf("%s --version: %v", path, err)
		return r
	}
	program, err := exec.LookPath("true")
	if err != nil {
		program = path
	}
	cmd := exec.CommandContext(ctx, path, append(bwrapArgs(Sandbox{Read: []string{program}}, ""), program)...)
	if program == path {
		cmd.Args = append(cmd.Args, "--version")
	}
	var said strings.Builder
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	l, err := newLauncher(nil)
	if err == nil {
		err = l.do(cmd.Run)
		l.stop()
		collectGroup(cmd.Process)
	}
	if err != nil {
		r.Note = strings.TrimSpace(fmt.Sprintf("%s does not work here: %v %s", path, err, said.String()))
		return r
	}
	h.bwrap = path
	r.OK, r.Note = true, strings.TrimSpace(string(version))+" at "+path
	return r
}

// collectGroup collects what a trial left: bubblewrap does not wait for the
// first process of its sandbox, which may be handed to us.
func collectGroup(p *os.Process) {
	if p == nil {
		return
	}
	for end := time.Now().Add(settleWait); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(-p.Pid, &ws, syscall.WNOHANG, nil); errors.Is(err, syscall.ECHILD) {
			return
		}
	}
}

// probeLandlock asks the kernel for its version of Landlock, and whether a
// child can have a network of its own, which Landlock cannot take from it
// whole.
func (h *Host) probeLandlock() SandboxReport {
	r := SandboxReport{Kind: landlocked}
	abi, err := landlockABI()
	if h.o.noLandlock {
		err = syscall.ENOSYS
	}
	if err != nil {
		r.Note = fmt.Sprintf("the kernel has it not, or not switched on (lsm=landlock): %v", err)
		return r
	}
	h.landlock = abi
	r.OK, r.Note = true, fmt.Sprintf("version %d", abi)
	h.netns = canUnshareNet()
	r.Leaky = !h.netns
	switch {
	case h.netns:
	case abi >= 4:
		r.Note += "; without network it refuses TCP only: UDP and sockets of other kinds stay open"
	default:
		r.Note += "; it cannot refuse the network"
	}
	return r
}

// canUnshareNet tells whether a child can have a network of its own. Only root
// may give it that without a user of its own.
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

// choose picks the sandbox of a run; "" is none.
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
		if !r.OK {
			why = append(why, r.Kind+": "+r.Note)
			continue
		}
		if r.Leaky && s.Required && !s.Network {
			why = append(why, r.Kind+" cannot take the network away whole ("+r.Note+"); allow the network or install bubblewrap")
			continue
		}
		if r.Kind == landlocked && !s.Network && !h.netns {
			h.warnedNet.Do(func() {
				h.o.Log.Warn("Commands in a sandbox can still use the network", "reason", r.Note)
			})
		}
		return r.Kind, nil
	}
	reason := strings.Join(why, "; ")
	if s.Required {
		return "", fmt.Errorf("the sandbox is required and cannot be had: %s", reason)
	}
	h.warned.Do(func() {
		h.o.Log.Warn("Commands run without the sandbox they ask for", "reason", reason)
	})
	return "", nil
}

// placesThere says which place of a sandbox is not there.
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

// wrap makes cmd one that runs in the box's sandbox. It returns what Landlock
// is to leave to the thread, if that is the sandbox.
func (b *Box) wrap(cmd *exec.Cmd) (*ruleset, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if b.kind == "" {
		return nil, nil
	}
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	if err := resolve(cmd); err != nil {
		return nil, err
	}
	s := b.sandbox
	s.Read, s.hidden = readable(cmd, s), b.h.hidden()
	if b.kind == bubblewrap {
		cmd.Args = slices.Concat([]string{"bwrap"}, bwrapArgs(s, cmd.Dir), []string{cmd.Path}, cmd.Args[1:])
		cmd.Path = b.h.bwrap
		return nil, nil
	}
	for seen, place := range s.covering() {
		if s.Required {
			return nil, fmt.Errorf("sandbox landlock: it cannot show %s and hide %s, which is Signalbox's own: keep them apart, or install bubblewrap", place, seen)
		}
	}
	if err := b.ownTemp(); err != nil {
		return nil, err
	}
	cmd.Env = withTemp(cmd.Environ(), b.tmp)
	if !s.Network && b.h.netns {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	}
	return &ruleset{
		abi: b.h.landlock, read: slices.Concat(systemFolders, s.Read), write: append(slices.Clone(s.Write), b.tmp),
		network: s.Network || b.h.netns,
	}, nil
}

// resolve finds what the sandbox would only complain about itself.
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

// hidden are the folders that no sandbox shows, as far as they are there, with
// their links followed.
func (h *Host) hidden() (all []string) {
	for _, p := range h.o.Hidden {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			all = append(all, real)
		}
	}
	return all
}

// readable adds the program and its working folder to what a sandbox shows.
func readable(cmd *exec.Cmd, s Sandbox) []string {
	read := slices.Clone(s.Read)
	for _, p := range []string{cmd.Path, cmd.Dir} {
		if p != "" && !covered(p, slices.Concat(read, s.Write, systemFolders)) {
			read = append(read, p)
		}
	}
	return read
}

// covered tells whether a path lies in one of the folders.
func covered(path string, folders []string) bool {
	for _, f := range folders {
		if rel, err := filepath.Rel(f, path); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return true
		}
	}
	return false
}

// tempName begins the names of a host's temporary folders.
func (h *Host) tempName() string { return h.o.Name + "-tmp-" }

// ownTemp makes the box's temporary folder.
func (b *Box) ownTemp() (err error) {
	if b.tmp == "" {
		b.tmp, err = os.MkdirTemp("", b.h.tempName())
	}
	return err
}

// clearTemp empties it for the next run.
func (b *Box) clearTemp() error {
	if b.tmp == "" {
		return nil
	}
	entries, err := os.ReadDir(b.tmp)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(b.tmp, e.Name())))
	}
	return err
}

// clearTemp removes the temporary folders that an earlier process left.
func (h *Host) clearTemp() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), h.tempName()+"*"))
	for _, dir := range left {
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() {
			continue
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) == os.Getuid() {
			_ = os.RemoveAll(dir) // what cannot be removed harms nobody
		}
	}
}

// withTemp names the temporary folder to the program.
func withTemp(env []string, tmp string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "TMPDIR=") })
	return append(env, "TMPDIR="+tmp)
}

// SandboxKind names the sandbox in force: bubblewrap, landlock or "".
func (b *Box) SandboxKind() string { return b.kind }
