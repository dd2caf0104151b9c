//go:build mutants

package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/internal/proc"
)

// Result is the outcome of a mutant.
type Result struct {
	Name    string  `json:"name"`
	Fault   string  `json:"fault"`
	Text    string  `json:"text"`
	File    string  `json:"file"`
	Package string  `json:"package"`
	Caught  bool    `json:"caught"`
	Verdict string  `json:"verdict"`        // for people
	By      string  `json:"by,omitempty"`   // the test that caught it
	Says    string  `json:"says,omitempty"` // its first message
	Seconds float64 `json:"seconds"`        // from the start of the tests to the end of that one
	Whole   float64 `json:"whole_seconds"`  // including the build
}

// event is a line of go test -json.
type event struct {
	Action, Test, Output string
	Time                 time.Time
}

// Run is the result of go test.
type Run struct {
	Built    bool
	Passed   []string // including innermost tests
	Failed   []string // in the order in which they ended
	Running  []string // started and not ended: the process ended first
	TimedOut bool
	Begun    time.Time // of the first test
	Ended    time.Time // of the first that failed
	Output   map[string]string
	Raw      string
}

// Try runs the tests of a package that match a pattern, on the sources under root with the overlay, and ends
// all processes that the tests leave alive, as those of a mutant may.
func Try(root, pkg, pattern, overlay string, limit time.Duration) (Run, error) {
	argv := []string{"go", "test", "-json", "-count=1", "-failfast", "-vet=off", "-timeout", limit.String(), "-run", pattern}
	if overlay != "" {
		argv = append(argv, "-overlay", overlay)
	}
	var err error
	if argv[0], err = exec.LookPath("go"); err != nil {
		return Run{}, err
	}
	out, errs := watched{failed: make(chan struct{})}, bytes.Buffer{}
	argv = append(argv, "./"+pkg)
	if drawsHistories(root, pkg) {
		argv = append(argv, "-args", "-rapid.nofailfile") // else it would write failures into the sources
	}
	p, err := proc.Start(proc.Spec{
		Argv: argv, Dir: root, Env: append(os.Environ(), "SIGNALBOX_TEST_PATIENCE=20s"), Stdout: &out, Stderr: &errs, Look: 100 * time.Millisecond,
	})
	if err != nil {
		return Run{}, err
	}
	select {
	case <-p.Exited():
	case <-out.failed: // the result is known; the rest does not matter
		time.Sleep(time.Second)
	case <-time.After(limit + 10*time.Minute): // leaves time for the build
	}
	if _, err := p.Kill(); err != nil {
		return Run{}, fmt.Errorf("what the tests of %s left alive: %w", pkg, err)
	}
	return read(out.Bytes(), errs.String()), nil
}

// watched parses the output of go test -json, and reports the first failed test.
type watched struct {
	bytes.Buffer
	line   []byte // the incomplete last line
	once   sync.Once
	failed chan struct{}
}

// Write implements io.Writer.
func (w *watched) Write(b []byte) (int, error) {
	for _, c := range b {
		if w.line = append(w.line, c); c != '\n' {
			continue
		}
		var e event
		if bytes.Contains(w.line, []byte(`"fail"`)) && json.Unmarshal(w.line, &e) == nil && e.Action == "fail" && e.Test != "" {
			w.once.Do(func() { close(w.failed) })
		}
		w.line = w.line[:0]
	}
	return w.Buffer.Write(b)
}

// drawsHistories reports whether tests of a package use rapid, whose flags exist only there.
func drawsHistories(root, pkg string) bool {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		return false
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && bytes.Contains(text, []byte("\"pgregory.net/rapid\"")) {
			return true
		}
	}
	return false
}

func read(out []byte, errs string) Run {
	r := Run{Built: true, Output: map[string]string{}, Raw: errs}
	running := map[string]bool{}
	for line := range bytes.Lines(out) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			r.Raw += string(line)
			continue
		}
		r.take(&e, running)
	}
	for test := range running {
		r.Running = append(r.Running, test)
	}
	return r
}

func (r *Run) take(e *event, running map[string]bool) {
	switch e.Action {
	case "build-fail":
		r.Built = false
	case "build-output":
		r.Raw += e.Output
	case "output":
		r.Output[e.Test] += e.Output
		r.TimedOut = r.TimedOut || strings.HasPrefix(e.Output, "panic: test timed out")
		if strings.HasPrefix(e.Output, "panic: ") && r.Ended.IsZero() {
			r.Ended = e.Time
		}
	case "run":
		running[e.Test] = true
		if r.Begun.IsZero() {
			r.Begun = e.Time
		}
	case "pass", "fail", "skip":
		delete(running, e.Test)
		if e.Test == "" {
			return
		}
		if e.Action == "pass" {
			r.Passed = append(r.Passed, e.Test)
		}
		if e.Action == "fail" {
			r.Failed = append(r.Failed, e.Test)
			if r.Ended.IsZero() {
				r.Ended = e.Time
			}
		}
	}
}

// Kill runs the tests that must catch a mutant on its sources.
func (m *Mutant) Kill(root, dir string, limit time.Duration) Result {
	res := Result{Name: m.Name, Fault: m.Fault, Text: m.Text, File: m.File, Package: m.Package}
	begun := time.Now()
	defer func() { res.Whole = time.Since(begun).Seconds() }()
	overlay, err := m.overlay(root, dir)
	if err != nil {
		res.Verdict = err.Error()
		return res
	}
	run, err := Try(root, m.Package, m.Pattern(), overlay, limit)
	if err != nil {
		res.Verdict = err.Error()
		return res
	}
	m.judge(&res, &run)
	res.Whole = time.Since(begun).Seconds()
	return res
}

// judge reports whether a run caught the mutant: a test failed, or was running when the process ended.
func (m *Mutant) judge(res *Result, run *Run) {
	switch {
	case !run.Built:
		res.Verdict = "does not compile\n" + run.Raw
		return
	case run.TimedOut && !m.Hangs:
		res.Verdict = "NOT CAUGHT: the tests only hang"
		return
	case len(run.Failed) > 0:
		res.By = run.Failed[0]
	case len(run.Running) > 0:
		res.By = longest(run.Running)
	default:
		res.Verdict = "NOT CAUGHT\n" + run.Raw + run.Output[""]
		return
	}
	res.Caught, res.Verdict, res.Says = true, "caught", says(run.Output[res.By])
	if !run.Ended.IsZero() {
		res.Seconds = run.Ended.Sub(run.Begun).Seconds()
	}
	if run.TimedOut {
		res.Says = "it never ended"
	}
}

// overlay writes the changed file and the overlay for go test.
func (m *Mutant) overlay(root, dir string) (string, error) {
	text, err := m.Apply(root)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, m.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(m.File))
	file, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(m.File)))
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// longest is the innermost of the running tests.
func longest(tests []string) string {
	best := tests[0]
	for _, t := range tests {
		if len(t) > len(best) {
			best = t
		}
	}
	return best
}

// says is the first line of a test's output that the test itself wrote.
func says(output string) string {
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic:") || strings.Contains(line, ".go:") && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			return line[:min(len(line), 300)]
		}
	}
	return ""
}
