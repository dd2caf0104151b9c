package cli_test

import (
	"io"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/cli"
)

// A verb after the noun queue is no prompt; submit takes it as one.
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
		p.exits(t, 2)
		if !strings.Contains(p.err.String(), "want "+want+"\n") || len(f.submits) != 0 {
			t.Errorf("queue %s: %s, %d submitted", args, p.err, len(f.submits))
		}
	}
	for _, args := range [][]string{{"submit", "list"}, {"queue", "list the open issues"}} {
		f := newFake(t)
		start(t, f, cli.IO{}, args...).exits(t, 0)
		if len(f.submits) != 1 {
			t.Errorf("%q was not submitted", args)
		}
	}
}

// What is not UTF-8 is refused, and not changed.
func TestPromptsAreUTF8(t *testing.T) {
	f := newFake(t)
	p := start(t, f, cli.IO{}, "submit", "caf\xe9")
	p.exits(t, 2)
	if !strings.Contains(p.err.String(), "not valid UTF-8") {
		t.Error(p.err)
	}
	p = startAt(t, f, cli.IO{In: strings.NewReader("caf\xe9")}, "chat", "coder", "-")
	p.exits(t, 2)
	if len(f.submits) != 0 || len(f.said) != 0 {
		t.Error("it was sent")
	}
}

// Without a queue all that are paused go on.
func TestResumeWithoutAQueueResumesAll(t *testing.T) {
	f := newFake(t)
	f.paused = []api.Pause{{Since: noon}, {Queue: "agent:coder", Since: noon}, {Queue: "pool:claude", Since: noon}}
	p := start(t, f, cli.IO{}, "resume")
	p.exits(t, 0)
	if got := p.out.String(); got != "Nothing is paused.\n" || len(f.paused) != 0 {
		t.Errorf("%q, %+v", got, f.paused)
	}
	f.paused = []api.Pause{{Since: noon}, {Queue: "agent:coder", Since: noon}}
	start(t, f, cli.IO{}, "resume", "agent:coder").exits(t, 0)
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
		p.exits(t, c.code)
		if !strings.Contains(p.err.String(), c.says) {
			t.Errorf("%q: %s", c.args, p.err)
		}
	}
}

// What removes or stops asks a person at a terminal, and no script.
func TestRemovingAsks(t *testing.T) {
	for _, args := range [][]string{
		{"release", "coder"}, {"clear", "coder"}, {"pause"}, {"agents", "remove", "coder"}, {"tokens", "revoke", "tok-1"}, {"users", "remove", "ada"}, {"schedules", "remove", "report"},
	} {
		ask := func(answer string, more ...string) *program {
			return startAt(t, planned(t), cli.IO{In: io.MultiReader(strings.NewReader(answer)), InTTY: true, ErrTTY: true}, append(args, more...)...)
		}
		no := ask("n\n")
		no.exits(t, 2)
		if !strings.Contains(no.err.String(), "? [y/N] ") || no.out.String() != "" {
			t.Errorf("%q: %s %s", args, no.err, no.out)
		}
		ask("y\n").exits(t, 0)
		yes := ask("", "--yes")
		yes.exits(t, 0)
		script := start(t, planned(t), cli.IO{}, args...)
		script.exits(t, 0)
		if strings.Contains(yes.err.String()+script.err.String(), "[y/N]") {
			t.Errorf("%q asks with --yes or in a script", args)
		}
	}
}

// planned is a director with a schedule.
func planned(t *testing.T) *fake {
	f := newFake(t)
	f.plans["report"] = &api.Schedule{ID: "report", Name: "report"}
	return f
}

// The process of an agent that is removed may go on, which is said.
func TestRemovingALivingAgent(t *testing.T) {
	p := start(t, newFake(t), cli.IO{}, "agents", "remove", "coder")
	p.exits(t, 0)
	if !strings.Contains(p.err.String(), "Its process still runs: it registers itself again") {
		t.Error(p.err)
	}
}

// --wait-timeout bounds the wait of a chat, as that of submit, and ends no task.
func TestWaitTimeoutOfAChat(t *testing.T) {
	for _, fate := range []string{"line", "hang"} {
		f := newFake(t)
		p := start(t, f, cli.IO{}, "chat", "coder", fate, "--wait", "--wait-timeout", "300ms")
		p.exits(t, 124)
		if !strings.Contains(p.err.String(), "Error: the wait is over; "+id(1)+" goes on") {
			t.Error(p.err)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	for _, flag := range []string{"--version", "-v"} {
		p := start(t, newFake(t), cli.IO{}, flag)
		p.exits(t, 0)
		if !strings.HasPrefix(p.out.String(), "signalbox ") {
			t.Errorf("%s: %q", flag, p.out)
		}
	}
}
