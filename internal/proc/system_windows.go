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

// SystemVariables are variables without which programs of this system do not run,
// beyond those that are known everywhere.
var SystemVariables = []string{
	"USERPROFILE", "USERNAME", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "TEMP", "TMP",
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT",
}

// VariableName is the name of a variable as the system tells it from others: here
// upper and lower case are the same.
func VariableName(name string) string { return strings.ToUpper(name) }

// marksReadable tells whether marked can know.
const marksReadable = false

// contSignal has no meaning: nothing is stopped by a signal here.
const contSignal = syscall.Signal(-1)

// becomeSubreaper does nothing: an orphan is handed to nobody, and stays in its job.
func becomeSubreaper() {}

// bootID is not needed: a start time is of the calendar, and names no boot.
func bootID() string { return "" }

// Identify reads who has this pid now. Start is 0 when nobody has.
func Identify(pid int) Ident { return Ident{PID: pid, Start: startOf(pid)} }

// startOf is when a living process started, in steps of 100 ns since 1601; 0 is
// nobody, or somebody who may not be asked.
func startOf(pid int) uint64 {
	if pid <= 0 {
		return 0
	}
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return 0
	}
	defer windows.CloseHandle(h) //nolint:errcheck // nothing was written
	// Whoever holds a handle keeps an ended process known by its pid.
	if state, err := windows.WaitForSingleObject(h, 0); err != nil || state == windows.WAIT_OBJECT_0 {
		return 0
	}
	var start, exit, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &start, &exit, &kernel, &user) != nil {
		return 0
	}
	return uint64(start.HighDateTime)<<32 | uint64(start.LowDateTime)
}

// table lists who lives. Windows keeps the pid of a parent that has ended, which
// another may have by now: a parent that started after its child is none.
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

// marked is not known here: Windows does not show another's environment.
func marked(int, string) bool { return false }

// markAmong is not known here either.
func markAmong(int, func(string) bool) string { return "" }

// startBound starts a program: its job ends with this process.
func startBound(cmd *exec.Cmd) error { return cmd.Start() }

// namelessFile is one that goes when the last who has it open closes it.
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

// Who has a file open is not told here.
func inode(*os.File) uint64 { return 0 }

func writers([]uint64, Ident) []entry { return nil }

func putStamp(stamp) (restore func()) { return func() {} }

func stampOf(int) stamp { return 0 }

// KeepPrivate is of Linux.
func KeepPrivate() {}

// OwnFiles has nothing to do: a program gets the files that it is given, and no
// other.
func OwnFiles() {}

// ownSession has a program lead a group that a break can be sent to, and which an
// interrupt from the keyboard is not for.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// There are no groups that outlive their leader: a job knows who lives.
func groupLives(leader int) bool { return startOf(leader) != 0 }

func signalGroup(int, syscall.Signal) {}

// reapOrphan does nothing: the dead leave nothing behind.
func reapOrphan(int) {}
