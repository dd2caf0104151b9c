package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock, by the version that introduced them.
const (
	llFile  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	llRead  = llFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	llAll1  = 1<<13 - 1 // in version 1
	llFiles = llFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	llTCP   = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	llScope = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
)

// devices that every program may use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// ruleset is what Landlock allows a thread.
type ruleset struct {
	abi         int
	read, write []string
	network     bool
}

// key is equal for equal rulesets.
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

// landlockABI asks the kernel for its version of Landlock.
func landlockABI() (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// handled is what a ruleset forbids unless a rule allows it.
func handled(abi int, network bool) unix.LandlockRulesetAttr {
	a := unix.LandlockRulesetAttr{Handled_access_fs: llAll1}
	if abi >= 2 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 && !network {
		a.Handled_access_net = llTCP
	}
	if abi >= 5 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		a.Scoped = llScope
	}
	return a
}

// enforce permanently forbids the current thread everything that is not in
// the ruleset.
func (r *ruleset) enforce() error {
	attr := handled(r.abi, r.network)
	size := unsafe.Offsetof(attr.Quiet_access_fs)
	switch { // the kernel refuses a structure that is longer than the one it knows
	case r.abi < 4:
		size = unsafe.Offsetof(attr.Handled_access_net)
	case r.abi < 6:
		size = unsafe.Offsetof(attr.Scoped)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0) //nolint:gosec // the kernel gets a structure
	if errno != 0 {
		return fmt.Errorf("create ruleset: %w", errno)
	}
	defer unix.Close(int(fd)) //nolint:errcheck // nothing was written
	if err := r.allow(int(fd), attr.Handled_access_fs); err != nil {
		return err
	}
	if err := renounce(); err != nil {
		return err
	}
	if err := (filter{landlock: r.abi, sockets: r.network}).enforce(); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("restrict: %w", errno)
	}
	return nil
}

// renounce makes sure that programs started by the current thread have no
// capabilities, even as root: Landlock does not cover operations without a
// file, such as creating a device node for the disk. The thread keeps its own
// capabilities, which it needs to give its children a network namespace.
func renounce() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	if have[0].Inheritable|have[1].Inheritable != 0 {
		have[0].Inheritable, have[1].Inheritable = 0, 0
		if err := unix.Capset(&header, &have[0]); err != nil {
			return fmt.Errorf("clear inheritable capabilities: %w", err)
		}
	}
	if os.Geteuid() != 0 {
		return nil // programs that it starts gain none: no_new_privs
	}
	for c := range uintptr(64) { // more than the kernel has
		if in, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil || in == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("take capability %d from what it starts: %w (give Signalbox CAP_SETPCAP, run it as another user than root, or install bubblewrap)", c, err)
		}
	}
	return nil
}

func (r *ruleset) allow(fd int, all uint64) error {
	for _, p := range r.read {
		if err := allowPath(fd, p, llRead, all); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := allowPath(fd, "/proc", llRead, all); err != nil {
		return err
	}
	for _, p := range r.write {
		if err := allowPath(fd, p, all, all); err != nil {
			return err
		}
	}
	for _, p := range devices {
		if err := allowPath(fd, p, llFiles, all); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// allowPath adds a rule. Rights of folders are dropped for a file.
func allowPath(ruleset int, path string, access, all uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= llFiles
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: access & all, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0) //nolint:gosec // the kernel gets a structure
	if errno != 0 {
		return fmt.Errorf("allow %s: %w", path, errno)
	}
	return nil
}
