//go:build unix

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// keeps skips a test of a limit that this machine cannot enforce.
func keeps(t *testing.T, limit string) {
	t.Helper()
	if boxes == nil {
		t.Skip("this machine has no boxes")
	}
	for _, l := range boxes.Report().Limits {
		if l.Name == limit && l.By != "" && (limit != "memory" || l.By == "cgroup2") { // with rlimits, the cause of a memory failure is unknown
			return
		}
	}
	t.Skipf("this machine cannot keep the limit %s", limit)
}

// The outcome names the limit that ended a run, and its configuration key.
func TestLimitsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		script  string
		limits  toolconf.CommandLimits
		struck  string
		message string
	}{
		"memory": {
			script: "exec tail /dev/zero", limits: toolconf.CommandLimits{Memory: 32 << 20},
			struck: command.StruckMemory, message: "ended: it used more than its memory limit of 32 MiB (limits.memory)",
		},
		"processes": {
			script: "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 60 & done; wait", limits: toolconf.CommandLimits{Processes: 6},
			struck: command.StruckProcesses, message: "ended: it wanted more than its limit of 6 processes (limits.processes)",
		},
		"cpu_time": {
			script: "while :; do :; done", limits: toolconf.CommandLimits{CPUTime: 300 * time.Millisecond},
			struck: command.StruckCPUTime, message: "ended: it used more than its CPU time limit of 300ms (limits.cpuTime)",
		},
		"file_size": {
			script: "exec head -c 1M /dev/zero > file", limits: toolconf.CommandLimits{FileSize: 64 << 10},
			struck: command.StruckFileSize, message: "ended: it wrote a file larger than its limit of 64 KiB (limits.fileSize)",
		},
	} {
		t.Run(boxed+"/"+name, func(t *testing.T) {
			t.Parallel()
			keeps(t, name)
			o := run(t.Context(), t, open(t, toolconf.CommandTool{Command: sh(t, c.script), Limits: c.limits, Timeout: within}), command.Run{})
			first, _, _ := strings.Cut(o.Message, "\n")
			if o.Reason != signalbox.ReasonAgentError || o.Struck != c.struck || first != c.message {
				t.Errorf("%s, %s: %q", o.Reason, o.Struck, o.Message)
			}
		})
	}
}

// The next run in the same box is not affected by the run before.
func TestABoxIsCleanForTheNextRun(t *testing.T) {
	t.Run(boxed, func(t *testing.T) {
		keeps(t, "processes")
		bomb := open(t, toolconf.CommandTool{Command: sh(t, "f() { f | f & }; f; sleep 0.2; exit 1"), Limits: toolconf.CommandLimits{Processes: 20, Memory: 64 << 20}, Timeout: within})
		good := open(t, toolconf.CommandTool{Command: sh(t, "echo fine")})
		for range 3 {
			if o := run(t.Context(), t, bomb, command.Run{}); o.Struck != command.StruckProcesses {
				t.Errorf("%+v", o)
			}
			if o := run(t.Context(), t, good, command.Run{}); o.Reason != signalbox.ReasonCompleted || o.Struck != "" {
				t.Errorf("%+v", o)
			}
		}
	})
}

// A sandboxed tool sees its own folder and no other.
func TestSandbox(t *testing.T) {
	t.Run(boxed, func(t *testing.T) {
		if boxes == nil {
			t.Skip("this machine has no boxes")
		}
		for _, r := range boxes.Report().Sandbox {
			t.Run(r.Kind, func(t *testing.T) {
				if !r.OK {
					t.Skipf("this machine has none: %s", r.Note)
				}
				other, write := filepath.Join(t.TempDir(), "secret"), t.TempDir()
				if err := os.WriteFile(other, []byte("of another"), 0o644); err != nil {
					t.Fatal(err)
				}
				cwd := t.TempDir()
				if err := os.WriteFile(filepath.Join(cwd, "own"), []byte("own\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				tool := open(t, toolconf.CommandTool{
					Command: sh(t, "cat; cat own; cat "+other+" 2>&1 | grep -q another && echo leaked; echo x > own && echo changed; echo y > "+write+"/made && echo written"), Cwd: cwd,
					Sandbox: toolconf.Sandbox{Mode: "required", Kind: r.Kind, Write: []string{write}, Network: true},
				})
				o := run(t.Context(), t, tool, command.Run{})
				if want := "{\"tool\":\"t\",\"input\":{},\"metadata\":{}}\nown\nwritten\n"; o.Stdout != want {
					t.Errorf("it printed %q, %q: %s", o.Stdout, o.Stderr, o.Message)
				}
			})
		}
	})
}
