package testserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// RedisOptions are the settings of a server.
type RedisOptions struct {
	// Settings are lines of redis.conf in addition to those of every test server:
	// the append-only file is on, and appendfsync is always. A line with the name
	// of an existing one replaces it.
	Settings []string
	// User is the user with all rights, "" the default user; Password is its
	// password, "" for none.
	User, Password string
	// Folder is the parent of the data folder, instead of the system's folder for
	// temporary files; a small disk, for example.
	Folder string
}

// RedisServer is a Redis or Valkey server.
type RedisServer struct {
	Port int
	Data string // the data folder

	folder  string
	options RedisOptions
	process *process
	made    atomic.Int64 // number of prefixes
}

var sharedRedis = sync.OnceValues(func() (*RedisServer, error) { return startRedis(RedisOptions{}) })

// Redis returns the URL of an empty store on a server that all tests of the
// process share: each has a prefix of its own. The server is removed with the
// process.
func Redis(tb TB) string {
	tb.Helper()
	s, err := sharedRedis()
	if err != nil {
		tb.Fatalf("start Redis: %v", err)
	}
	return s.Prefix()
}

// NewRedis starts a separate server for the test, which may be restarted,
// killed and broken. It is removed with the test.
func NewRedis(tb TB, o RedisOptions) *RedisServer {
	tb.Helper()
	s, err := startRedis(o)
	if err != nil {
		tb.Fatalf("start Redis: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.remove(); err != nil {
			tb.Errorf("stop Redis: %v", err)
		}
	})
	return s
}

// startRedis starts a server in a folder of its own.
func startRedis(o RedisOptions) (_ *RedisServer, err error) {
	folder, err := newFolder(o.Folder, "signalbox-redis-")
	if err != nil {
		return nil, err
	}
	s := &RedisServer{folder: folder.path, Data: filepath.Join(folder.path, "data"), options: o, process: &process{folder: folder}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.remove())
		}
	}()
	if err := os.Mkdir(s.Data, 0o700); err != nil {
		return nil, err
	}
	if s.Port, err = folder.reservePort(); err != nil {
		return nil, err
	}
	return s, s.Start()
}

// URL is the server's URL, with the user and password that have all rights.
func (s *RedisServer) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr()}
	if s.options.Password != "" {
		u.User = url.UserPassword(s.options.User, s.options.Password)
	}
	return u.String()
}

// Addr is the server's host and port.
func (s *RedisServer) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// Prefix is the URL with an unused prefix.
func (s *RedisServer) Prefix() string {
	return fmt.Sprintf("%s?prefix=test%d", s.URL(), s.made.Add(1))
}

// settings are the lines of redis.conf.
func (s *RedisServer) settings() string {
	lines := []string{
		"bind 127.0.0.1", "port " + strconv.Itoa(s.Port), "dir " + s.Data,
		// The pid file is found through the folder: see clean.
		"pidfile " + filepath.Join(s.Data, "server.pid"),
		"appendonly yes", "appendfsync always", `save ""`, "enable-debug-command local", "maxmemory-policy noeviction",
	}
	if s.options.Password != "" && s.options.User == "" {
		lines = append(lines, "requirepass "+s.options.Password)
	}
	if s.options.User != "" {
		lines = append(lines, "user default off", "user "+s.options.User+" on >"+s.options.Password+" ~* &* +@all")
	}
	return strings.Join(append(lines, s.options.Settings...), "\n") + "\n"
}

// Start starts a server that was stopped or killed, on the same port. It
// returns when the server has loaded its data.
func (s *RedisServer) Start() error {
	bin, err := redisBinary()
	if err != nil {
		return err
	}
	conf := filepath.Join(s.folder, "redis.conf")
	if err := os.WriteFile(conf, []byte(s.settings()), 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	began, err := log.Seek(0, 2)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), bin, conf)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Data, log, log
	if err := s.process.start(cmd); err != nil {
		return err
	}
	said := func() string { return s.logFrom(began) }
	ready := func() bool { return strings.Contains(said(), "eady to accept connections") }
	return s.process.becomes(ready, time.Now().Add(time.Minute), said)
}

func (s *RedisServer) logFile() string { return filepath.Join(s.folder, "log") }

func (s *RedisServer) logFrom(at int64) string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[min(at, int64(len(text))):]))
}

// Log is the whole log of the server.
func (s *RedisServer) Log() string { return s.logFrom(0) }

// Pid is the PID of the server.
func (s *RedisServer) Pid() int { return s.process.pid() }

// Stop stops the server, which first flushes its data.
func (s *RedisServer) Stop() error { return s.process.stop(syscall.SIGTERM) }

// Kill kills the server.
func (s *RedisServer) Kill() error { return s.process.stop(syscall.SIGKILL) }

// Freeze stops the server, as under a debugger or on an overloaded machine,
// until Thaw.
func (s *RedisServer) Freeze() { _ = send(s.Pid(), sigStop) }

// Thaw lets it continue.
func (s *RedisServer) Thaw() { _ = send(s.Pid(), sigCont) }

// Restart stops the server and starts it again.
func (s *RedisServer) Restart() error {
	if err := s.Stop(); err != nil {
		return err
	}
	return s.Start()
}

func (s *RedisServer) remove() error {
	var err error
	if s.process.running() {
		err = s.Kill()
	}
	return errors.Join(err, s.process.folder.remove())
}

// redisBinary finds Redis, or else Valkey.
func redisBinary() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if bin, err := exec.LookPath(name); err == nil {
			return bin, nil
		}
	}
	return "", errors.New("there is neither redis-server nor valkey-server: run scripts/setup.sh, or apt-get install redis-server")
}
