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

// probeWait bounds the trial of bubblewrap.
const probeWait = 5 * time.Second

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

// collectGroup waits for what a trial left: bubblewrap does not wait for the
// first process of its sandbox, which is then handed to us. It dies by itself,
// but on a busy machine not at once.
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

// bwrapArgs are those of bubblewrap for a sandbox, up to the program. A parent
// is mounted before what lies in it, whoever named it.
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
		args = append(args, "--remount-ro", "/") // which is bubblewrap's own and empty
	}
	if mounts["/proc"][0] == "--proc" {
		args = append(args, "--remount-ro", "/proc") // root may set the whole system's sysctls in it, without any capability
	}
	if dir != "" {
		args = append(args, "--chdir", dir)
	}
	return append(args, "--")
}

// byDepth orders a folder before all that lies in it.
func byDepth(a, b string) int { return slices.Compare(parts(a), parts(b)) }

func parts(p string) []string { return strings.Split(strings.Trim(p, "/"), "/") }

// systemFolders are what programs need to run at all: to be read, not changed.
// Of /etc those parts that programs read which resolve names, check
// certificates and know the time; no keys, no passwords.
var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/fonts", "/etc/gai.conf", "/etc/group",
	"/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
	"/etc/machine-id", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd",
	"/etc/pki/tls", "/etc/protocols", "/etc/python3", "/etc/resolv.conf", "/etc/services", "/etc/ssl/certs",
	"/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone",
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
	return slices.ContainsFunc(folders, func(f string) bool {
		rel, err := filepath.Rel(f, path)
		return err == nil && filepath.IsLocal(rel)
	})
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

// covering yields where the folders that no sandbox shows would be seen all the
// same, because one in which they lie is shown. One that is itself named to be
// shown is.
func (s *Sandbox) covering(hidden []string) iter.Seq2[string, string] {
	return func(yield func(seen, place string) bool) {
		for _, p := range slices.Concat(s.Read, s.Write) {
			real, err := filepath.EvalSymlinks(p)
			if err != nil {
				continue // then it is not shown
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
