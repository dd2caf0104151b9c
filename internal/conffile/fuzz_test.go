package conffile_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// FuzzExpand: a text without a variable stays the same except for its
// escapes, an error never shows a value, and nothing is expanded twice.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"${A}", "$${A}", "${A:-b}", "${env:A}", "${", "${}", "${GONE}", "a$b", "${A}${A}", "$$$${A}", "${A:-${A}}", "$${", "${A", "\xff${A}"} {
		f.Add(s)
	}
	env := func(name string) (string, bool) { return "swordfish${B}", name == "A" }
	f.Fuzz(func(t *testing.T, s string) {
		got, used, err := conffile.Expand(s, env, nil)
		switch {
		case err != nil:
			if strings.Contains(err.Error(), "swordfish") || !strings.Contains(s, "${") {
				t.Fatalf("%q: %v", s, err)
			}
		case !strings.Contains(s, "${") && (got != s || used):
			t.Fatalf("%q becomes %q", s, got)
		case strings.Contains(got, "swordfish") && !strings.Contains(s, "swordfish") && !strings.Contains(got, "swordfish${B}"):
			t.Fatalf("%q: a value was expanded again: %q", s, got)
		case !used && !strings.Contains(s, "$${") && got != s:
			t.Fatalf("%q becomes %q without a variable", s, got)
		}
		if kept, _, err := conffile.Expand(s, env, func(string) bool { return true }); err == nil && !strings.Contains(s, "$${") && kept != s {
			t.Fatalf("%q becomes %q, want it unchanged", s, kept)
		}
	})
}
