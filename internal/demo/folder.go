package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/filelock"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/serve/up"
)

// folder has the data of a demo. Each user has one, so that a demo recovers the data of
// a previous one that was killed.
type folder struct {
	path string
	lock *os.File
	past place // place of the previous demo; zero: there was none
}

// place is the content of demo.json in the folder: where a demo runs, or ran.
type place struct {
	PID    int    `json:"pid"`
	Addr   string `json:"addr"`
	URL    string `json:"url"`
	Wedged int    `json:"wedged,omitempty"` // pid of a suspended agent
	Ended  bool   `json:"ended,omitempty"`  // the demo ended normally, with --keep
}

// stuckError says that the data of the previous demo cannot be recovered.
type stuckError struct {
	path string
	err  error
}

func (e stuckError) Error() string {
	return fmt.Sprintf("the data that an earlier demo left in %s cannot be recovered: %v", e.path, e.err)
}
func (e stuckError) Unwrap() error { return e.err }
func (e stuckError) Hint() string  { return "rm -r " + e.path + " removes it" }

// runningError says that another demo has the folder.
type runningError struct{ place place }

func (e runningError) Error() string {
	return fmt.Sprintf("a demo runs already, at %s (pid %d)", cmp.Or(e.place.URL, "an address that is not known yet"), e.place.PID)
}

func (e runningError) Hint() string {
	return fmt.Sprintf("use that one, or end it: q in its terminal, or kill %d", e.place.PID)
}

// openFolder creates the folder, or opens the existing one.
func openFolder() (*folder, error) {
	path := filepath.Join(os.TempDir(), "signalbox-demo-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("the demo's folder: %w", err)
	}
	if err := ownFolder(path); err != nil {
		return nil, err
	}
	f := &folder{path: path}
	lock, err := filelock.OpenFolder(path)
	if err != nil {
		return nil, fmt.Errorf("the demo's folder: %w", err)
	}
	_ = serve.ReadJSON(f.file(), &f.past) // the first demo finds none
	if err := filelock.Take(lock); err != nil {
		lock.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, runningError{f.past}
		}
		return nil, fmt.Errorf("lock the demo's folder %s: %w", path, err)
	}
	f.lock = lock
	return f, nil
}

// ownFolder makes sure that a folder, in a place where everybody may write, belongs to this
// user and is closed to others.
func ownFolder(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("the demo's folder: %w", err)
	}
	if !info.IsDir() || !config.Own(path, info) {
		return fmt.Errorf("%s, where the demo keeps its data, is not a folder of yours: remove it, or set TMPDIR to another folder", path)
	}
	return os.Chmod(path, 0o700) //nolint:gosec // a folder
}

func (f *folder) file() string { return filepath.Join(f.path, "demo.json") }
func (f *folder) data() string { return filepath.Join(f.path, "data") }

// config is the path of the agents' configuration. It is empty, so that they do not read the
// user's.
func (f *folder) config() string { return filepath.Join(f.path, "agents.yaml") }

func (f *folder) log() string { return filepath.Join(f.path, "demo.log") }

// close unlocks the folder, and removes it unless it is kept.
func (f *folder) close(keep bool) error {
	defer f.lock.Close() // last
	if keep {
		return nil
	}
	if err := os.RemoveAll(f.path); err != nil {
		return fmt.Errorf("the demo's folder is not removed: %w", err)
	}
	return nil
}

// found describes what the previous demo left.
type found struct {
	before  bool // there was a previous demo
	waiting int
	running int // tasks whose agents still run: they go on
	lost    int // tasks whose agents are gone
	held    int // firings of schedules that wait
}

func (f found) tasks() int { return f.waiting + f.running + f.lost }

// look determines what the previous demo left.
func (d *demo) look(ctx context.Context) (f found, err error) {
	if d.folder.past.PID == 0 {
		return f, nil
	}
	f.before = true
	if pid := d.folder.past.Wedged; pid > 0 {
		proc.Resume(pid) // the previous demo suspended it
	}
	lives := map[string]bool{}
	for _, c := range d.children {
		_, lives[c.Name] = c.Left(ctx)
	}
	counts, err := d.d.Store.Counts(ctx)
	if err != nil {
		return f, err
	}
	tasks, err := d.d.Store.InFlight(ctx)
	if err != nil {
		return f, err
	}
	runs, err := d.d.Store.OpenRuns(ctx)
	if err != nil {
		return f, err
	}
	f.waiting, f.held = counts.Pending, len(runs)
	for i := range tasks {
		if t := &tasks[i]; t.State == signalbox.Dispatching || lives[t.Agent] {
			f.running++
		} else {
			f.lost++
		}
	}
	return f, nil
}

func (f found) String() string {
	parts := []string{fmt.Sprintf("%d waiting", f.waiting), fmt.Sprintf("%d still running", f.running)}
	if f.lost > 0 {
		parts = append(parts, fmt.Sprintf("%d whose agent is gone", f.lost))
	}
	if f.held > 0 {
		parts = append(parts, fmt.Sprintf("%d held back by a schedule", f.held))
	}
	return strings.Join(parts, " · ")
}

// welcome prints what there is to see, and how to see it.
func (d *demo) welcome(f found) {
	url := d.d.URL
	var b strings.Builder
	switch {
	case f.before && d.folder.past.Ended:
		fmt.Fprintf(&b, "The previous demo kept its data. Found: %s.\n\n", f)
	case f.before:
		fmt.Fprintf(&b, "The previous demo was killed. Recovered: %s.\n\n", f)
	}
	fmt.Fprintf(&b, "Dashboard   %s\n", url)
	if link, err := d.d.LoginLink(); err == nil {
		fmt.Fprintf(&b, "Log in      %s (once; signalbox login-link makes another)\n", link)
	}
	fmt.Fprintf(&b, "Agents      %s (demo: they cost nothing and touch nothing)\n", strings.Join(agents, ", "))
	b.WriteString("Tools       browse, behind the tool queue browser (2 slots) · search_code, behind github (1 slot)\n")
	fmt.Fprintf(&b, "Data        %s (this host alone%s)\n", d.folder.path, map[bool]string{true: "; it stays", false: "; removed at the end"}[d.o.Keep])
	at := ""
	if here, ok := serve.DefaultDirector(); !ok || here.URL != url {
		at = " --director " + url // the command line finds it by default
	}
	fmt.Fprintf(&b, "\nFrom another terminal: %[1]s top%[2]s · %[1]s status%[2]s · %[1]s submit%[2]s --wait \"say hello\"\n", up.Command(os.Args[0], exec.LookPath), at)
	if d.o.Keys != nil {
		b.WriteString("Keys: w wedge an agent · u undo that · s submit a task · q quit\n")
	}
	d.say.text(b.String() + "\n")
}
