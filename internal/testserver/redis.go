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
	// Settings are lines of redis.conf beside those that every test server has:
	// the append-only file is on, and appendfsync is always. One with the name
	// of such a line takes its place.
	Settings []string
	// User is who may do everything, "" the default user; Password is theirs,
	// "" for none.
	User, Password string
	// Folder is where the data folder is made, instead of the system's folder
	// for temporary files; a small disk, for example.
	Folder string
}

// RedisServer is a Redis or Valkey server.
type RedisServer struct {
	Port int
	Data string // the data folder

	folder  string
	options RedisOptions
	process *process
	made    atomic.Int64 // prefixes
}

var sharedRedis = sync.OnceValues(func() (*RedisServer, error) { return startRedis(RedisOptions{}) })

// Redis returns the URL of an empty store on a server that all tests of the
// process share: each has a prefix of its own. The server goes with the process.
func Redis(tb TB) string {
	tb.Helper()
	s, err := sharedRedis()
	if err != nil {
		tb.Fatalf("start Redis: %v", err)
	}
	return s.Prefix()
}

// NewRedis starts a server of the test's own, which may be restarted, killed
// and broken. It goes with the test.
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

// URL is the server's address, with the user and password that may do
// everything.
func (s *RedisServer) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr()}
	if s.options.Password != "" {
		u.User = url.UserPassword(s.options.User, s.options.Password)
	}
	return u.String()
}

// Addr is the server's host and port.
func (s *RedisServer) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// Prefix is the URL with a prefix that nobody had before.
func (s *RedisServer) Prefix() string {
	return fmt.Sprintf("%s?prefix=test%d", s.URL(), s.made.Add(1))
}

// settings are the lines of redis.conf.
func (s *RedisServer) settings() string {
	lines := []string{
		"bind 127.0.0.1", "port " + strconv.Itoa(s.Port), "dir " + s.Data,
		// Who finds the folder finds the server: see clean.
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

// Start starts a server that was stopped or killed, on the port that it had.
// It returns when the server has read all that it kept.
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

// Log is all that the server has written to its log.
func (s *RedisServer) Log() string { return s.logFrom(0) }

// Pid is that of the server.
func (s *RedisServer) Pid() int { return s.process.pid() }

// Stop ends the server, which writes down what it has first.
func (s *RedisServer) Stop() error { return s.process.stop(syscall.SIGTERM) }

// Kill ends the server at once.
func (s *RedisServer) Kill() error { return s.process.stop(syscall.SIGKILL) }

// Freeze stops the server, as a debugger or a full machine does, until Thaw.
func (s *RedisServer) Freeze() { _ = send(s.Pid(), sigStop) }

// Thaw lets it go on.
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

// redisBinary finds Redis, or Valkey in its place.
func redisBinary() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if bin, err := exec.LookPath(name); err == nil {
			return bin, nil
		}
	}
	return "", errors.New("there is neither redis-server nor valkey-server: run scripts/setup.sh, or apt-get install redis-server")
}
