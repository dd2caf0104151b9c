package confine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a filter sees of a system call (struct seccomp_data), on little-endian
// processors.
const (
	seenNumber = 0
	seenArch   = 4
	seenFirst  = 16 // the low half of the first argument; each further argument is 8 bytes on
)

// x32 is set in the numbers of x86-64's second ABI, which has the same calls
// under other numbers.
const x32 = 0x40000000

// arches are the processors that the filter supports.
var arches = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// filter is what a sandbox forbids by a filter of system calls. The zero filter
// is for bubblewrap, whose namespaces do the rest.
type filter struct {
	landlock int  // version of Landlock in force; 0 with namespaces
	sockets  bool // with Landlock: network sockets can be created
}

// condition tests the low 32 bits of an argument; the kernel reads no more of
// a PID, a family or these flags.
type condition struct {
	arg   int
	mask  uint32
	value uint32
	not   bool
}

// refusal refuses a system call with an error if all its conditions are true.
type refusal struct {
	call  uint32
	error unix.Errno
	where []condition
}

const whole = ^uint32(0)

func is(arg int, value uint32) condition { return condition{arg: arg, mask: whole, value: value} }
func isNot(arg int, value uint32) condition {
	return condition{arg: arg, mask: whole, value: value, not: true}
}
func has(arg int, bits uint32) condition { return condition{arg: arg, mask: bits, value: bits} }

// refusals apply to every sandbox: limits and priorities of other processes, the
// user's keyring, user namespaces, in which a program would have capabilities,
// socket families that network namespaces do not confine, and io_uring, whose
// calls no filter sees. clone3 has its flags in memory, where a filter cannot
// look: on ENOSYS a C library falls back to clone.
var refusals = []refusal{
	{unix.SYS_PRLIMIT64, unix.EPERM, []condition{isNot(0, 0)}},
	{unix.SYS_SCHED_SETPARAM, unix.EPERM, []condition{isNot(0, 0)}},
	{unix.SYS_SCHED_SETSCHEDULER, unix.EPERM, []condition{isNot(0, 0)}},
	{unix.SYS_SCHED_SETATTR, unix.EPERM, []condition{isNot(0, 0)}},
	{unix.SYS_SCHED_SETAFFINITY, unix.EPERM, []condition{isNot(0, 0)}},
	{unix.SYS_SETPRIORITY, unix.EPERM, []condition{isNot(1, 0)}},
	{unix.SYS_SETPRIORITY, unix.EPERM, []condition{is(0, unix.PRIO_USER)}},
	{unix.SYS_IOPRIO_SET, unix.EPERM, []condition{isNot(1, 0)}},
	{unix.SYS_IOPRIO_SET, unix.EPERM, []condition{is(0, 3)}}, // IOPRIO_WHO_USER
	{unix.SYS_ADD_KEY, unix.EPERM, nil},
	{unix.SYS_REQUEST_KEY, unix.EPERM, nil},
	{unix.SYS_KEYCTL, unix.EPERM, nil},
	{unix.SYS_UNSHARE, unix.EPERM, []condition{has(0, unix.CLONE_NEWUSER)}},
	{unix.SYS_CLONE, unix.EPERM, []condition{has(0, unix.CLONE_NEWUSER)}},
	{unix.SYS_CLONE3, unix.ENOSYS, nil},
	{unix.SYS_SETNS, unix.EPERM, nil},
	{unix.SYS_SOCKET, unix.EAFNOSUPPORT, []condition{
		isNot(0, unix.AF_UNIX), isNot(0, unix.AF_INET), isNot(0, unix.AF_INET6), isNot(0, unix.AF_NETLINK),
	}},
	{unix.SYS_SOCKETPAIR, unix.EAFNOSUPPORT, []condition{isNot(0, unix.AF_UNIX)}},
	{unix.SYS_IO_URING_SETUP, unix.ENOSYS, nil},
}

// withLandlock are the additional refusals for Landlock, which has no
// namespaces: System V shared memory, queues and semaphores, and Unix sockets,
// through which a program could ask a container engine or a desktop's bus to do
// what it may not do itself. Unix sockets are found by a path but not opened as
// files, which Landlock does not cover before version 9. Socket pairs are
// allowed, because programs use them to talk to their children, but no datagram
// can be sent from one to another address.
var withLandlock = []refusal{
	{unix.SYS_SHMGET, unix.EPERM, nil},
	{unix.SYS_SHMAT, unix.EPERM, nil},
	{unix.SYS_SHMCTL, unix.EPERM, nil},
	{unix.SYS_MSGGET, unix.EPERM, nil},
	{unix.SYS_MSGSND, unix.EPERM, nil},
	{unix.SYS_MSGRCV, unix.EPERM, nil},
	{unix.SYS_MSGCTL, unix.EPERM, nil},
	{unix.SYS_SEMGET, unix.EPERM, nil},
	{unix.SYS_SEMOP, unix.EPERM, nil},
	{unix.SYS_SEMTIMEDOP, unix.EPERM, nil},
	{unix.SYS_SEMCTL, unix.EPERM, nil},
	{unix.SYS_SOCKET, unix.EACCES, []condition{is(0, unix.AF_UNIX)}},
	{unix.SYS_SOCKETPAIR, unix.EACCES, []condition{socketType(unix.SOCK_STREAM), socketType(unix.SOCK_SEQPACKET)}},
}

// socketType is true if a socket is not of this type; the bits above it are flags.
func socketType(t uint32) condition { return condition{arg: 1, mask: 0xf, value: t, not: true} }

// signals are refused if Landlock does not confine them, that is before
// version 6. Signals to the program's own process group stay allowed. The
// owner of a file gets signals, too.
var signals = []refusal{
	{unix.SYS_KILL, unix.EPERM, []condition{isNot(0, 0)}},
	{unix.SYS_TKILL, unix.EPERM, nil},
	{unix.SYS_TGKILL, unix.EPERM, nil},
	{unix.SYS_RT_SIGQUEUEINFO, unix.EPERM, nil},
	{unix.SYS_RT_TGSIGQUEUEINFO, unix.EPERM, nil},
	{unix.SYS_PIDFD_SEND_SIGNAL, unix.EPERM, nil},
	{unix.SYS_FCNTL, unix.EPERM, []condition{is(1, unix.F_SETOWN)}},
	{unix.SYS_FCNTL, unix.EPERM, []condition{is(1, unix.F_SETOWN_EX)}},
	{unix.SYS_IOCTL, unix.EPERM, []condition{is(1, 0x8901)}}, // FIOSETOWN
	{unix.SYS_IOCTL, unix.EPERM, []condition{is(1, 0x8902)}}, // SIOCSPGRP
}

// Versions of Landlock below which there is a gap.
const (
	landlockTruncates = 3 // Linux 6.2: before, a program can truncate files that it may not write
	landlockSignals   = 6 // Linux 6.12: before, it can signal any process of its user
)

// rules are the refusals of the filter.
func (f filter) rules() []refusal {
	var rules []refusal
	if f.landlock > 0 {
		if !f.sockets {
			rules = append(rules, refusal{unix.SYS_SOCKET, unix.EACCES, nil})
		}
		rules = append(rules, withLandlock...)
		if f.landlock < landlockSignals {
			rules = append(rules, signals...)
		}
	}
	return append(rules, refusals...)
}

// program is the filter in the kernel's form. A program for another architecture
// (32 bits) is ended by SIGSYS: its calls have other numbers, and some cannot be
// distinguished.
func (f filter) program() ([]unix.SockFilter, error) {
	arch, ok := arches[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("the system calls of %s are not known here", runtime.GOARCH)
	}
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		and    = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		answer = unix.BPF_RET | unix.BPF_K
	)
	p := []unix.SockFilter{ // jumps are relative to the next line
		{Code: load, K: seenArch},
		{Code: equal, Jf: 2, K: arch},
		{Code: load, K: seenNumber},
		{Code: least, Jf: 1, K: x32},
		{Code: answer, K: unix.SECCOMP_RET_KILL_PROCESS},
	}
	for _, r := range f.rules() {
		left := uint8(3*len(r.where) + 1) // lines of this rule after the comparison
		p = append(p, unix.SockFilter{Code: load, K: seenNumber}, unix.SockFilter{Code: equal, Jf: left, K: r.call})
		for _, c := range r.where {
			left -= 3
			test := unix.SockFilter{Code: equal, Jf: left, K: c.value}
			if c.not {
				test.Jt, test.Jf = test.Jf, test.Jt
			}
			p = append(p, unix.SockFilter{Code: load, K: uint32(seenFirst + 8*c.arg)}, unix.SockFilter{Code: and, K: c.mask}, test)
		}
		p = append(p, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(r.error)})
	}
	return append(p, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW}), nil
}

// enforce applies the filter permanently to the current thread and what it starts.
func (f filter) enforce() error {
	lines, err := f.program()
	if err == nil {
		program := unix.SockFprog{Len: uint16(len(lines)), Filter: &lines[0]}
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0) //nolint:gosec // the kernel gets a structure
		runtime.KeepAlive(lines)
	}
	if err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}

// pass makes bubblewrap apply the filter to the program of cmd. It returns
// the arguments for that, and a file to close once cmd has started.
func (f filter) pass(cmd *exec.Cmd) (args []string, sent *os.File, err error) {
	lines, err := f.program()
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	if err := binary.Write(&b, binary.NativeEndian, lines); err != nil {
		return nil, nil, err
	}
	sent, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	if _, err := w.Write(b.Bytes()); err != nil { // far below the capacity of a pipe
		sent.Close()
		return nil, nil, err
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, sent)
	return []string{"--seccomp", fmt.Sprint(2 + len(cmd.ExtraFiles))}, sent, nil
}
