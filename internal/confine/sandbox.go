package confine

import (
	"iter"
	"path/filepath"
	"slices"
	"strings"
)

// Kinds of sandbox.
const (
	bubblewrap = "bubblewrap"
	landlocked = "landlock"
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

// bwrapArgs are those of bubblewrap for a sandbox, up to the program. A parent
// is mounted before what lies in it, whoever named it.
func bwrapArgs(s Sandbox, dir string) []string {
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
	for p := range s.covering() {
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

// covering yields where the folders that no sandbox shows would be seen all the
// same, because one in which they lie is shown. One that is itself named to be
// shown is.
func (s *Sandbox) covering() iter.Seq2[string, string] {
	return func(yield func(seen, place string) bool) {
		for _, p := range slices.Concat(s.Read, s.Write) {
			real, err := filepath.EvalSymlinks(p)
			if err != nil {
				continue // then it is not shown
			}
			for _, h := range s.hidden {
				rel, err := filepath.Rel(real, h)
				if err == nil && rel != "." && filepath.IsLocal(rel) && !yield(filepath.Join(p, rel), p) {
					return
				}
			}
		}
	}
}

// byDepth orders a folder before all that lies in it.
func byDepth(a, b string) int {
	return slices.Compare(parts(a), parts(b))
}

func parts(p string) []string { return strings.Split(strings.Trim(p, "/"), "/") }

// key tells whether two rulesets are the same.
func (r *ruleset) key() string {
	if r == nil {
		return ""
	}
	net := ""
	if r.network {
		net = "network"
	}
	return strings.Join(r.read, "\x00") + "\x01" + strings.Join(r.write, "\x00") + "\x01" + net
}

// ruleset is what Landlock leaves to a thread.
type ruleset struct {
	abi         int
	read, write []string
	network     bool
}
