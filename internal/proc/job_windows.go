package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// job is a Job Object. All processes of a run are in it, none can leave it, and
// the system ends all of them when this process ends. So it knows exactly which
// processes are alive. It is used for a run whose own box does not know that.
type job struct {
	inner Box // starts the program; nil: the job starts it itself

	mu     sync.Mutex
	handle windows.Handle // 0: closed
	leader int
}

// systemBox returns the box of a run: the given one if it knows the living
// processes, otherwise a job.
func systemBox(given Box) (Box, error) {
	if given != nil {
		if _, ok := given.Alive(); ok {
			return given, nil
		}
	}
	h, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	if _, err := windows.SetInformationJobObject(h, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		_ = windows.CloseHandle(h) // the earlier error is more useful
		return nil, os.NewSyscallError("SetInformationJobObject", err)
	}
	return &job{inner: given, handle: h}, nil
}

// freeBox closes a job, which ends its processes.
func freeBox(b Box) {
	j, ok := b.(*job)
	if !ok {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.handle != 0 {
		_ = windows.CloseHandle(j.handle)
		j.handle = 0
	}
}

// Start starts the program suspended, puts it into the job and resumes it, so
// that it has started nothing outside.
func (j *job) Start(cmd *exec.Cmd) error {
	if err := safeForBatch(cmd.Path, cmd.Args[1:]); err != nil {
		return err
	}
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_SUSPENDED
	start := cmd.Start
	if j.inner != nil {
		start = func() error { return j.inner.Start(cmd) }
	}
	if err := start(); err != nil {
		return err
	}
	j.mu.Lock()
	j.leader = cmd.Process.Pid
	var assigned error
	err := cmd.Process.WithHandle(func(h uintptr) { assigned = windows.AssignProcessToJobObject(j.handle, windows.Handle(h)) })
	j.mu.Unlock()
	if err = errors.Join(err, os.NewSyscallError("AssignProcessToJobObject", assigned)); err == nil {
		err = resume(cmd.Process.Pid)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the earlier error is more useful
	}
	return err
}

// safeForBatch refuses arguments in which the command interpreter, which runs batch
// files, would find commands: no quoting is safe for all of them.
func safeForBatch(path string, args []string) error {
	if ext := strings.ToLower(filepath.Ext(path)); ext != ".bat" && ext != ".cmd" {
		return nil
	}
	for _, a := range args {
		if strings.ContainsAny(a, "\"%&|<>^!\r\n") {
			return fmt.Errorf("%s is a batch file, and an argument has characters that Windows would take for commands: name a program that is an .exe", path)
		}
	}
	return nil
}

// resume resumes the threads of a process that was started suspended.
func resume(pid int) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return os.NewSyscallError("CreateToolhelp32Snapshot", err)
	}
	defer windows.CloseHandle(snapshot) //nolint:errcheck // nothing was written
	resumed := false
	row := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &row); err == nil; err = windows.Thread32Next(snapshot, &row) {
		if row.OwnerProcessID != uint32(pid) {
			continue
		}
		h, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, row.ThreadID)
		if err != nil {
			return os.NewSyscallError("OpenThread", err)
		}
		_, err = windows.ResumeThread(h)
		_ = windows.CloseHandle(h) // nothing was written
		if err != nil {
			return os.NewSyscallError("ResumeThread", err)
		}
		resumed = true
	}
	if !resumed {
		return errors.New("the program was started and cannot be let go: its thread is not found")
	}
	return nil
}

// Alive lists the living processes in the job.
func (j *job) Alive() (pids []int, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.alive()
}

func (j *job) alive() (pids []int, ok bool) {
	if j.handle == 0 {
		return nil, true
	}
	// A JOBOBJECT_BASIC_PROCESS_ID_LIST consists of two 32-bit numbers and then the
	// PIDs, each as wide as a pointer.
	const head = 8 / unsafe.Sizeof(uintptr(0))
	for room := uintptr(64); room <= 1<<20; room *= 4 {
		list := make([]uintptr, head+room)
		err := windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicProcessIdList, uintptr(unsafe.Pointer(&list[0])), uint32(uintptr(len(list))*unsafe.Sizeof(list[0])), nil)
		if errors.Is(err, windows.ERROR_MORE_DATA) {
			continue
		}
		if err != nil {
			return nil, false
		}
		n := *(*uint32)(unsafe.Add(unsafe.Pointer(&list[0]), 4))
		for _, pid := range list[head : head+uintptr(n)] {
			pids = append(pids, int(pid))
		}
		return pids, true
	}
	return nil, false
}

// Signal ends all processes in the job on SIGKILL. SIGTERM is sent as a break
// (Ctrl-Break) to the program's group: it arrives if the program has this process's
// console, and processes that ignore it are killed after the grace.
func (j *job) Signal(sig syscall.Signal) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.handle == 0:
		return nil
	case sig == syscall.SIGKILL:
		return os.NewSyscallError("TerminateJobObject", windows.TerminateJobObject(j.handle, 1))
	case sig == syscall.SIGTERM:
		// If the group is gone, the break might go to all processes at the console.
		if pids, _ := j.alive(); slices.Contains(pids, j.leader) {
			_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(j.leader))
		}
	}
	return nil
}

// Wraps reports what the inner box reports.
func (j *job) Wraps() bool { return j.inner != nil && j.inner.Wraps() }
