package confine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a filter sees of a system call (struct seccomp_data), on processors whose
// low bytes come first.
const (
	seenNumber = 0
	seenArch   = 4
	seenFirst  = 16 // its first argument
	seenSecond = 24
)

// x32 is set in the numbers of a second way into the kernel of x86-64, which
// has the same calls under other numbers.
const x32 = 0x40000000

// socketType is what of the type of a socket are no flags.
const socketType = 0xf

// arches are the processors whose filter is known here.
var arches = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// withoutSockets takes from the thread it runs on, and from what it starts, for
// good, the sockets by which Landlock lets programs ask others on this machine
// to do what they may not do themselves: those of a container engine, of a
// desktop's bus. Landlock before version 9 knows nothing of them, as they are
// found by a path and opened by no open. With all, no socket of any kind can be
// made. Pairs stay, by which a program speaks to its own children.
//
// A program of another kind of processor (32 bits) is ended by SIGSYS: its calls
// have other numbers, and some cannot be told apart.
func withoutSockets(all bool) error {
	filter, err := socketFilter(all)
	if err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0) //nolint:gosec // the kernel is given a structure
	runtime.KeepAlive(filter)
	if err != nil {
		return fmt.Errorf("take sockets away: %w", err)
	}
	return nil
}

func socketFilter(all bool) ([]unix.SockFilter, error) {
	arch, ok := arches[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("take sockets away: the system calls of %s are not known here; install bubblewrap", runtime.GOARCH)
	}
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		and    = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		answer = unix.BPF_RET | unix.BPF_K
	)
	refuse := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	other := uint8(8) // → allowed
	if all {
		other = 0 // → refused
	}
	return []unix.SockFilter{ // jumps are counted from the next line
		{Code: load, K: seenArch},
		{Code: equal, Jf: 15, K: arch}, // else killed
		{Code: load, K: seenNumber},
		{Code: least, Jt: 13, K: x32}, // killed
		{Code: equal, Jt: 11, K: unix.SYS_IO_URING_SETUP},
		{Code: equal, Jt: 2, K: unix.SYS_SOCKET},
		{Code: equal, Jt: 4, K: unix.SYS_SOCKETPAIR},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
		// socket
		{Code: load, K: seenFirst},
		{Code: equal, Jf: other, K: unix.AF_UNIX},
		{Code: answer, K: refuse(unix.EACCES)},
		// socketpair; a datagram can be sent from one of a pair to anywhere
		{Code: load, K: seenSecond},
		{Code: and, K: socketType},
		{Code: equal, Jt: 4, K: unix.SOCK_STREAM},
		{Code: equal, Jt: 3, K: unix.SOCK_SEQPACKET},
		{Code: answer, K: refuse(unix.EACCES)},
		{Code: answer, K: refuse(unix.ENOSYS)}, // io_uring, which makes sockets too
		{Code: answer, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}, nil
}
