package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// Each kind has its own options; a kind that cannot start with them is
// reported and skipped, and does not affect the others. What up and doctor say
// about accounts is what the CLI reports.
func TestUpForSeveralKinds(t *testing.T) {
	b := newBox(t)
	b.file("bin/claude", `#!/bin/sh
case "$1" in
--version) echo "9.8.7 (Claude Code)"; exit 0 ;;
auth) echo '{"loggedIn":false}'; exit 1 ;;
esac
read prompt
echo '{"type":"result","subtype":"success","is_error":false,"result":"'"$*"' in '"$(pwd)"'"}'
`, 0o700)
	b.file("bin/codex", `#!/bin/sh
if [ "$1" = login ]; then echo "Logged in using ChatGPT"; else echo "codex-cli 1.2.3"; fi
`, 0o700)
	b.vars["OPENAI_API_KEY"] = "codex takes no notice of it"
	config := b.file("kinds.yaml", `
discover: off
agent: {isolated_slots: 2}
agents:
  claude: {permission_mode: plan, workdir: one}
  codex: {permission_mode: plan}
  demo: {slots: 3}
  opencode:
`, 0o600)
	b.file("one/README", "", 0o600)
	up := b.up("--config", config)
	text := up.out.text()
	for _, part := range []string{"permission mode plan · not logged in: run claude auth login", "demo agent, which streams a few lines"} {
		if !strings.Contains(text, part) {
			t.Errorf("up does not say %q:\n%s", part, text)
		}
	}
	for _, part := range []string{"Error: agent codex: ", `unknown codex sandbox "plan": one of read-only, workspace-write, danger-full-access`, `"opencode" is not installed`} {
		up.says(part)
	}
	c := b.client(up.url)
	got := b.want(0, "submit", "--wait", "--kind", "claude", "hello")
	if want := " in " + filepath.Join(b.root, "one"); !strings.Contains(got.out, "--permission-mode plan") || !strings.Contains(got.out, want) {
		t.Errorf("claude was called with %s, want %s", got.out, want)
	}
	agents, err := c.Agents(b.ctx())
	if err != nil {
		t.Fatal(err)
	}
	slots := map[string]int{}
	for _, a := range agents {
		slots[a.Name] = a.Slots
	}
	if len(slots) != 2 || slots["claude"] != 1 || slots["demo"] != 3 {
		t.Errorf("agents: %v", slots)
	}
	up.stop()

	said := b.cli("doctor", "--config", config, "--json").out
	checks := map[string]string{}
	for _, check := range parse[api.Doctor](t, said).Checks {
		if check.Area == "agents" {
			for _, kind := range []string{"claude: ", `agent codex`, `sandbox "plan"`, `"opencode" is not`} {
				if strings.Contains(check.Text, kind) {
					checks[kind] = check.State
				}
			}
		}
	}
	if checks["claude: "] != "warn" || checks[`sandbox "plan"`] != "fail" || checks[`"opencode" is not`] != "fail" {
		t.Errorf("doctor: %v\n%s", checks, said)
	}
}

// A second run in the same folder would find it locked, and work in an empty
// one.
func TestSeveralSlotsInOneFolderAreRefused(t *testing.T) {
	b := newBox(t)
	b.fakeClaude()
	for _, line := range [][]string{
		b.server("up", []string{"--agents", "claude", "--slots", "2"}),
		{"agent", "--kind", "claude", "--data", b.data, "--addr", "127.0.0.1:0", "--slots", "2"},
	} {
		if got := b.want(1, line...); !strings.Contains(got.err, "slots is 2") || !strings.Contains(got.err, "a folder of its own") {
			t.Errorf("%s: %s", line[0], got.err)
		}
	}
	if got := b.want(1, b.server("up", []string{"--agents", "codex"})...); !strings.Contains(got.err, "is not installed") {
		t.Errorf("%s", got.err)
	}
}

// Each start of a CLI takes seconds: up asks each CLI that it will run once for
// its version; the agents that it starts, a standalone agent, and doctor do not
// ask.
func TestCLIsAreAskedForTheirVersionOnce(t *testing.T) {
	b := newBox(t)
	asked := filepath.Join(b.root, "asked")
	for _, kind := range []string{"claude", "codex", "opencode"} {
		b.file("bin/"+kind, `#!/bin/sh
[ "$1" = --version ] && echo `+kind+` >>`+asked+`
echo 1.2.3
`, 0o700)
	}
	b.file(asked, "", 0o600)
	b.agent("alone", "", "--kind", "claude").stop()
	b.serve("agent", "--data", b.data, "--addr", "127.0.0.1:0").stop() // it takes the first installed kind
	if text := b.read(asked); text != "" {
		t.Errorf("agents asked %q", text)
	}
	for _, kinds := range [][]string{{"codex"}, {"claude", "codex", "opencode"}} {
		b.file(asked, "", 0o600)
		up := b.up("--agents", strings.Join(kinds, ","))
		if strings.Count(up.out.text(), "1.2.3 (") != len(kinds) {
			t.Errorf("it does not say the version of each:\n%s", up.out.text())
		}
		b.cli("doctor")
		up.stop()
		lines := strings.Fields(b.read(asked))
		slices.Sort(lines)
		if !slices.Equal(lines, kinds) {
			t.Errorf("up of %q asked %q", kinds, lines)
		}
	}
}
