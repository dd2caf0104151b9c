package confine

import (
	"iter"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

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
	for _, f := range folders {
		if rel, err := filepath.Rel(f, path); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return true
		}
	}
	return false
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
