package cli_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// "queue list" is not a prompt; "submit list" is one.
func TestQueueVerbsAreNoPrompts(t *testing.T) {
	for args, want := range map[string]string{
		"list": "signalbox status", "status": "signalbox status", "Cancel": "signalbox cancel ID", "cancel k2m9": "signalbox cancel ID", " show ": "signalbox status ID",
	} {
		f := newDirector(t)
		words := strings.Split(args, " ")
		if strings.HasPrefix(args, " ") {
			words = []string{args}
		}
		p := start(t, f, cli.IO{}, append([]string{"queue"}, words...)...)
		p.expectExit(t, 2)
		if !strings.Contains(p.err.String(), "want "+want+"\n") || len(f.ids) != 0 {
			t.Errorf("queue %s: %s, %d submitted", args, p.err, len(f.ids))
		}
	}
	for _, args := range [][]string{{"submit", "list"}, {"queue", "list the open issues"}} {
		f := newDirector(t)
		start(t, f, cli.IO{}, args...).expectExit(t, 0)
		if len(f.ids) != 1 {
			t.Errorf("%q was not submitted", args)
		}
	}
}

// Text that is not UTF-8 is refused, not converted.
func TestPromptsAreUTF8(t *testing.T) {
	f := newDirector(t)
	p := start(t, f, cli.IO{}, "submit", "caf\xe9")
	p.expectExit(t, 2)
	if !strings.Contains(p.err.String(), "not valid UTF-8") {
		t.Error(p.err)
	}
	p = startWithInput(t, f, cli.IO{In: strings.NewReader("caf\xe9")}, "chat", "coder", "-")
	p.expectExit(t, 2)
	if len(f.proxy.requests("submit"))+len(f.proxy.requests("chat")) != 0 {
		t.Error("it was sent")
	}
}

// Without a queue, resume resumes all paused queues.
func TestResumeWithoutAQueueResumesAll(t *testing.T) {
	f := newDirector(t)
	f.pause("", "agent:coder", "pool:claude")
	p := start(t, f, cli.IO{}, "resume")
	p.expectExit(t, 0)
	if got := p.out.String(); got != "Nothing is paused.\n" || f.pauses() != "" {
		t.Errorf("%q, %s", got, f.pauses())
	}
	f.pause("", "agent:coder")
	start(t, f, cli.IO{}, "resume", "agent:coder").expectExit(t, 0)
	if got := f.pauses(); got != `""` {
		t.Errorf("%s", got)
	}
}

// A misspelt kind or agent is an error that suggests the nearest one. A name that may
// register later is no error.
func TestMisspeltNames(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"submit", "x", "--kind", "cluade"}, 2, "did you mean claude?"},
		{[]string{"submit", "x", "--kind", "codex"}, 0, ""},
		{[]string{"submit", "x", "--kind", "gardener"}, 0, "wait until one registers"},
		{[]string{"pause", "agent:codre"}, 2, "did you mean coder?"},
		{[]string{"pause", "agent:nobody"}, 2, `there is no agent "nobody"`},
		{[]string{"pause", "pool:cluade"}, 2, "did you mean claude?"},
		{[]string{"pause", "agent:coder"}, 0, ""},
		{[]string{"pause", "work"}, 0, ""},
		{[]string{"tokens", "create", "t", "--agent", "codre"}, 0, "No agent is named codre yet (did you mean coder?)."},
	} {
		p := start(t, newDirector(t), cli.IO{}, c.args...)
		p.expectExit(t, c.code)
		if !strings.Contains(p.err.String(), c.says) {
			t.Errorf("%q: %s", c.args, p.err)
		}
	}
}

// Commands that remove or stop something ask for confirmation at a terminal, but not in a script.
func TestRemovingAsks(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"release", "coder"}, {"clear", "coder"}, {"pause"}, {"agents", "remove", "coder"}, {"tokens", "revoke", "tok-0000000000000002"}, {"users", "remove", "ada"}, {"schedules", "remove", "report"},
	} {
		ask := func(answer string, more ...string) *program {
			return startWithInput(t, withThings(t), cli.IO{In: io.MultiReader(strings.NewReader(answer)), InTTY: true, ErrTTY: true}, append(args, more...)...)
		}
		no := ask("n\n")
		no.expectExit(t, 2)
		if !strings.Contains(no.err.String(), "? [y/N] ") || no.out.String() != "" {
			t.Errorf("%q: %s %s", args, no.err, no.out)
		}
		ask("y\n").expectExit(t, 0)
		yes := ask("", "--yes")
		yes.expectExit(t, 0)
		script := start(t, withThings(t), cli.IO{}, args...)
		script.expectExit(t, 0)
		if strings.Contains(yes.err.String()+script.err.String(), "[y/N]") {
			t.Errorf("%q asks with --yes or in a script", args)
		}
	}
}

// withThings is a director with a schedule, a token and a user.
func withThings(t *testing.T) *director {
	f := newDirector(t)
	f.close()
	f.plans.ByID["sched-1"] = signalbox.Schedule{ID: "sched-1", Name: "report", Cron: "@daily", Prompt: "p", Enabled: true, Source: signalbox.ScheduleFromAPI}
	f.AddUser(identity.PutUser{ID: "ada"})
	f.AddToken(identity.NewToken{Name: "laptop", User: "ada"})
	return f
}

// The process of a removed agent may still run: the command says so.
func TestRemovingARunningAgent(t *testing.T) {
	p := start(t, newDirector(t), cli.IO{}, "agents", "remove", "coder")
	p.expectExit(t, 0)
	if !strings.Contains(p.err.String(), "Its process still runs: it registers itself again") {
		t.Error(p.err)
	}
}

// --wait-timeout limits the wait of a chat, as it does for submit, and ends no task.
func TestWaitTimeoutOfAChat(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"line", "hang"} {
		f := newDirector(t)
		p := start(t, f, cli.IO{}, "chat", "coder", message, "--wait", "--wait-timeout", "300ms")
		p.expectExit(t, 124)
		if !strings.Contains(p.err.String(), "Error: the wait is over; "+f.id(1)+" goes on") {
			t.Error(p.err)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	for _, flag := range []string{"--version", "-v"} {
		p := start(t, newDirector(t), cli.IO{}, flag)
		p.expectExit(t, 0)
		if !strings.HasPrefix(p.out.String(), "signalbox ") {
			t.Errorf("%s: %q", flag, p.out)
		}
	}
}

// A result that cannot be written is an error in every command.
func TestResultThatCannotBeWrittenFails(t *testing.T) {
	f := withThings(t)
	f.seed("waits", "echo hello")
	f.complete(2, "hello")
	start(t, f, cli.IO{}, "release", "coder").expectExit(t, 0) // for the audit log
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"SIGNALBOX_DIRECTOR": f.URL, "SIGNALBOX_TOKEN": f.token}[name]
		return v, ok
	}
	for _, args := range []string{
		"--version", "version", "status", "status --json", "status 0010", "agents", "directors", "history", "why 0010", "tools", "whoami", "tokens",
		"audit", "schedules check @daily", "logs 0020", "cancel 0010", "submit x", "submit echo~hello --wait", "chat coder echo~hello", "tools call echo",
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
