package signalbox_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox"
)

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "Agent-1": true, "claude.main_2": true, "0": true, strings.Repeat("x", 64): true,
		"": false, ".": false, "..": false, "a..b": false, "-a": false, ".a": false, "_a": false, "a/b": false, `a\b`: false,
		"a b": false, "a\n": false, "\na": false, "a\x00": false, "ä": false, "a:b": false, "a%2f": false, strings.Repeat("x", 65): false,
	} {
		if got := signalbox.ValidName(name); got != want {
			t.Errorf("name %q: %v, want %v", name, got, want)
		}
	}
}

func TestValidSessionID(t *testing.T) {
	for id, want := range map[string]bool{
		"s": true, "3f2a.b-c_D": true, strings.Repeat("x", 128): true,
		"": false, "a..b": false, ".s": false, "s/t": false, "s\n": false, "s\x00": false, strings.Repeat("x", 129): false,
	} {
		if got := signalbox.ValidSessionID(id); got != want {
			t.Errorf("session id %q: %v, want %v", id, got, want)
		}
	}
}

func TestValidQueue(t *testing.T) {
	for queue, want := range map[string]bool{
		"work": true, "commands": true, "agent:a": true, "pool:coder": true,
		"": false, "Work": false, "agent:": false, "pool:": false, "agent:..": false, "agent:a:b": false, "pool:a b": false,
		"work ": false, "chat:a": false,
	} {
		if got := signalbox.ValidQueue(queue); got != want {
			t.Errorf("queue %q: %v, want %v", queue, got, want)
		}
	}
	if name, ok := signalbox.QueueAgent(signalbox.AgentQueue("a")); !ok || name != "a" {
		t.Errorf("the agent of its queue is %q, %v", name, ok)
	}
	if kind, ok := signalbox.QueueKind(signalbox.PoolQueue("k")); !ok || kind != "k" {
		t.Errorf("the kind of its pool is %q, %v", kind, ok)
	}
}

func TestPreview(t *testing.T) {
	long := strings.Repeat("a", 81)
	for prompt, want := range map[string]string{
		"":                             "",
		"  \n\t ":                      "",
		"fix the tests":                "fix the tests",
		"fix\nthe tests":               "fix...",
		"\n\n fix \nthe":               "fix...",
		"fix\r\nthe":                   "fix...",
		"a\tb":                         "a b",
		"\x1b[31mred\x1b[0m":           "[31mred [0m",
		"\x1b]0;title\x07x":            "]0;title x",
		"nul\x00byte":                  "nul byte",
		"c1\u009bcontrol":              "c1 control",
		"bad\xffbyte":                  "bad byte",
		"del\x7fete":                   "del ete",
		"überprüfe 🚂":                  "überprüfe 🚂",
		long:                           long[:80] + "...",
		long[:80]:                      long[:80],
		strings.Repeat("ü", 90):        strings.Repeat("ü", 80) + "...",
		strings.Repeat("🚂", 5000):      strings.Repeat("🚂", 80) + "...",
		strings.Repeat("a ", 100):      strings.TrimSpace(strings.Repeat("a ", 40)) + "...",
		"x" + strings.Repeat(" ", 3e6): "x",
		// Text that a terminal would show reversed, or not at all.
		"\u202egnp.exe": "gnp.exe", "a\u200bb": "a b", "a\u2066b\u2069c": "a b c", "a\u2028b": "a b",
		"family 👩\u200d👧": "family 👩\u200d👧",
	} {
		if got := signalbox.Preview(prompt); got != want {
			t.Errorf("preview of %.40q (%d bytes): %q, want %q", prompt, len(prompt), got, want)
		}
	}
}

// The preview of any prompt is one short line that a terminal and a log can show.
func TestPreviewOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prompt := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "prompt")
		got := signalbox.Preview(prompt)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > 83 {
			t.Fatalf("preview %q", got)
		}
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
				t.Fatalf("preview %q holds %U", got, r)
			}
		}
	})
}

func TestReasonsAndStates(t *testing.T) {
	ends := map[signalbox.Reason]signalbox.State{
		"completed": "completed", "agent_error": "failed", "exit_nonzero": "failed", "wait_timeout": "timeout",
		"dispatch_failed": "failed", "rejected": "failed", "run_timeout": "timeout", "lost": "failed", "released": "failed",
		"cancelled": "cancelled", "interrupted": "failed",
		"budget":  "failed",
		"checks":  "failed",
		"stalled": "failed", // deviates from the design: a stall must not be called a timeout (docs/decisions/0006)
	}
	if len(signalbox.Reasons()) != len(ends) {
		t.Errorf("there are %d reasons, there should be %d", len(signalbox.Reasons()), len(ends))
	}
	for reason, state := range ends {
		if !reason.Valid() || reason.End() != state {
			t.Errorf("%s ends a task %s, want %s", reason, reason.End(), state)
		}
	}
	if signalbox.Reason("").Valid() || signalbox.State("").Valid() || signalbox.State("queued").Valid() {
		t.Error("a word that is none passes")
	}
	for _, s := range signalbox.States() {
		if n := btoi(s.Waiting()) + btoi(s.InFlight()) + btoi(s.Terminal()); n != 1 || !s.Valid() {
			t.Errorf("%s is in %d groups of states", s, n)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
