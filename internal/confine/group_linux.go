package confine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// group is a directory of control files. Files that were used stay open, and
// an unchanged value is not written again.
type group struct {
	dir string

	mu     sync.Mutex
	files  map[string]*os.File
	wrote  map[string]string
	killed bool // with cgroup.kill
}

// groupAt opens an existing directory.
func groupAt(dir string) *group {
	return &group{dir: dir, files: map[string]*os.File{}, wrote: map[string]string{}}
}

// makeGroup creates the directory, or opens an existing one.
func makeGroup(dir string) (*group, error) {
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return groupAt(dir), nil
}

// file opens a file of the group; "" is the directory itself.
func (g *group) file(name string) (*os.File, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.files[name]; f != nil {
		return f, nil
	}
	if name == "" {
		f, err := os.Open(g.dir)
		if err == nil {
			g.files[name] = f
		}
		return f, err
	}
	path := filepath.Join(g.dir, name)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrPermission) {
		if f, err = os.Open(path); err != nil {
			f, err = os.OpenFile(path, os.O_WRONLY, 0)
		}
	}
	if err != nil {
		return nil, err
	}
	g.files[name] = f
	return f, nil
}

// write writes a value unconditionally.
func (g *group) write(name, value string) error {
	f, err := g.file(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(value), 0)
	return err
}

// set writes a value unless it was the last one written.
func (g *group) set(name, value string) error {
	if g.last(name) == value {
		return nil
	}
	g.remember(name, "")
	if err := g.write(name, value); err != nil {
		return err
	}
	g.remember(name, value)
	return nil
}

// last is the value that set last wrote; "" is unknown.
func (g *group) last(name string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wrote[name]
}

func (g *group) remember(name, value string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wrote[name] = value
}

func (g *group) has(name string) bool {
	_, err := os.Lstat(filepath.Join(g.dir, name))
	return err == nil
}

// read returns the content of a short file.
func (g *group) read(name string) (string, error) {
	f, err := g.file(name)
	if err != nil {
		return "", err
	}
	var buf [4096]byte
	n, err := f.ReadAt(buf[:], 0)
	if n == 0 && err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return string(buf[:n]), nil
}

// counter returns the number after a key in a file of keys, or the only number
// in the file if key is "". It returns 0 if the file cannot be read.
func (g *group) counter(name, key string) int64 {
	text, err := g.read(name)
	if err != nil {
		return 0
	}
	if key == "" {
		n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		return n
	}
	for line := range strings.Lines(text) {
		if k, v, _ := strings.Cut(strings.TrimSpace(line), " "); k == key {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return 0
}

// pids lists the processes of the group and of the groups below it, except
// for this process.
func (g *group) pids() []int { return pidsBelow(g.dir) }

// pidsBelow is pids for a group that is not open.
func pidsBelow(dir string) []int {
	pids := pidsIn(dir)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			pids = append(pids, pidsBelow(filepath.Join(dir, e.Name()))...)
		}
	}
	return pids
}

func pidsIn(dir string) []int {
	return slices.DeleteFunc(allIn(dir), func(pid int) bool { return pid == os.Getpid() })
}

// allIn lists the processes of a group, including this one.
func allIn(dir string) []int {
	var pids []int
	b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	for f := range bytes.FieldsSeq(b) {
		if pid, err := strconv.Atoi(string(f)); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// noteKill records that cgroup.kill was used.
func (g *group) noteKill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.killed = true
}

func (g *group) wasKilled() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.killed
}

// close closes the files.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.files {
		f.Close()
	}
	clear(g.files)
}

// remove removes the group and those below it. It retries, because a process
// that has just died keeps its group for a moment.
func (g *group) remove() error {
	g.close()
	deadline := time.Now().Add(removeWait)
	for {
		err := removeTree(g.dir)
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &os.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}

// Alive lists the living processes in the box; ok is false if it cannot know.
func (b *Box) Alive() (pids []int, ok bool) {
	if b.members == nil {
		return nil, false
	}
	some, err := populated(b.members)
	if err != nil {
		return nil, false
	}
	if !some {
		return nil, true
	}
	if pids = b.members.pids(); len(pids) > 0 {
		return pids, true
	}
	// What was there is dying or hidden from us. The group decides whether it is
	// dead.
	if some, err = populated(b.members); err == nil && some {
		b.mu.Lock()
		defer b.mu.Unlock()
		return []int{b.leader}, true
	}
	return nil, err == nil
}

func (b *Box) pids() []int {
	pids, _ := b.Alive()
	return pids
}

// populated reports whether a process in a group or below it is alive. A
// zombie does not count.
func populated(g *group) (bool, error) {
	text, err := g.read("cgroup.events")
	if err != nil {
		return false, err
	}
	return !strings.Contains(text, "populated 0"), nil
}

// Signal sends a signal to all living processes in the box; SIGKILL also
// reaches those forked meanwhile. Other signals are not sent to a program
// that only holds the sandbox, because that would end the run at once.
func (b *Box) Signal(sig syscall.Signal) error {
	if b.members == nil {
		return fmt.Errorf("confine: without control groups a box cannot be signalled: %w", errors.ErrUnsupported)
	}
	if sig == syscall.SIGKILL {
		return kill(b.members)
	}
	for _, pid := range b.members.pids() {
		if b.Wraps() && pid == b.leader {
			continue
		}
		signalMember(b.members, pid, sig)
	}
	return nil
}

// Wraps reports whether the program that Start starts only holds the sandbox
// in which the actual program runs.
func (b *Box) Wraps() bool { return b.kind == bubblewrap }

// signalMember opens a handle of a process before it checks that the process
// is still a member, because its PID may have been reused.
func signalMember(g *group, pid int, sig syscall.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		if errors.Is(err, unix.ENOSYS) {
			_ = syscall.Kill(pid, sig)
		}
		return
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	for _, now := range g.pids() {
		if now == pid {
			_ = unix.PidfdSendSignal(fd, sig, nil, 0) // the process may have ended
			return
		}
	}
}

// kill sends SIGKILL so that no fork escapes.
func kill(g *group) error {
	g.noteKill()
	if g.write("cgroup.kill", "1") == nil {
		return nil
	}
	// Before Linux 5.14: a frozen process does not fork, and SIGKILL thaws it.
	_ = g.write("cgroup.freeze", "1") // before 5.2 speed has to suffice
	for _, pid := range g.pids() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = g.write("cgroup.freeze", "0")
	return nil
}

// killGroup kills until no process in a group is alive, or emptyWait is over.
func killGroup(g *group) error {
	deadline := time.Now().Add(emptyWait)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		some, err := populated(g)
		if err != nil {
			return err
		}
		if !some {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v live on after SIGKILL", g.pids())
		}
		_ = kill(g)
		time.Sleep(pause)
	}
}

// empty kills the processes in the box, with proof.
func (b *Box) empty() error {
	if b.members == nil {
		return nil // proc has proven it by other means
	}
	return killGroup(b.members)
}

// renew replaces the box's group after a kill: Linux 6.14 to at least 6.18
// kills at once any process that is created in the group after that.
func (b *Box) renew() error {
	if b.members == nil || !b.members.wasKilled() {
		return nil
	}
	b.renewed++
	g, err := makeGroup(at(b.h.members, fmt.Sprintf("%s.%d", b.name, b.renewed)))
	if err != nil {
		return err
	}
	old := b.members
	b.mu.Lock()
	b.members = g
	b.mu.Unlock()
	return errors.Join(b.groupKill(), old.remove())
}

// groupKill makes a box's processes die together if memory runs out.
func (b *Box) groupKill() error {
	if b.h.by[memory] != byV2 || !b.members.has("memory.oom.group") {
		return nil
	}
	return b.members.write("memory.oom.group", "1")
}
