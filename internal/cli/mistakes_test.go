package cli_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/cli"
)

// "queue list" is not a prompt; "submit list" is one.
func TestQueueVerbsAreNoPrompts(t *testing.T) {
	for args, want := range map[string]string{
		"list": "signalbox status", "status": "signalbox status", "Cancel": "signalbox cancel ID", "cancel k2m9": "signalbox cancel ID", " show ": "signalbox status ID",
	} {
		f := newFake(t)
		words := strings.Split(args, " ")
		if strings.HasPrefix(args, " ") {
			words = []string{args}
		}
		p := start(t, f, cli.IO{}, append([]string{"queue"}, words...)...)
		p.expectExit(t, 2)
		if !strings.Contains(p.err.String(), "want "+want+"\n") || len(f.submits) != 0 {
			t.Errorf("queue %s: %s, %d submitted", args, p.err, len(f.submits))
		}
	}
	for _, args := range [][]string{{"submit", "list"}, {"queue", "list the open issues"}} {
		f := newFake(t)
		start(t, f, cli.IO{}, args...).expectExit(t, 0)
		if len(f.submits) != 1 {
			t.Errorf("%q was not submitted", args)
		}
	}
}

// Text that is not UTF-8 is refused, not converted.
func TestPromptsAreUTF8(t *testing.T) {
	f := newFake(t)
	p := start(t, f, cli.IO{}, "submit", "caf\xe9")
	p.expectExit(t, 2)
	if !strings.Contains(p.err.String(), "not valid UTF-8") {
		t.Error(p.err)
	}
	p = startWithInput(t, f, cli.IO{In: strings.NewReader("caf\xe9")}, "chat", "coder", "-")
	p.expectExit(t, 2)
	if len(f.submits) != 0 || len(f.chats) != 0 {
		t.Error("it was sent")
	}
}

// Without a queue, resume resumes all that are paused.
func TestResumeWithoutAQueueResumesAll(t *testing.T) {
	f := newFake(t)
	f.paused = []api.Pause{{Since: noon}, {Queue: "agent:coder", Since: noon}, {Queue: "pool:claude", Since: noon}}
	p := start(t, f, cli.IO{}, "resume")
	p.expectExit(t, 0)
	if got := p.out.String(); got != "Nothing is paused.\n" || len(f.paused) != 0 {
		t.Errorf("%q, %+v", got, f.paused)
	}
	f.paused = []api.Pause{{Since: noon}, {Queue: "agent:coder", Since: noon}}
	start(t, f, cli.IO{}, "resume", "agent:coder").expectExit(t, 0)
	if len(f.paused) != 1 || f.paused[0].Queue != "" {
		t.Errorf("%+v", f.paused)
	}
}

// A misspelt kind or agent is an error that names the nearest; one that may
// come later is not.
func TestMisspeltNames(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"submit", "x", "--kind", "cluade"}, 2, "did you mean claude?"},
		{[]string{"submit", "x", "--kind", "codex"}, 0, ""},
		{[]string{"submit", "x", "--kind", "gardener"}, 0, "waits until one comes"},
		{[]string{"pause", "agent:codre"}, 2, "did you mean coder?"},
		{[]string{"pause", "agent:nobody"}, 2, `there is no agent "nobody"`},
		{[]string{"pause", "pool:cluade"}, 2, "did you mean claude?"},
		{[]string{"pause", "agent:coder"}, 0, ""},
		{[]string{"pause", "work"}, 0, ""},
		{[]string{"tokens", "create", "t", "--agent", "codre"}, 0, "No agent is named codre yet (did you mean coder?)."},
	} {
		p := start(t, newFake(t), cli.IO{}, c.args...)
		p.expectExit(t, c.code)
		if !strings.Contains(p.err.String(), c.says) {
			t.Errorf("%q: %s", c.args, p.err)
		}
	}
}

// Commands that remove or stop something ask for confirmation at a terminal, but not in a script.
func TestRemovingAsks(t *testing.T) {
	for _, args := range [][]string{
		{"release", "coder"}, {"clear", "coder"}, {"pause"}, {"agents", "remove", "coder"}, {"tokens", "revoke", "tok-1"}, {"users", "remove", "ada"}, {"schedules", "remove", "report"},
	} {
		ask := func(answer string, more ...string) *program {
			return startWithInput(t, fakeWithSchedule(t), cli.IO{In: io.MultiReader(strings.NewReader(answer)), InTTY: true, ErrTTY: true}, append(args, more...)...)
		}
		no := ask("n\n")
		no.expectExit(t, 2)
		if !strings.Contains(no.err.String(), "? [y/N] ") || no.out.String() != "" {
			t.Errorf("%q: %s %s", args, no.err, no.out)
		}
		ask("y\n").expectExit(t, 0)
		yes := ask("", "--yes")
		yes.expectExit(t, 0)
		script := start(t, fakeWithSchedule(t), cli.IO{}, args...)
		script.expectExit(t, 0)
		if strings.Contains(yes.err.String()+script.err.String(), "[y/N]") {
			t.Errorf("%q asks with --yes or in a script", args)
		}
	}
}

// fakeWithSchedule is a director with a schedule.
func fakeWithSchedule(t *testing.T) *fake {
	f := newFake(t)
	f.stored["report"] = &api.Schedule{ID: "report", Name: "report"}
	return f
}

// The process of a removed agent may still run: the command says so.
func TestRemovingARunningAgent(t *testing.T) {
	p := start(t, newFake(t), cli.IO{}, "agents", "remove", "coder")
	p.expectExit(t, 0)
	if !strings.Contains(p.err.String(), "Its process still runs: it registers itself again") {
		t.Error(p.err)
	}
}

// --wait-timeout bounds the wait of a chat, as that of submit, and ends no task.
func TestWaitTimeoutOfAChat(t *testing.T) {
	for _, message := range []string{"line", "hang"} {
		f := newFake(t)
		p := start(t, f, cli.IO{}, "chat", "coder", message, "--wait", "--wait-timeout", "300ms")
		p.expectExit(t, 124)
		if !strings.Contains(p.err.String(), "Error: the wait is over; "+id(1)+" goes on") {
			t.Error(p.err)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	for _, flag := range []string{"--version", "-v"} {
		p := start(t, newFake(t), cli.IO{}, flag)
		p.expectExit(t, 0)
		if !strings.HasPrefix(p.out.String(), "signalbox ") {
			t.Errorf("%s: %q", flag, p.out)
		}
	}
}

// A result that cannot be written is an error, whatever prints it.
func TestResultThatCannotBeWrittenFails(t *testing.T) {
	f := newFake(t)
	f.seed("waits", "echo hello")
	f.finish(2, "completed", "hello")
	env := func(name string) (string, bool) { return f.URL, name == "SIGNALBOX_DIRECTOR" }
	for _, args := range []string{
		"--version", "version", "status", "status --json", "status 0001", "agents", "directors", "history", "why 0001", "tools", "whoami", "tokens",
		"audit", "schedules check @daily", "logs 0002", "cancel 0001", "submit x", "submit echo~hello --wait", "chat coder echo~hello", "tools call echo",
	} {
		words := strings.Fields(args)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "~", " ")
		}
		var stderr strings.Builder
		io := cli.IO{In: strings.NewReader(""), Out: fullDisk{}, Err: &stderr, Env: env, Dir: t.TempDir(), Now: func() time.Time { return noon }}
		if code := cli.Main(t.Context(), words, io, fakeRoles); code != 1 || !strings.Contains(stderr.String(), "disk full") {
			t.Errorf("%s: exit code %d, %s", args, code, stderr.String())
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }
