//go:build unix

package command_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// The rows of the seed's table of errors that concern a run.
func TestSeedErrorTableOfRuns(t *testing.T) { both(t, testSeedErrorTableOfRuns) }

func testSeedErrorTableOfRuns(t *testing.T) {
	for name, c := range map[string]struct {
		script  string
		timeout time.Duration
		reason  signalbox.Reason
		message string
		code    int // -1: none
	}{
		"command exits non-zero":                  {script: "exit 4", reason: signalbox.ReasonExitNonzero, message: "command exited with code 4", code: 4},
		"command exits non-zero with stderr":      {script: "echo out; echo ' no luck ' >&2; exit 1", reason: signalbox.ReasonExitNonzero, message: "no luck", code: 1},
		"command exits non-zero with blank lines": {script: "printf ' \\n\\t' >&2; exit 1", reason: signalbox.ReasonExitNonzero, message: "command exited with code 1", code: 1},
		"timeout exceeded":                        {script: "echo late >&2; exec sleep 60", timeout: 150 * time.Millisecond, reason: signalbox.ReasonRunTimeout, message: "Task timed out after 150ms", code: -1},
	} {
		t.Run(name, func(t *testing.T) {
			tool := open(t, toolconf.CommandTool{Command: sh(t, c.script), Timeout: c.timeout})
			o := run(t.Context(), t, tool, command.Run{})
			wantMessage(t, o, c.reason, c.message)
			if code := exitCode(o); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			content, metadata, isError := tool.Answer(o)
			if got := text(t, content); !isError || !slices.Equal(got, []string{c.message}) || string(metadata) != `{"agent":"t"}` {
				t.Errorf("the answer is %q, %s, %v", got, metadata, isError)
			}
		})
	}
}

func exitCode(o command.Outcome) int {
	if o.ExitCode == nil {
		return -1
	}
	return *o.ExitCode
}

// "Execution exception: failed, error: the exception's message": reasons why a
// program cannot be started.
func TestSeedErrorTableOfPrograms(t *testing.T) { both(t, testSeedErrorTableOfPrograms) }

func testSeedErrorTableOfPrograms(t *testing.T) {
	dir := t.TempDir()
	plain := file(t, "#!/bin/sh\n")
	chmod(t, plain, 0o644)
	lost := file(t, "#!/no/such/interpreter -x\n")
	empty := file(t, "")
	bare := file(t, "echo this shell is not asked\n")
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ command, cwd, message string }{
		"a path that is not there":   {command: "/no/such/program", message: "command not found: /no/such/program"},
		"a path through a file":      {command: plain + "/x", message: "command not found: " + plain + "/x"},
		"a name that is not in PATH": {command: "no-such-program", message: "command not found: no-such-program is in no folder of PATH"},
		"not executable":             {command: plain, message: plain + " is not executable: chmod +x " + plain},
		"a folder":                   {command: dir, message: dir + " is a folder, not a command"},
		"a pipe":                     {command: pipe, message: pipe + " cannot be run: it is a pipe, a socket or a device"},
		"no first line":              {command: bare, message: bare + " is not a program that this system can run: a script needs a first line such as #!/bin/sh"},
		"an empty file":              {command: empty, message: empty + " is empty: there is nothing to run"},
		"no such interpreter":        {command: lost, message: lost + " cannot be started: its interpreter /no/such/interpreter does not exist (first line of the script)"},
		"cwd is gone":                {command: "/bin/true", cwd: dir + "/gone", message: "working folder " + dir + "/gone is gone"},
		"cwd is a file":              {command: "/bin/true", cwd: plain, message: "working folder " + plain + " is not a folder"},
		"cwd is below a file":        {command: "/bin/true", cwd: plain + "/x", message: "working folder " + plain + "/x is not a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t.Context(), t, open(t, toolconf.CommandTool{Command: c.command, Cwd: c.cwd}), command.Run{})
			wantMessage(t, o, signalbox.ReasonAgentError, c.message)
			if o.ExitCode != nil {
				t.Errorf("exit code %d of a program that was not started", *o.ExitCode)
			}
		})
	}
}

func TestSeedResultFormat(t *testing.T) { both(t, testSeedResultFormat) }

func testSeedResultFormat(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"stdout":            {script: "echo hello", want: []string{"hello\n"}},
		"no output":         {script: ":", want: []string{"(no output)"}},
		"stderr":            {script: "echo out; echo careful >&2", want: []string{"out\n", "stderr:\ncareful\n"}},
		"stderr alone":      {script: "echo careful >&2", want: []string{"(no output)", "stderr:\ncareful\n"}},
		"stderr of a blank": {script: "echo out; echo ' ' >&2", want: []string{"out\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			tool := open(t, toolconf.CommandTool{Command: sh(t, c.script)})
			o := run(t.Context(), t, tool, command.Run{})
			wantMessage(t, o, signalbox.ReasonCompleted, "")
			content, metadata, isError := tool.Answer(o)
			if got := text(t, content); isError || !slices.Equal(got, c.want) || string(metadata) != `{"agent":"t"}` {
				t.Errorf("the answer is %q, %s, %v", got, metadata, isError)
			}
		})
	}
}

func TestSeedAgentName(t *testing.T) {
	tool, err := command.New(toolconf.CommandTool{Name: "t", Command: "/bin/true", Cwd: t.TempDir()}, command.Options{AgentName: "a \"b\" <c>"})
	if err != nil {
		t.Fatal(err)
	}
	if _, metadata, _ := tool.Answer(run(t.Context(), t, tool, command.Run{})); string(metadata) != `{"agent":"a \"b\" <c>"}` {
		t.Errorf("%s", metadata)
	}
}

// The task's own timeout has precedence over the tool's.
func TestSeedTimeoutOfTheTask(t *testing.T) {
	tool := open(t, toolconf.CommandTool{Command: sh(t, "exec sleep 60"), Timeout: time.Hour})
	wantMessage(t, run(t.Context(), t, tool, command.Run{Timeout: 100 * time.Millisecond}), signalbox.ReasonRunTimeout, "Task timed out after 100ms")
	short := open(t, toolconf.CommandTool{Command: sh(t, "sleep 0.3; echo done"), Timeout: 50 * time.Millisecond})
	if o := run(t.Context(), t, short, command.Run{Timeout: time.Hour}); o.Reason != signalbox.ReasonCompleted {
		t.Errorf("the tool's own limit ended a task with a longer limit: %+v", o)
	}
}

// The program gets one line of JSON and then the end of its input, its
// arguments unchanged, and no environment but its own.
func TestSeedPayload(t *testing.T) { both(t, testSeedPayload) }

func testSeedPayload(t *testing.T) {
	tool := open(t, toolconf.CommandTool{
		Command: sh(t, `cat; for a; do echo "[$a]"; done; env -0 | tr '\0' '\n' | grep -v '^PWD=\|^_=\|^SHLVL=\|^OLDPWD=' | sort`),
		Args:    []string{"a b", "$HOME", "*", ""}, Env: map[string]string{"B": "two words", "A": "1", "PATH": "/usr/bin:/bin"},
	})
	mark := "the-mark-of-" + strings.ReplaceAll(t.Name(), "/", "-")
	o := run(t.Context(), t, tool, command.Run{
		TaskID: "queue-1", Mark: mark,
		Input:    json.RawMessage("{\n  \"text\": \"line one\\nline <two>\",\n\"n\": 12345678901234567890 }"),
		Metadata: json.RawMessage(` {"user": "u"} `),
	})
	want := `{"tool":"t","input":{"text":"line one\nline <two>","n":12345678901234567890},"metadata":{"user":"u"},"taskId":"queue-1"}` +
		"\n[a b]\n[$HOME]\n[*]\n[]\nA=1\nB=two words\nPATH=/usr/bin:/bin\nSIGNALBOX_RUN=" + mark + "\n"
	if o.Stdout != want {
		t.Errorf("it saw\n%s\nwant\n%s", o.Stdout, want)
	}
	o = run(t.Context(), t, open(t, toolconf.CommandTool{Command: sh(t, "cat")}), command.Run{})
	if want := `{"tool":"t","input":{},"metadata":{}}` + "\n"; o.Stdout != want {
		t.Errorf("a call without a task gives %q, want %q", o.Stdout, want)
	}
}

// A call that was cancelled before it began is not executed.
func TestACallThatIsOverIsNotMade(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	said, _ := fifo(t)
	o := run(ctx, t, open(t, toolconf.CommandTool{Command: sh(t, "echo began > "+said)}), command.Run{})
	if o.Reason != signalbox.ReasonCancelled || !strings.Contains(o.Message, "cancelled") {
		t.Errorf("%+v", o)
	}
}
