package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// One command, a prompt from another terminal, and a result.
func TestUpRunsPrompts(t *testing.T) {
	b := newBox(t)
	up := b.up()
	if !strings.Contains(up.out.text(), "No coding CLI (claude, codex, opencode) on PATH: starting the built-in demo agent.") {
		t.Errorf("up does not say that it starts the demo agent:\n%s", up.out.text())
	}
	if !strings.Contains(up.out.text(), "Signalbox at "+up.url+" (data "+b.data+")") {
		t.Errorf("up does not print its address and data folder:\n%s", up.out.text())
	}
	for _, typed := range []string{binary + ` submit --wait "say hello"`, "Watch it at " + up.url + ", or with " + binary + " top."} {
		if !strings.Contains(up.out.text(), typed) { // signalbox is not on PATH here
			t.Errorf("up does not say %q:\n%s", typed, up.out.text())
		}
	}
	got := b.want(0, "submit", "--wait", "sleep 10ms and say hello")
	if want := "Demo agent finished: sleep 10ms and say hello\n"; got.out != want {
		t.Errorf("standard output is %q, want %q", got.out, want)
	}
	for _, want := range []string{"Queued: queue-", "(position 1)", "completed"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("no %q on standard error: %q", want, got.err)
		}
	}
	up.stop()
	if strings.Contains(up.out.text(), "queue=") || strings.Contains(up.out.text(), "INFO") {
		t.Errorf("the log is on standard output:\n%s", up.out.text())
	}
	b.until("the end of all processes of up", func() bool { return len(b.living()) == 0 })
	if _, err := os.Stat(filepath.Join(b.home, ".signalbox", "director.json")); err == nil {
		t.Error("director.json still says that a director runs")
	}
}

// Before an agent gets work, the user sees what it is, where it works, with
// which permissions, and whose account it uses.
func TestUpSaysWhatItFound(t *testing.T) {
	b := newBox(t)
	b.fakeClaude()
	b.file("bin/codex", "#!/bin/sh\nif [ $1 = login ]; then echo Logged in using ChatGPT; else echo codex-cli 1.2.3; fi\n", 0o700)
	b.file("bin/opencode", "#!/bin/sh\necho 4.5.6\n", 0o700)
	b.vars["ANTHROPIC_API_KEY"], b.vars["OPENAI_API_KEY"] = "sk-not-for-printing", "sk-not-for-printing"
	up := b.up()
	said := up.out.text()
	for kind, want := range map[string][]string{
		"claude":   {"9.8.7 (" + filepath.Join(b.bin, "claude") + ")", "permission mode acceptEdits", "spends the account of ANTHROPIC_API_KEY"},
		"codex":    {"1.2.3 (" + filepath.Join(b.bin, "codex") + ")", "permission mode workspace-write", "spends the account that it is logged in using ChatGPT"},
		"opencode": {"4.5.6 (" + filepath.Join(b.bin, "opencode") + ")", "permission mode ask", "no login of its own"},
	} {
		_, about, found := strings.Cut(said, "\n  "+kind)
		if !found {
			t.Errorf("%s is not printed:\n%s", kind, said)
			continue
		}
		for _, text := range append(want, "working directory "+b.work, "HOME "+b.home) {
			if !strings.Contains(about, text) {
				t.Errorf("%s: %q is not printed:\n%s", kind, text, said)
			}
		}
	}
	if strings.Contains(said, "sk-not-for-printing") {
		t.Error("a key is printed")
	}
	agents := parse[api.Agents](t, b.want(0, "agents", "--json").out)
	if len(agents.Agents) != 3 {
		t.Errorf("%d agents: %+v", len(agents.Agents), agents)
	}
	// The prompt goes to the requested CLI, and its answer comes back.
	if got := b.want(0, "submit", "--wait", "--kind", "claude", "say hello"); got.out != "did say hello\n" {
		t.Errorf("claude answered %q", got.out)
	}
	up.stop()
}

// With --agents set to none, a task waits and why says for what.
func TestUpWithoutAgents(t *testing.T) {
	b := newBox(t)
	up := b.up("--agents", "none")
	id := b.submit(b.client(up.url), prompt("nobody is here"))
	got := b.want(0, "why", id)
	if !strings.Contains(got.out, "✗") || !strings.Contains(got.out, "agent") {
		t.Errorf("why: %s", got.out)
	}
	up.stop()
}
