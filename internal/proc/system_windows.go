package proc

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// SystemVariables are environment variables that programs need on this system, in
// addition to those needed everywhere.
var SystemVariables = []string{
	"USERPROFILE", "USERNAME", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "TEMP", "TMP",
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT",
}

// VariableName is the canonical name of an environment variable on this system:
// Windows ignores case.
func VariableName(name string) string { return strings.ToUpper(name) }

// marksReadable reports whether marked works.
const marksReadable = false

// contSignal is unused: no signal stops a process on Windows.
const contSignal = syscall.Signal(-1)

// becomeSubreaper does nothing: an orphan gets no new parent and stays in its job.
func becomeSubreaper() {}

// bootID is not needed: start times are calendar times.
func bootID() string { return "" }

// Identify returns the process that has this PID now. Start is 0 if there is
// none.
func Identify(pid int) Ident { return Ident{PID: pid, Start: startOf(pid)} }

// startOf is the start time of a living process, in steps of 100 ns since 1601;
// 0: there is none, or access is denied.
func startOf(pid int) uint64 {
	if pid <= 0 {
		return 0
	}
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return 0
	}
	defer windows.CloseHandle(h) //nolint:errcheck // nothing was written
	// An open handle keeps the PID of an ended process valid.
	if state, err := windows.WaitForSingleObject(h, 0); err != nil || state == windows.WAIT_OBJECT_0 {
		return 0
	}
	var start, exit, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &start, &exit, &kernel, &user) != nil {
		return 0
	}
	return uint64(start.HighDateTime)<<32 | uint64(start.LowDateTime)
}

// table lists the living processes. Windows keeps the PID of a parent that has
// ended, which may have been reused: a parent that started after its child does
// not count.
func table() []entry {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil
	}
	defer windows.CloseHandle(snapshot) //nolint:errcheck // nothing was written
	var out []entry
	starts := map[int]uint64{}
	row := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snapshot, &row); err == nil; err = windows.Process32Next(snapshot, &row) {
		e := entry{pid: int(row.ProcessID), ppid: int(row.ParentProcessID)}
		e.start = startOf(e.pid)
		starts[e.pid] = e.start
		out = append(out, e)
	}
	for i := range out {
		if e := &out[i]; starts[e.ppid] == 0 || starts[e.ppid] > e.start {
			e.ppid = 0
		}
	}
	return out
}

// marked always returns false: Windows does not show another process's
// environment.
func marked(int, string) bool { return false }

// markAmong does not work on Windows either.
func markAmong(int, func(string) bool) string { return "" }

// startBound starts a program, whose job ends with this process.
func startBound(cmd *exec.Cmd) error { return cmd.Start() }

// namelessFile is a file that is deleted when its last handle is closed.
func namelessFile() (*os.File, error) {
	path := filepath.Join(os.TempDir(), "signalbox-stdin-"+rand.Text())
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, windows.CREATE_NEW, windows.FILE_ATTRIBUTE_TEMPORARY|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

func pipeOut() (r, w *os.File, err error) { return os.Pipe() }

// Windows does not report who has a file open.
func inode(*os.File) uint64 { return 0 }

func writers([]uint64, Ident) []entry { return nil }

func putStamp(stamp) (restore func()) { return func() {} }

func stampOf(int) stamp { return 0 }

// KeepPrivate exists only on Linux.
func KeepPrivate() {}

// OwnFiles does nothing: on Windows a program inherits only the files that it
// is given.
func OwnFiles() {}

// ownSession makes a program lead a group to which a break can be sent, and which
// ignores keyboard interrupts.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// Groups do not outlive their leader: the job knows the living processes.
func groupLives(leader int) bool { return startOf(leader) != 0 }

func signalGroup(int, syscall.Signal) {}

// reapOrphan does nothing: Windows has no zombies.
func reapOrphan(int) {}
