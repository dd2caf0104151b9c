package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

func TestSafeWriter(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"},
		{"a\x1b[2Jb\x1b[10;10Hc\x1b[?25ld", "abcd"},
		{"\x1b]0;title\adone", "0;title?done"},
		{"over\rwritten\r\n", "over\nwritten\n"},
		{"bell\a del\x7f c1\u009b bidi\u202e", "bell? del? c1? bidi?"},
		{"é – ✓ 漢", "é – ✓ 漢"},
		{"\x1bc reset", " reset"},
		{"\x1b[31\x1b[32mx", "\x1b[32mx"},
		{"bad \xff byte", "bad \uFFFD byte"},
	} {
		whole := write(test.in, len(test.in))
		if whole != test.want {
			t.Errorf("%q gives %q, want %q", test.in, whole, test.want)
		}
		if piecewise := write(test.in, 1); strings.ContainsAny(strings.ReplaceAll(piecewise, "\x1b[", ""), "\x1b\a\r") {
			t.Errorf("%q byte by byte gives %q", test.in, piecewise)
		}
	}
	for _, in := range []string{"\x1b[1;31mred\x1b[0m.", "é – ✓ 漢"} { // allowed text must also pass in pieces
		if got := write(in, 1); got != in {
			t.Errorf("%q byte by byte gives %q", in, got)
		}
	}
}

// write writes in pieces of n bytes.
func write(in string, n int) string {
	var out strings.Builder
	w := safeWriter{w: &out}
	for len(in) > 0 {
		n = min(n, len(in))
		w.Write([]byte(in[:n]))
		in = in[n:]
	}
	return out.String()
}

func FuzzNeutralise(f *testing.F) {
	f.Add("\x1b[31mred\x1b]0;t\a\x1b[2J")
	f.Fuzz(func(t *testing.T, in string) {
		for _, n := range []int{1, 7, max(1, len(in))} {
			out := write(in, n)
			for i := strings.IndexByte(out, 0x1b); i >= 0; i = strings.IndexByte(out, 0x1b) {
				rest := out[i:]
				if !isColour(rest[:sequence(rest)]) {
					t.Fatalf("%q lets %q through", in, rest)
				}
				out = rest[1:]
			}
		}
	})
}

func TestOrdinalAgoAndETA(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 112: "112th", 1002: "1002nd"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Hour: "0 s", 59 * time.Second: "59 s", 11*time.Minute + 59*time.Second: "11 min", 90 * time.Minute: "1 h 30 min", 72 * time.Hour: "3 days",
	} {
		if got := ago(d); got != want {
			t.Errorf("%s: %s", d, got)
		}
	}
	for want, e := range map[string]*api.ETA{
		"": nil, "about 3–9 min": {LowSeconds: 180, HighSeconds: 540}, "about 20–90 s": {LowSeconds: 20, HighSeconds: 90},
		"about 5 min": {LowSeconds: 290, HighSeconds: 310}, "about 1–3 h": {LowSeconds: 3600, HighSeconds: 10800},
	} {
		if got := eta(e); got != want {
			t.Errorf("%+v: %q", e, got)
		}
	}
}
