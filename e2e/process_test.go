package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// long bounds every wait of these tests; no wait should take that long. Eighteen
// coding CLIs that start at once on two cores take more than a minute.
const long = 3 * time.Minute

// process is a running signalbox.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	out  *tape
	err  *tape
	url  string        // of the address that it serves, once it is ready
	done chan struct{} // closed when it has ended
	code int           // then its exit code; -1: killed by a signal
}

// launch starts the binary under test in a process group of its own.
func launch(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	return launchProgram(t, binary, dir, env, args...)
}

// launchProgram starts another program in the same way.
func launchProgram(t *testing.T, program, dir string, env []string, args ...string) *process {
	t.Helper()
	return launchAs(t, nil, program, dir, env, args...)
}

// launchAs starts a program as another user, unless that is nil.
func launchAs(t *testing.T, user *syscall.Credential, program, dir string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: filepath.Base(program) + " " + strings.Join(args, " "), out: newTape(), err: newTape(), done: make(chan struct{})}
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir, p.cmd.Env = dir, env
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: user}
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		err := p.cmd.Wait()
		p.code = p.cmd.ProcessState.ExitCode()
		if err != nil && p.code == 0 {
			p.err.Write([]byte("e2e: " + err.Error() + "\n"))
		}
		p.out.close()
		p.err.close()
		close(p.done)
	}()
	t.Cleanup(p.finish)
	return p
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// finish ends the process, if it has not ended, and checks its standard
// error.
func (p *process) finish() {
	p.kill()
	if said := crashText(p.err.text()); said != "" {
		p.t.Errorf("%s: %s", p.name, said)
	}
	if p.t.Failed() {
		p.t.Logf("%s (exit %d)\n--- stdout\n%s--- stderr\n%s", p.name, p.code, tail(p.out.text()), tail(p.err.text()))
	}
}

// crashText finds a panic or a data race in the output of a process.
func crashText(said string) string {
	for _, sign := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: ", "[recovered]"} {
		if at := strings.Index(said, sign); at >= 0 {
			return said[at:min(len(said), at+4000)]
		}
	}
	return ""
}

func tail(s string) string {
	const most = 6000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// over reports whether a process has ended.
func (p *process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill kills it and its process group with SIGKILL.
func (p *process) kill() {
	if p.over() {
		return
	}
	syscall.Kill(-p.pid(), syscall.SIGKILL)
	<-p.done
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// exits waits for the end and returns the exit code.
func (p *process) exits() int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.code
	case <-time.After(long):
		p.t.Fatalf("%s did not end\n%s", p.name, tail(p.err.text()))
		return 0
	}
}

// stop stops it with SIGTERM, as a service manager does, and expects exit
// code 0.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.exits(); code != 0 {
		p.t.Fatalf("%s: exit code %d after SIGTERM\n%s", p.name, code, tail(p.err.text()))
	}
}

// says waits for a line that contains text on standard error and returns it.
func (p *process) says(text string) string { p.t.Helper(); return p.line(p.err, text) }

// prints is says for standard output.
func (p *process) prints(text string) string { p.t.Helper(); return p.line(p.out, text) }

// printed reports whether it prints a line that contains text before it ends.
func (p *process) printed(text string) bool {
	ctx, cancel := context.WithTimeout(p.t.Context(), long)
	defer cancel()
	_, err := p.out.line(ctx, text)
	return err == nil
}

func (p *process) line(from *tape, text string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), long)
	defer cancel()
	line, err := from.line(ctx, text)
	if err != nil {
		p.t.Fatalf("%s: no line with %q: %v\n--- stdout\n%s--- stderr\n%s", p.name, text, err, tail(p.out.text()), tail(p.err.text()))
	}
	return line
}

// tape records the output of a process, and wakes waiting readers.
type tape struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{} // closed at each change
	closed  bool
}

var errEnded = errors.New("it ended without")

func newTape() *tape { return &tape{changed: make(chan struct{})} }

func (t *tape) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	t.wake()
	return len(b), nil
}

func (t *tape) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.wake()
}

func (t *tape) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *tape) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// holds waits until text was written.
func (t *tape) holds(ctx context.Context, text string) error {
	return t.wait(ctx, func(all string, _ bool) bool { return strings.Contains(all, text) })
}

// line returns the first complete line that contains text, once there is one.
func (t *tape) line(ctx context.Context, text string) (found string, err error) {
	err = t.wait(ctx, func(all string, closed bool) bool {
		for line := range strings.Lines(all) {
			if strings.Contains(line, text) && (strings.HasSuffix(line, "\n") || closed) {
				found = strings.TrimSuffix(line, "\n")
				return true
			}
		}
		return false
	})
	return found, err
}

// wait waits until the output satisfies met.
func (t *tape) wait(ctx context.Context, met func(all string, closed bool) bool) error {
	for {
		t.mu.Lock()
		all, changed, closed := t.buf.String(), t.changed, t.closed
		t.mu.Unlock()
		switch {
		case met(all, closed):
			return nil
		case closed:
			return errEnded
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
