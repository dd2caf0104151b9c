package runner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
)

func TestExtrasCannotInjectFlags(t *testing.T) {
	r := must(t, "claude", runner.Options{})
	p := plan(t, r, runner.Task{AllowedTools: []string{"Read"}, SystemPrompt: "--dangerously-skip-permissions"})
	for _, a := range p.Argv {
		if a == "--dangerously-skip-permissions" {
			t.Error("the system prompt is a flag")
		}
	}
	if !slices.Contains(p.Argv, "--append-system-prompt=--dangerously-skip-permissions") || !slices.Contains(p.Argv, "--tools=Read") {
		t.Errorf("%q", p.Argv)
	}
	for _, bad := range []string{"--help", "-x", "", "Read,Bash", "Read Bash", "Bash(a),Edit(b)", "Bash(a)(b)", "Bash(", "Bash()", "Bash(a\nb)", "mcp__", strings.Repeat("a", 65)} {
		if r.CheckExtras([]string{bad}, "") == nil {
			t.Errorf("%q is accepted as a tool", bad)
		}
	}
	for _, good := range []string{"Read", "Bash(git *)", "Bash(git log:*)", "mcp__box__list-all", "mcp__box__*", "Read(./src/**)"} {
		if err := r.CheckExtras([]string{good}, ""); err != nil {
			t.Error(err)
		}
	}
	if r.CheckExtras(make([]string, 101), "") == nil || r.CheckExtras(nil, "a\x00b") == nil || r.CheckExtras(nil, strings.Repeat("x", 100_001)) == nil {
		t.Error("no limit on extras")
	}
	if err := must(t, "claude", runner.Options{Permission: "bypassPermissions"}).CheckExtras([]string{"Bash(git *)"}, ""); err == nil || !strings.Contains(err.Error(), "bypassPermissions") {
		t.Errorf("a pattern without effect: %v", err)
	}
}

// A task may use fewer tools than its agent allows, never more.
func TestAllowedToolsOnlyRestrict(t *testing.T) {
	for _, c := range []struct {
		granted, only []string
		want          []string
	}{
		{nil, []string{"Bash", "Edit", "Bash(git *)"}, []string{"--tools=Bash,Edit"}},
		{[]string{"Bash"}, []string{"Bash(git *)"}, []string{"--tools=Bash", "--allowedTools=Bash(git *)"}},
		{[]string{"Bash(git *)", "Edit"}, []string{"Bash"}, []string{"--tools=Bash", "--allowedTools=Bash(git *)"}},
		{[]string{"Bash(git *)"}, []string{"Bash(rm *)"}, []string{"--tools=Bash"}},
		{[]string{"mcp__box__list"}, []string{"mcp__box__list"}, []string{"--tools=", "--allowedTools=mcp__box__list"}},
		{[]string{"Bash"}, nil, []string{"--allowedTools=Bash"}},
	} {
		p := plan(t, must(t, "claude", runner.Options{AllowedTools: c.granted}), runner.Task{AllowedTools: c.only})
		var got []string
		for _, a := range p.Argv {
			if strings.HasPrefix(a, "--tools") || strings.HasPrefix(a, "--allowedTools") {
				got = append(got, a)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("granted %q, only %q: %q, want %q", c.granted, c.only, got, c.want)
		}
	}
}

func TestUnsupportedExtrasAreRefused(t *testing.T) {
	for _, kind := range []string{"codex", "opencode", "command", "demo"} {
		r := must(t, kind, runner.Options{Command: []string{"true"}})
		if err := r.CheckExtras([]string{"Read"}, ""); err == nil || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s takes tools: %v", kind, err)
		}
		if err := r.CheckExtras(nil, "be kind"); (err == nil) != (kind == "codex") {
			t.Errorf("%s and a system prompt: %v", kind, err)
		}
		if err := r.CheckExtras(nil, ""); err != nil {
			t.Error(err)
		}
	}
	p := plan(t, must(t, "codex", runner.Options{}), runner.Task{SystemPrompt: "say \"\\hi\"\n\x7f"})
	if i := slices.Index(p.Argv, "-c"); i < 0 || p.Argv[i+1] != `developer_instructions="say \"\\hi\"\u000A\u007F"` {
		t.Errorf("%q", p.Argv)
	}
}
