package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/signalbox-ai/signalbox/internal/filelock"
)

// demoFolder is where a demo has its data. There is one for each user, so that
// a demo finds what one before it left when it was killed.
type demoFolder struct {
	path string
	lock *os.File
	past demoPlace // what the demo before wrote; zero: there was none
}

// demoPlace is demo.json in the folder: where a demo runs or ran.
type demoPlace struct {
	PID    int    `json:"pid"`
	Addr   string `json:"addr"`
	URL    string `json:"url"`
	Wedged int    `json:"wedged,omitempty"` // pid of an agent that was stopped
	Ended  bool   `json:"ended,omitempty"`  // in an orderly way, with --keep
}

// demoStuck says that what a demo before left keeps a new one from starting.
type demoStuck struct {
	path string
	err  error
}

func (e demoStuck) Error() string {
	return fmt.Sprintf("what an earlier demo left in %s cannot be taken up: %v", e.path, e.err)
}
func (e demoStuck) Unwrap() error { return e.err }
func (e demoStuck) Hint() string  { return "rm -r " + e.path + " begins anew" }

// demoRuns says that another demo has the folder.
type demoRuns struct{ place demoPlace }

func (e demoRuns) Error() string {
	return fmt.Sprintf("a demo runs already, at %s (pid %d)", cmp.Or(e.place.URL, "an address that it has not told yet"), e.place.PID)
}

func (e demoRuns) Hint() string {
	return fmt.Sprintf("look at that one, or end it: q in its terminal, or kill %d", e.place.PID)
}

// openDemoFolder makes the folder, or takes up the one that is there.
func openDemoFolder() (*demoFolder, error) {
	path := filepath.Join(os.TempDir(), "signalbox-demo-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("the demo's folder: %w", err)
	}
	if err := ownFolder(path); err != nil {
		return nil, err
	}
	f := &demoFolder{path: path}
	lock, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the demo's folder: %w", err)
	}
	_ = readJSON(f.file(), &f.past) // there is none the first time
	if err := filelock.Take(lock); err != nil {
		lock.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, demoRuns{f.past}
		}
		return nil, fmt.Errorf("lock the demo's folder %s: %w", path, err)
	}
	f.lock = lock
	return f, nil
}

// ownFolder makes sure that a folder in a place where everybody may write is
// ours, and that nobody else can look into it.
func ownFolder(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("the demo's folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || ok && int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a folder of yours, and the demo would put its data there: remove it, or set TMPDIR to another folder", path)
	}
	if info.Mode().Perm() != 0o700 {
		return os.Chmod(path, 0o700) //nolint:gosec // a folder
	}
	return nil
}

func (f *demoFolder) file() string { return filepath.Join(f.path, "demo.json") }
func (f *demoFolder) data() string { return filepath.Join(f.path, "data") }

// config is the path of the agents' configuration, which says nothing: they
// would otherwise read one of the person's own.
func (f *demoFolder) config() string { return filepath.Join(f.path, "agents.yaml") }

func (f *demoFolder) log() string { return filepath.Join(f.path, "demo.log") }

// close gives the folder up, and removes it unless it is to stay.
func (f *demoFolder) close(keep bool) error {
	defer f.lock.Close() // last: until then the folder is ours
	if keep {
		return nil
	}
	if err := os.RemoveAll(f.path); err != nil {
		return fmt.Errorf("the demo's folder is not removed: %w", err)
	}
	return nil
}
