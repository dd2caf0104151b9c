package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/filelock"
	"github.com/signalbox-ai/signalbox/internal/proc"
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
	path := filepath.Join(os.TempDir(), "signalbox-demo-"+userName())
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("the demo's folder: %w", err)
	}
	if err := ownFolder(path); err != nil {
		return nil, err
	}
	f := &demoFolder{path: path}
	lock, err := filelock.OpenFolder(path)
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
	if !info.IsDir() || !mine(info) {
		return fmt.Errorf("%s is not a folder of yours, and the demo would put its data there: remove it, or set TMPDIR to another folder", path)
	}
	if openToOthers(info) {
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

// found is what a demo that was killed left.
type found struct {
	before  bool // there was one
	waiting int
	running int // whose agents live: they are taken up where they are
	lost    int // whose agents are gone
	held    int // firings of schedules that are not decided
}

func (f found) tasks() int { return f.waiting + f.running + f.lost }

// look says what is there before anything goes on.
func (d *demo) look(ctx context.Context) (f found, err error) {
	if d.folder.past.PID == 0 {
		return f, nil
	}
	f.before = true
	if pid := d.folder.past.Wedged; pid > 0 {
		proc.Resume(pid) // it was stopped by the demo before
	}
	lives := map[string]bool{}
	for _, c := range d.children {
		_, lives[c.name] = c.left(ctx)
	}
	counts, err := d.s.store.Counts(ctx)
	if err != nil {
		return f, err
	}
	tasks, err := d.s.store.InFlight(ctx)
	if err != nil {
		return f, err
	}
	runs, err := d.s.store.OpenRuns(ctx)
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
	parts := []string{fmt.Sprintf("%d waiting", f.waiting), fmt.Sprintf("%d running, taken up where they are", f.running)}
	if f.lost > 0 {
		parts = append(parts, fmt.Sprintf("%d whose agent is gone", f.lost))
	}
	if f.held > 0 {
		parts = append(parts, fmt.Sprintf("%d held back by a schedule", f.held))
	}
	return strings.Join(parts, " · ")
}

// welcome says what there is to see, and how.
func (d *demo) welcome(f found) {
	url := d.s.url
	var b strings.Builder
	switch {
	case f.before && d.folder.past.Ended:
		fmt.Fprintf(&b, "The demo before this one kept its data. Found: %s.\n\n", f)
	case f.before:
		fmt.Fprintf(&b, "The demo before this one was killed. Recovered: %s.\n\n", f)
	}
	fmt.Fprintf(&b, "Dashboard   %s\n", url)
	if link, err := d.s.director.LoginLink(url); err == nil {
		fmt.Fprintf(&b, "Log in      %s (once; signalbox login-link makes another)\n", link)
	}
	fmt.Fprintf(&b, "Agents      %s (demo: they cost nothing and touch nothing)\n", strings.Join(demoAgents, ", "))
	b.WriteString("Tools       browse, behind the tool queue browser (2 slots) · search_code, behind github (1 slot)\n")
	fmt.Fprintf(&b, "Data        %s (this host alone%s)\n", d.folder.path, map[bool]string{true: "; it stays", false: "; removed at the end"}[d.o.Keep])
	at := ""
	if here, ok := readDirectorFile(); !ok || here.URL != url {
		at = " --director " + url // another one is found by itself
	}
	fmt.Fprintf(&b, "\nFrom another terminal: %[1]s top%[2]s · %[1]s status%[2]s · %[1]s submit%[2]s --wait \"say hello\"\n", asTyped(os.Args[0], exec.LookPath), at)
	if d.o.Keys != nil {
		b.WriteString("Keys: w wedge an agent · u undo that · s submit a task · q quit\n")
	}
	d.say.text(b.String() + "\n")
}
