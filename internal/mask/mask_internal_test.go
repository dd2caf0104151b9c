package mask

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// plainMask is a simple implementation of Masker: the bytes of all
// occurrences are replaced by stars, overlapping ones together.
func plainMask(text string, hide []string) string {
	var spans []span
	for _, h := range hide {
		for i := 0; i+len(h) <= len(text); i++ {
			if text[i:i+len(h)] == h {
				spans = append(spans, span{i, i + len(h)})
			}
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	var out strings.Builder
	pos := 0
	for i, s := range spans {
		if i > 0 && s.start < pos {
			pos = max(pos, s.end)
			continue
		}
		out.WriteString(text[pos:s.start] + hidden)
		pos = s.end
	}
	out.WriteString(text[pos:])
	return out.String()
}

func inPieces(text string, hide []string, r *rand.Rand) string {
	m := New(Patterns(nil, hide...))
	var out bytes.Buffer
	for len(text) > 0 {
		n := 1 + r.IntN(min(len(text), 1+r.IntN(12)))
		out.Write(m.Feed([]byte(text[:n]), false))
		text = text[n:]
	}
	out.Write(m.Feed(nil, true))
	return out.String()
}

func TestMaskInPieces(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "aab"[r.IntN(3)]
		}
		return string(b)
	}
	for range 20000 {
		hide := make([]string, 1+r.IntN(3))
		for i := range hide {
			hide[i] = word(From + r.IntN(4))
		}
		text := word(r.IntN(40))
		if got, want := inPieces(text, hide, r), plainMask(text, hide); got != want {
			t.Fatalf("seed %d: %q without %q is %q, want %q", seed, text, hide, got, want)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add("abcdef", "abcd", "cdef", uint64(1))
	f.Add("aaaaaaaaaa", "aaaa", "aaaaa", uint64(2))
	f.Fuzz(func(t *testing.T, text, one, two string, seed uint64) {
		var hide []string
		for _, h := range []string{one, two} {
			if len(h) >= From {
				hide = append(hide, h)
			}
		}
		if len(hide) == 0 {
			return
		}
		if got, want := inPieces(text, hide, rand.New(rand.NewPCG(seed, 0))), plainMask(text, hide); got != want {
			t.Errorf("%q without %q is %q, want %q", text, hide, got, want)
		}
	})
}

// The amount held back is bounded by the longest value, however often its
// beginning occurs.
func TestMaskHoldsLittleBack(t *testing.T) {
	m := New(Patterns(nil, "aaaaaaaa", "aaaab"))
	stars := 0
	for range 1000 {
		stars += bytes.Count(m.Feed(bytes.Repeat([]byte("a"), 100), false), []byte(hidden))
		if len(m.tail) > 8 || len(m.spans) > 1 {
			t.Fatalf("%d bytes and %d spans are held back", len(m.tail), len(m.spans))
		}
	}
	if rest := m.Feed(nil, true); stars != 1 || len(rest) != 0 {
		t.Errorf("%d stars, then %q", stars, rest)
	}
}

// The time per byte of an easy text does not depend on the length of the
// value.
func TestMaskOfALongValueTakesLinearTime(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	m := New(Patterns(nil, long+"b"))
	piece := bytes.Repeat([]byte("a"), 1<<15)
	n := 0
	for range 128 {
		n += len(m.Feed(piece, false))
	}
	if n += len(m.Feed(nil, true)); n != 128<<15 {
		t.Errorf("%d bytes of %d", n, 128<<15)
	}
}
