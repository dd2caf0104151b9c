package command

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestSecretsOf(t *testing.T) {
	input := `{"key": "a\u0062cd\"e", "pin": 123456, "many": {"x": ["deep one", true, null], "y": " padded\n"}, "key": "twice", "open": "shown"}`
	got, err := secretsOf([]byte(input), []string{"key", "pin", "many", "none"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`abcd"e`, `abcd\"e`, `a\u0062cd\"e`, "123456", "deep one", "padded", "twice"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not hidden, but %q", want, got)
		}
	}
	if slices.Contains(got, "shown") {
		t.Error("an open property is hidden")
	}
}

func TestCleanerInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := "aä€😀\xff\xe2\x82b\xf0\x9f"
	whole := (&cleaner{}).feed([]byte(text), true)
	for range 1000 {
		var c cleaner
		var out bytes.Buffer
		for rest := text; len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			out.Write(c.feed([]byte(rest[:n]), false))
			rest = rest[n:]
		}
		out.Write(c.feed(nil, true))
		// A sequence of invalid bytes may become one or several replacement
		// characters.
		if a, b := squeeze(out.String()), squeeze(string(whole)); a != b {
			t.Fatalf("%q, want %q", a, b)
		}
	}
}

func squeeze(s string) string {
	for strings.Contains(s, "\uFFFD\uFFFD") {
		s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
	}
	return s
}
