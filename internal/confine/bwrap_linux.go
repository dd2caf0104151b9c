package confine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// probeWait bounds the test run of bubblewrap.
const probeWait = 5 * time.Second

// probeBwrap runs bubblewrap as runs will use it.
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
	cmd := exec.CommandContext(ctx, path)
	filtered, sent, err := filter{}.pass(cmd)
	if err != nil {
		r.Note = err.Error()
		return r
	}
	defer sent.Close()
	cmd.Args = slices.Concat(cmd.Args, filtered, bwrapArgs(Sandbox{Read: []string{program}}, nil, ""), []string{program})
	if program == path {
		cmd.Args = append(cmd.Args, "--version")
	}
	var said strings.Builder
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	l, err := newLauncher()
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

// collectGroup collects the zombies of a test run: bubblewrap does not wait
// for the first process of its sandbox, which may become our child and ends by
// itself, but on a busy machine not at once.
func collectGroup(p *os.Process) {
	if p == nil {
		return
	}
	for end := time.Now().Add(probeWait); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(-p.Pid, &ws, syscall.WNOHANG, nil); errors.Is(err, syscall.ECHILD) {
			return
		}
	}
}

// bwrapArgs are bubblewrap's arguments for a sandbox, up to the program. A
// parent folder is mounted before the folders in it, whoever named them.
func bwrapArgs(s Sandbox, hidden []string, dir string) []string {
	args := []string{
		"--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL",
	}
	if !s.Network {
		args = append(args, "--unshare-net")
	}
	mounts := map[string][]string{"/proc": {"--proc"}, "/dev": {"--dev"}, "/tmp": {"--tmpfs"}}
	for _, p := range systemFolders {
		mounts[p] = []string{"--ro-bind-try", p}
	}
	for _, p := range s.Read {
		mounts[filepath.Clean(p)] = []string{"--ro-bind", filepath.Clean(p)}
	}
	for _, p := range s.Write {
		mounts[filepath.Clean(p)] = []string{"--bind", filepath.Clean(p)}
	}
	for p := range s.covering(hidden) {
		mounts[p] = []string{"--tmpfs"}
	}
	paths := make([]string, 0, len(mounts))
	for p := range mounts {
		paths = append(paths, p)
	}
	slices.SortFunc(paths, byDepth)
	for _, p := range paths {
		args = append(append(args, mounts[p]...), p)
	}
	if _, ok := mounts["/"]; !ok {
		args = append(args, "--remount-ro", "/") // bubblewrap's own root, which is empty
	}
	if mounts["/proc"][0] == "--proc" {
		args = append(args, "--remount-ro", "/proc") // root could otherwise set the whole system's sysctls, without any capability
	}
	if dir != "" {
		args = append(args, "--chdir", dir)
	}
	return append(args, "--")
}

// byDepth sorts a folder before everything in it.
func byDepth(a, b string) int { return slices.Compare(parts(a), parts(b)) }

func parts(p string) []string { return strings.Split(strings.Trim(p, "/"), "/") }

// systemFolders are needed by programs to run at all; they are read-only. Of
// /etc they have the parts for resolving names, checking certificates and time
// zones; no keys, no passwords.
var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/fonts", "/etc/gai.conf", "/etc/group",
	"/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
	"/etc/machine-id", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd",
	"/etc/pki/tls", "/etc/protocols", "/etc/python3", "/etc/resolv.conf", "/etc/services", "/etc/ssl/certs",
	"/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone",
}

// readable adds the program and its working folder to a sandbox's readable
// paths.
func readable(cmd *exec.Cmd, s Sandbox) []string {
	read := slices.Clone(s.Read)
	for _, p := range []string{cmd.Path, cmd.Dir} {
		if p != "" && !covered(p, slices.Concat(read, s.Write, systemFolders)) {
			read = append(read, p)
		}
	}
	return read
}

// covered reports whether a path is in one of the folders.
func covered(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		rel, err := filepath.Rel(f, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// hidden are the folders that no sandbox shows, if they exist, with links
// resolved.
func (h *Host) hidden() (all []string) {
	for _, p := range h.o.Hidden {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			all = append(all, real)
		}
	}
	return all
}

// covering yields hidden folders that would still be visible, because a shown
// folder contains them. A hidden folder that is itself named as shown stays
// visible.
func (s *Sandbox) covering(hidden []string) iter.Seq2[string, string] {
	return func(yield func(seen, place string) bool) {
		for _, p := range slices.Concat(s.Read, s.Write) {
			real, err := filepath.EvalSymlinks(p)
			if err != nil {
				continue // then it is not visible
			}
			for _, h := range hidden {
				rel, err := filepath.Rel(real, h)
				if err == nil && rel != "." && filepath.IsLocal(rel) && !yield(filepath.Join(p, rel), p) {
					return
				}
			}
		}
	}
}
