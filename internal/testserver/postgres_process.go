package testserver

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// startPostgres starts a server in a folder of its own.
func startPostgres(o PostgresOptions) (_ *PostgresServer, err error) {
	folder, err := newFolder(o.Folder, "signalbox-pg-")
	if err != nil {
		return nil, err
	}
	s := &PostgresServer{folder: folder.path, Data: filepath.Join(folder.path, "data"), Socket: folder.path, options: o}
	s.process = &process{folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.remove())
		}
	}()
	if err := s.fill(); err != nil {
		return nil, err
	}
	if s.Port, err = folder.reservePort(); err != nil {
		return nil, err
	}
	return s, s.Start()
}

// initdb takes a second, a copy of its result much less: it runs once per
// process, and each server starts from a copy.
var initialised = sync.OnceValues(func() (string, error) {
	folder, err := newFolder("", "signalbox-initdb-")
	if err != nil {
		return "", err
	}
	data := filepath.Join(folder.path, "data")
	bin, err := postgresBinary("initdb")
	if err != nil {
		return "", err
	}
	cmd := asPostgres(bin, "--pgdata", data, "--username", PostgresUser, "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync", "--no-instructions")
	cmd.Dir = folder.path
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return data, nil
})

func (s *PostgresServer) fill() error {
	from, err := initialised()
	if err != nil {
		return err
	}
	cmd := asPostgres("/bin/cp", "-a", from, s.Data)
	cmd.Dir = s.folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the data folder: %w\n%s", err, out)
	}
	return nil
}

// Start starts a server that was stopped or killed, on the same port. It does
// nothing if the server is running.
func (s *PostgresServer) Start() error {
	if s.process.running() {
		return nil
	}
	if err := s.configure(); err != nil {
		return err
	}
	bin, err := postgresBinary("postgres")
	if err != nil {
		return err
	}
	const patience = 60 * time.Second
	deadline := time.Now().Add(patience)
	testkit.Within(patience, func() bool {
		err = s.startOnce(bin, deadline)
		// The processes of a killed server release their resources when they have
		// ended.
		return err == nil || !strings.Contains(err.Error(), "is still in use")
	})
	return err
}

func (s *PostgresServer) startOnce(bin string, deadline time.Time) error {
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	began, err := log.Seek(0, 2)
	if err != nil {
		return err
	}
	// The remaining pid file of a killed server would look like that of the new
	// one.
	if err := os.Remove(filepath.Join(s.Data, "postmaster.pid")); err != nil && !os.IsNotExist(err) {
		return err
	}
	cmd := asPostgres(bin, "-D", s.Data, "-p", strconv.Itoa(s.Port))
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.folder, log, log
	if err := s.process.start(cmd); err != nil {
		return err
	}
	return s.process.becomes(s.ready, deadline, func() string { return s.logFrom(began) })
}

// ready reports whether the server's pid file says that it is ready.
func (s *PostgresServer) ready() bool {
	text, err := os.ReadFile(filepath.Join(s.Data, "postmaster.pid"))
	lines := strings.Split(string(text), "\n")
	return err == nil && len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"
}

func (s *PostgresServer) logFrom(at int64) string {
	text, err := os.ReadFile(filepath.Join(s.folder, "log"))
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text[min(at, int64(len(text))):]))
}

// Log is the whole log of the server.
func (s *PostgresServer) Log() string { return s.logFrom(0) }

// Pid is the PID of the server's main process.
func (s *PostgresServer) Pid() int { return s.process.pid() }

// Stop stops the server: fast closes all connections and flushes everything,
// immediate only exits, so that the next start has to recover.
func (s *PostgresServer) Stop(mode string) error {
	sign := map[string]syscall.Signal{"fast": syscall.SIGINT, "immediate": syscall.SIGQUIT}[mode]
	if sign == 0 {
		return fmt.Errorf("stop %q: there are fast and immediate", mode)
	}
	return s.process.stop(sign)
}

// Restart stops the server and starts it again.
func (s *PostgresServer) Restart(mode string) error {
	if err := s.Stop(mode); err != nil {
		return err
	}
	return s.Start()
}

// Kill kills all processes of the server at once, like a power cut.
//
// They are stopped before the first one dies: otherwise a process that
// outlives the first for a moment would stop waiting for its standby, and
// show a commit that exists only on this server.
func (s *PostgresServer) Kill() error {
	s.Freeze()
	s.signalAll(syscall.SIGKILL)
	return s.process.stop(syscall.SIGKILL)
}

// Freeze stops all processes of the server, as under a debugger or on an
// overloaded machine, until Thaw.
func (s *PostgresServer) Freeze() { s.signalAll(sigStop) }

// Thaw lets them continue.
func (s *PostgresServer) Thaw() { s.signalAll(sigCont) }

// signalAll sends a signal to the main process, which creates the others, and
// then to those.
func (s *PostgresServer) signalAll(sign syscall.Signal) {
	known := childrenOf(s.Pid()) // they are no longer its children once it is dead
	_ = send(s.Pid(), sign)      // it may have ended
	for _, pid := range append(known, childrenOf(s.Pid())...) {
		_ = send(pid, sign)
	}
}

// childrenOf lists the processes whose parent is pid.
func childrenOf(pid int) (list []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest) // state, parent, …
		if err != nil || len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			list = append(list, child)
		}
	}
	return list
}

func (s *PostgresServer) remove() error {
	var err error
	if s.process.running() {
		err = s.Stop("immediate")
	}
	return errors.Join(err, s.process.folder.remove())
}

// postgresBinary finds a program of the newest PostgreSQL that is installed.
func postgresBinary(name string) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) })
	if len(found) == 0 {
		return "", fmt.Errorf("there is no /usr/lib/postgresql/*/bin/%s: run scripts/setup.sh, or apt-get install postgresql", name)
	}
	return found[len(found)-1], nil
}
