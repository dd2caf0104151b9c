//go:build linux

package confine_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asAttacker makes the test binary a program for attacks that a shell cannot
// make.
const asAttacker = "confine-test-attacker"

// attack makes one attack and reports whether it succeeded.
func attack(what, at string) {
	fmt.Println("attacker:", what)
	switch what {
	case "socket", "abstract":
		if c, err := net.DialTimeout("unix", at, time.Second); err == nil {
			c.Close()
			fmt.Println("can connect to the socket of another", what)
		}
		return
	case "pair":
		if err := sendFromPair(at); err == nil {
			fmt.Println("can send to the socket of another")
		}
		return
	case "stream": // what programs need to talk to their children
		if pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err == nil {
			if n, err := unix.Write(pair[0], []byte("x")); n == 1 && err == nil {
				fmt.Println("a pair of streams works")
			}
		}
		return
	case "ring":
		if _, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0); errno == unix.EFAULT { // the kernel read the arguments
			fmt.Println("can make a ring, by which sockets are made too")
		}
		return
	case "x32":
		if fd, _, errno := unix.Syscall(0x40000000|unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0); errno == 0 {
			fmt.Println("can make a socket by the calls of x32:", fd)
		}
		return
	case "kernel":
		inKernel(at)
		return
	case "memory-of-all":
		shareMemory()
		return
	case "udp":
		if c, err := net.Dial("udp", at); err == nil {
			_, err = c.Write([]byte("x"))
			fmt.Println("can send a datagram:", err)
		}
		return
	}
	pid, err := strconv.Atoi(at)
	if err != nil {
		fmt.Println("can not be tried:", err)
		return
	}
	switch what {
	case "ptrace":
		runtime.LockOSThread()
		if err := syscall.PtraceAttach(pid); err == nil {
			fmt.Println("can trace another")
			_ = syscall.PtraceDetach(pid)
		}
	case "memory":
		if err := readMemory(pid); err == nil {
			fmt.Println("can read the memory of another")
		}
	case "descriptor":
		stealDescriptors(pid)
	case "limits":
		limitAnother(pid)
	case "signal":
		signalAnother(pid)
	case "owner":
		ownBy(pid)
	}
}

// limitAnother sets limits and priorities of another process.
func limitAnother(pid int) {
	if err := unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}, nil); err == nil {
		fmt.Println("can limit the time of another")
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, pid, 1); err == nil {
		fmt.Println("can slow another")
	}
	if err := unix.Setpriority(unix.PRIO_USER, 0, 1); err == nil {
		fmt.Println("can slow all of its user")
	}
	var all unix.CPUSet
	_ = unix.SchedGetaffinity(0, &all)
	if err := unix.SchedSetaffinity(pid, &all); err == nil {
		fmt.Println("can bind another to processors")
	}
	const batch = 3
	var zero int32
	if _, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), batch, uintptr(unsafe.Pointer(&zero))); errno == 0 {
		fmt.Println("can schedule another")
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, 1, uintptr(pid), 2<<13|7); errno == 0 {
		fmt.Println("can slow the disk of another")
	}
}

// signalAnother tries every system call that can send a signal, with signal
// 0.
func signalAnother(pid int) {
	var info [128]byte
	*(*int32)(unsafe.Pointer(&info[8])) = -1 // si_code SI_QUEUE
	sent := func(how string, errno syscall.Errno) {
		if errno == 0 {
			fmt.Println("can signal another by", how)
		}
	}
	_, _, errno := unix.RawSyscall(unix.SYS_TKILL, uintptr(pid), 0, 0)
	sent("tkill", errno)
	_, _, errno = unix.RawSyscall(unix.SYS_TGKILL, uintptr(pid), uintptr(pid), 0)
	sent("tgkill", errno)
	_, _, errno = unix.RawSyscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), 0, uintptr(unsafe.Pointer(&info)))
	sent("sigqueueinfo", errno)
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		_, _, errno = unix.RawSyscall6(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(fd), 0, 0, 0, 0, 0)
		sent("a descriptor", errno)
	}
}

// ownBy makes another process the owner of a file; it gets a signal when the
// file becomes readable.
func ownBy(pid int) {
	r, _, err := os.Pipe()
	if err != nil {
		fmt.Println("can not be tried:", err)
		return
	}
	if _, err := unix.FcntlInt(r.Fd(), unix.F_SETOWN, pid); err == nil {
		fmt.Println("can make another the owner of a file")
	}
}

// inKernel tries kernel objects that do not belong to a file.
func inKernel(key string) {
	if id, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", key, 0); err == nil {
		b := make([]byte, 100)
		n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, b, 0)
		fmt.Println("can find a key of its user:", string(b[:max(n, 0)]), err)
	}
	if _, err := unix.AddKey("user", key+"-of-another", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING); err == nil {
		fmt.Println("can make a key")
	}
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	if err := cmd.Run(); err == nil {
		fmt.Println("can have a namespace of users")
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0); errno == unix.EINVAL { // the kernel read the arguments
		fmt.Println("can ask by clone3")
	}
	for _, family := range []int{unix.AF_VSOCK, unix.AF_ALG, unix.AF_PACKET} {
		if _, err := unix.Socket(family, unix.SOCK_STREAM, 0); err == nil || errors.Is(err, unix.ESOCKTNOSUPPORT) || errors.Is(err, unix.EPROTONOSUPPORT) {
			fmt.Println("can make a socket of family", family, err)
		}
	}
}

// shareMemory creates System V shared memory.
func shareMemory() {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err == nil {
		fmt.Println("can share memory")
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
}

// readMemory reads the first mapping of a process.
func readMemory(pid int) error {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return err
	}
	var from uint64
	if _, err := fmt.Sscanf(string(maps), "%x-", &from); err != nil {
		return err
	}
	buf := make([]byte, 16)
	_, err = unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &buf[0], Len: 16}}, []unix.RemoteIovec{{Base: uintptr(from), Len: 16}}, 0)
	return err
}

// stealDescriptors duplicates the open files of another process.
func stealDescriptors(pid int) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(process)
	for fd := range 64 {
		if got, err := unix.PidfdGetfd(process, fd, 0); err == nil {
			fmt.Println("can take what the director has open:", fd)
			unix.Close(got)
		}
	}
}

// sendFromPair sends a datagram from a socket pair, which needs no new
// socket.
func sendFromPair(path string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: path})
}
