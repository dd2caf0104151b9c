//go:build linux

package confine_test

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// asAttacker makes the test binary a program that tries what a shell cannot.
const asAttacker = "confine-test-attacker"

// attack tries one thing and says whether it can.
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
	case "stream": // what programs need to speak to their children
		if pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err == nil {
			if n, err := unix.Write(pair[0], []byte("x")); n == 1 && err == nil {
				fmt.Println("a pair of streams works")
			}
		}
		return
	case "ring":
		if _, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0); errno == unix.EFAULT { // it looked at the arguments
			fmt.Println("can make a ring, by which sockets are made too")
		}
		return
	case "x32":
		if fd, _, errno := unix.Syscall(0x40000000|unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0); errno == 0 {
			fmt.Println("can make a socket by the calls of x32:", fd)
		}
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
	}
}

// readMemory reads what is mapped first.
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

// stealDescriptors takes what another has open.
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

// sendFromPair sends a datagram from one of a pair, which is no new socket.
func sendFromPair(path string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: path})
}
