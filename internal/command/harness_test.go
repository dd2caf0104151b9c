//go:build unix

package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// boxes limits runs as far as this machine supports it; nil: it does not.
var boxes *confine.Host

func TestMain(m *testing.M) {
	os.Setenv("NOT_DECLARED", "leaked")
	var err error
	boxes, err = confine.Open(confine.Options{Name: "signalbox-test-command-" + strconv.Itoa(os.Getpid())})
	if err != nil {
		fmt.Println("no boxes:", err)
	}
	code := m.Run()
	if boxes != nil {
		if err := boxes.Close(); err != nil {
			fmt.Println("the boxes are not free:", err)
			code = max(code, 1)
		}
	}
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreTopFunction("github.com/signalbox-ai/signalbox/internal/proc.keptThread")); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

// both runs a test with and without boxes.
func both(t *testing.T, test func(t *testing.T)) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		test(t)
	})
	t.Run(boxed, func(t *testing.T) {
		t.Parallel()
		if boxes == nil {
			t.Skip("this machine has no boxes")
		}
		test(t)
	})
}

const boxed = "boxed"

func hostOf(t *testing.T) *confine.Host {
	if slices.Contains(strings.Split(t.Name(), "/"), boxed) {
		return boxes
	}
	return nil
}

// within bounds what should happen quickly, on a busy machine.
const within = 20 * time.Second

// file writes an executable file.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// sh writes a shell script.
func sh(t *testing.T, text string) string {
	t.Helper()
	return file(t, "#!/bin/sh\n"+text)
}

// open makes a tool named t.
func open(t *testing.T, c toolconf.CommandTool) *command.Tool {
	t.Helper()
	c.Name = "t"
	if c.Cwd == "" {
		c.Cwd = t.TempDir()
	}
	tool, err := command.New(c, command.Options{Host: hostOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

var marks atomic.Int64

// run runs a tool, and checks that none of its processes is alive afterwards.
func run(ctx context.Context, t *testing.T, tool *command.Tool, r command.Run) command.Outcome {
	t.Helper()
	if r.Mark == "" {
		r.Mark = "test-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(marks.Add(1), 10)
	}
	o := tool.Run(ctx, r)
	if len(o.Alive) > 0 {
		t.Errorf("alive: %v", o.Alive)
	}
	if pids := marked(t, r.Mark); len(pids) > 0 {
		t.Errorf("processes %v of the run are alive after its end", pids)
	}
	if o.Reason == "" || (o.Message == "") != (o.Reason == signalbox.ReasonCompleted) {
		t.Errorf("reason %q, message %q", o.Reason, o.Message)
	}
	if o.Took <= 0 {
		t.Errorf("it took %v", o.Took)
	}
	return o
}

// marked finds the living processes that have the mark in their environment.
func marked(t *testing.T, mark string) []int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		t.Skip("there is no /proc to see which processes are alive")
	}
	var pids []int
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ") // a zombie has no environment
		if err == nil && bytes.Contains(env, []byte("SIGNALBOX_RUN="+mark+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

func runSh(t *testing.T, text string) command.Outcome {
	t.Helper()
	return run(t.Context(), t, open(t, toolconf.CommandTool{Command: sh(t, text)}), command.Run{})
}

// begun starts a run and waits until the program reports that it is up. It
// returns a function that cancels the run and one that waits for its end.
func begun(t *testing.T, tool *command.Tool, said func() string) (cancel context.CancelFunc, done <-chan command.Outcome) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	end := make(chan command.Outcome, 1)
	go func() { end <- run(ctx, t, tool, command.Run{}) }()
	said()
	return cancel, end
}

// fifo is a named pipe on which a program reports its progress.
func fifo(t *testing.T) (path string, said func() string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "said")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return path, func() string {
		_ = f.SetReadDeadline(time.Now().Add(within))
		b := make([]byte, 256)
		n, err := f.Read(b)
		if err != nil {
			t.Fatalf("the program said nothing: %v", err)
		}
		return strings.TrimSpace(string(b[:n]))
	}
}

// log collects the output of a run.
type log struct {
	mu     sync.Mutex
	text   strings.Builder
	pieces []string
}

func (l *log) take(stream string, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(stream + "|" + string(text))
	l.pieces = append(l.pieces, string(text))
}

func wantMessage(t *testing.T, o command.Outcome, reason signalbox.Reason, message string) {
	t.Helper()
	if o.Reason != reason || o.Message != message {
		t.Errorf("it ended %s: %q; want %s: %q", o.Reason, o.Message, reason, message)
	}
}

// text returns the text of an answer's only part.
func text(t *testing.T, content json.RawMessage) []string {
	t.Helper()
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(content, &parts); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range parts {
		if p.Type != "text" {
			t.Errorf("a part of type %q", p.Type)
		}
		out = append(out, p.Text)
	}
	return out
}
