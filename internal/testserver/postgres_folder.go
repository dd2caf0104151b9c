package testserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/testport"
)

// TB is a test, a benchmark, or a program that stands in for one.
type TB interface {
	Helper()
	Cleanup(f func())
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

// folder is a temporary folder that is removed even if this process is
// killed: its janitor, a shell, waits for the end of the pipe that this
// process holds open.
type folder struct {
	path    string
	janitor *exec.Cmd
	alive   *os.File           // our end of the pipe
	port    *testport.Reserved // of its server, if it has one
}

// clean ends the server of a folder, if its pid file still names a process
// that works in the folder, and removes the folder.
const clean = `read -r _
pid=$(cat "$0"/data/*.pid 2>/dev/null | head -n 1)
if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd")" = "$0/data" ]; then
	kill -QUIT "$pid"
	kill -CONT "$pid" $(cat /proc/"$pid"/task/*/children 2>/dev/null) 2>/dev/null # a test may have frozen it
	while [ -d "/proc/$pid" ]; do sleep 0.02; done
fi
rm -rf "$0"`

// newFolder creates a folder in parent; if that is empty, in the folder that
// SIGNALBOX_TEST_SERVERS names, or in the system's folder for temporary
// files.
func newFolder(parent, prefix string) (*folder, error) {
	parent = cmp.Or(parent, os.Getenv("SIGNALBOX_TEST_SERVERS"))
	if parent == "" && len(os.TempDir()) > 60 {
		parent = "/tmp" // the path of a Unix socket is limited to 107 bytes
	}
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	if err := give(path); err != nil {
		return nil, err
	}
	f := &folder{path: path, janitor: exec.CommandContext(context.Background(), "/bin/sh", "-c", clean, path)}
	end, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer end.Close()
	// The janitor shares this process's output, so that go test waits until it is
	// done: go test waits for all processes that hold its output.
	f.alive, f.janitor.Stdin, f.janitor.Stdout, f.janitor.Stderr = ours, end, os.Stdout, os.Stderr
	f.janitor.SysProcAttr = apart() // a keyboard interrupt must not reach it
	if err := f.janitor.Start(); err != nil {
		return nil, err
	}
	folders.Store(path, f)
	return f, nil
}

// folders keeps all folders referenced: otherwise the garbage collector would
// close the pipe, and the folder would be removed.
var folders sync.Map

// reservePort takes a port for the folder's server, even while that is
// stopped, until the folder is removed.
func (f *folder) reservePort() (port int, err error) {
	if f.port, err = testport.Reserve(); err != nil {
		return 0, err
	}
	return f.port.Port, nil
}

// remove makes the janitor do its work at once.
func (f *folder) remove() error {
	f.port.Release()
	folders.Delete(f.path)
	return errors.Join(f.alive.Close(), f.janitor.Wait())
}

// process is a server's process, which can be restarted. No goroutine waits
// for its end, so that leak tests find none.
type process struct {
	folder *folder
	mu     sync.Mutex
	cmd    *exec.Cmd
	ended  bool
}

func (p *process) start(cmd *exec.Cmd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.ended = cmd, false
	return nil
}

func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.ended {
		return false
	}
	p.ended = collect(p.cmd.Process.Pid)
	return !p.ended
}

// becomes waits until a started server reports ready.
func (p *process) becomes(ready func() bool, deadline time.Time, log func() string) error {
	var is bool
	if !testkit.Within(time.Until(deadline), func() bool { is = ready(); return is || !p.running() }) {
		return fmt.Errorf("the server is not ready: %s", log())
	}
	if !is {
		return fmt.Errorf("the server ended: %s", log())
	}
	return nil
}

func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// stop sends a signal and waits for the end.
func (p *process) stop(sign syscall.Signal) error {
	if !p.running() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.cmd.Process.Signal(sign); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	p.ended = true
	return nil
}

// account is a user of the system.
type account struct{ uid, gid uint32 }

// servant is the user that runs PostgreSQL, which refuses to run as root.
var servant = sync.OnceValues(func() (*account, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		return &account{uint32(uid), uint32(gid)}, errors.Join(err1, err2)
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
})

// give changes the owner of a file or folder to the servant.
func give(path string) error {
	c, err := servant()
	if c == nil || err != nil {
		return err
	}
	if err := os.Chown(path, int(c.uid), int(c.gid)); err != nil {
		return fmt.Errorf("give %s to the user of PostgreSQL: %w", path, err)
	}
	return nil
}

func asPostgres(bin string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), bin, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}
	if c, err := servant(); err == nil && c != nil {
		cmd.SysProcAttr = c.attr()
	}
	return cmd
}
