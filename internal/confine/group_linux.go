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

// group is a directory of control files. The files that were used stay open,
// and a value that stands there already is not written again.
type group struct {
	dir string

	mu     sync.Mutex
	files  map[string]*os.File
	wrote  map[string]string
	killed bool // by cgroup.kill
}

// groupAt opens a directory that is there.
func groupAt(dir string) *group {
	return &group{dir: dir, files: map[string]*os.File{}, wrote: map[string]string{}}
}

// makeGroup makes the directory, or opens it where it is.
func makeGroup(dir string) (*group, error) {
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return groupAt(dir), nil
}

// file opens a file of the group; "" is its directory.
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

// write writes a value, whatever stands there.
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

// last is the value that set wrote last; "" is not known.
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

// read returns what a short file says.
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

// counter returns the number after a key in a file of keys, or the number that
// is all of it where key is "". What cannot be read is 0.
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

// pids lists the processes of the group and of those below it, but not us.
func (g *group) pids() []int { return pidsBelow(g.dir) }

// pidsBelow lists them where a group is not open.
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

// allIn lists the processes of a group, with us.
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

// noteKill remembers that cgroup.kill was used.
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

// close lets go of the files.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.files {
		f.Close()
	}
	clear(g.files)
}

// remove removes the group and those below it. What has just died holds a
// group for a moment, so it is tried again.
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

// Alive lists what lives in the box; ok is false where it cannot know.
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
	// What was there is dying, or hides its list. It is dead when the group says so.
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

// populated tells whether anything lives in a group or below it. A zombie does
// not live.
func populated(g *group) (bool, error) {
	text, err := g.read("cgroup.events")
	if err != nil {
		return false, err
	}
	return !strings.Contains(text, "populated 0"), nil
}

// Signal sends to all that lives in the box; SIGKILL reaches also what is
// forked meanwhile. Another signal spares a program that only holds the
// sandbox: it would take the run down with it at once.
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

// Wraps tells whether what Start starts only holds the sandbox in which the
// program runs.
func (b *Box) Wraps() bool { return b.kind == bubblewrap }

// signalMember holds a process by a handle before it checks that it is still a
// member: its pid may have gone to another.
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
			_ = unix.PidfdSendSignal(fd, sig, nil, 0) // gone by now is fine
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
	// Before Linux 5.14: what stands still does not fork, and SIGKILL wakes it.
	_ = g.write("cgroup.freeze", "1") // before 5.2 only speed helps
	for _, pid := range g.pids() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = g.write("cgroup.freeze", "0")
	return nil
}

// killGroup kills until nothing lives in a group, or emptyWait is over.
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

// empty kills what lives in the box, with proof.
func (b *Box) empty() error {
	if b.members == nil {
		return nil // proc has proven it by other means
	}
	return killGroup(b.members)
}

// renew gives the box another group where the old one was killed: Linux 6.14 to
// at least 6.18 kills at once what is born into a group after that.
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

// groupKill has a box's processes die together where memory runs out.
func (b *Box) groupKill() error {
	if b.h.by[memory] != byV2 || !b.members.has("memory.oom.group") {
		return nil
	}
	return b.members.write("memory.oom.group", "1")
}
