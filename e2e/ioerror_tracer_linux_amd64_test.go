package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ioFaultEnv makes this test binary a tracer of the program in its arguments:
//
//	N TIMES ERRNO FOLDER REPORT
//
// The write or sync number N to a file of the folder, and the TIMES-1 after
// it, counted over all threads, are not executed and fail with ERRNO. Each
// call is a line of the report. strace counts per thread, but a goroutine
// moves between threads.
const ioFaultEnv = "SIGNALBOX_E2E_IOFAULT"

// ioFilterEnv makes it a process that becomes that program, with a filter
// that stops it for its tracer only at writes and syncs.
const ioFilterEnv = "SIGNALBOX_E2E_IOFILTER"

func init() {
	roles[ioFaultEnv] = serveIOFault
	roles[ioFilterEnv] = serveIOFilter
}

var ioCalls = map[uint64]string{
	unix.SYS_WRITE: "write", unix.SYS_PWRITE64: "pwrite64", unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync", unix.SYS_FTRUNCATE: "ftruncate",
}

func serveIOFilter(string) error {
	runtime.LockOSThread()
	os.Unsetenv(ioFilterEnv)
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // the number of the system call
	for number := range ioCalls {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: uint32(number)},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_TRACE})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
}

// ioTracer counts calls and makes some fail.
type ioTracer struct {
	first, times int
	errno        syscall.Errno
	folder       string
	report       *os.File
	count        int
}

func serveIOFault(spec string) error {
	runtime.LockOSThread() // one thread must do all tracing
	t := &ioTracer{}
	var path string
	var errno int
	if _, err := fmt.Sscan(spec, &t.first, &t.times, &errno, &t.folder, &path); err != nil {
		return fmt.Errorf("%s=%q: %w", ioFaultEnv, spec, err)
	}
	t.errno = syscall.Errno(errno)
	var err error
	if t.report, err = os.Create(path); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, ioFaultEnv+"=") })
	cmd.Env = append(cmd.Env, ioFilterEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := cmd.Process.Pid
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGTERM)
	go func() {
		for range stops {
			_ = syscall.Kill(pid, syscall.SIGTERM) // it is the one that should stop
		}
	}()
	code, err := t.trace(pid)
	if err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

// trace follows a process and its descendants to its end, and returns its
// exit code.
func (t *ioTracer) trace(pid int) (int, error) {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WALL, nil); err != nil || !status.Stopped() {
		return 0, fmt.Errorf("it did not stop for its tracer: %v, %w", status, err)
	}
	const options = unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK
	if err := syscall.PtraceSetOptions(pid, options); err != nil {
		return 0, err
	}
	known := map[int]bool{pid: true}
	for who := pid; ; {
		sign := 0
		switch {
		case !status.Stopped():
		case status.StopSignal() == syscall.SIGTRAP:
			if status.TrapCause() == unix.PTRACE_EVENT_SECCOMP {
				t.call(who)
			}
		case status.StopSignal() == syscall.SIGSTOP && !known[who]: // how a new thread begins
			known[who] = true
		default:
			sign = int(status.StopSignal())
		}
		if status.Stopped() {
			_ = syscall.PtraceCont(who, sign) // it may have been killed
		}
		var err error
		for who, err = syscall.Wait4(-1, &status, syscall.WALL, nil); err == syscall.EINTR; {
			who, err = syscall.Wait4(-1, &status, syscall.WALL, nil)
		}
		switch {
		case err != nil:
			return 0, err
		case who == pid && status.Exited():
			return status.ExitStatus(), nil
		case who == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		}
	}
}

// call handles a system call that a thread is about to make.
func (t *ioTracer) call(thread int) {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(thread, &regs); err != nil {
		return // it was killed
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", thread, regs.Rdi))
	if err != nil || !strings.HasPrefix(path, t.folder+"/") {
		return
	}
	t.count++
	what, name := "made", ioCalls[regs.Orig_rax]
	if t.count >= t.first && t.count < t.first+t.times {
		what = "failed"
		regs.Orig_rax, regs.Rax = ^uint64(0), uint64(-int64(t.errno))
		if err := syscall.PtraceSetRegs(thread, &regs); err != nil {
			return
		}
	}
	fmt.Fprintln(t.report, t.count, what, name, filepath.Base(path))
}
