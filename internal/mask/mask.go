// Package mask replaces secrets in texts, including texts that arrive in
// pieces.
package mask

import (
	"bytes"
	"cmp"
	"slices"
)

const (
	// hidden replaces a secret.
	hidden = "***"
	// From is the minimum length of a secret in bytes: shorter values occur in
	// any text.
	From = 4
)

// Pattern is a secret, prepared for finding it in one pass over the text,
// however that is cut (Knuth, Morris and Pratt): overlap[i] is the length of
// the longest proper prefix of the value that is also a suffix of its first
// i+1 bytes.
type Pattern struct {
	text    []byte
	overlap []int32
}

func newPattern(text string) Pattern {
	p := Pattern{text: []byte(text), overlap: make([]int32, len(text))}
	for i, n := 1, int32(0); i < len(text); i++ {
		for n > 0 && text[i] != text[n] {
			n = p.overlap[n-1]
		}
		if text[i] == text[n] {
			n++
		}
		p.overlap[i] = n
	}
	return p
}

// Patterns adds patterns for values to have, except for values that are too
// short or present already.
func Patterns(have []Pattern, values ...string) []Pattern {
	out := have[:len(have):len(have)]
	for _, v := range values {
		same := func(p Pattern) bool { return string(p.text) == v }
		if len(v) >= From && !slices.ContainsFunc(out, same) {
			out = append(out, newPattern(v))
		}
	}
	return out
}

// span is a part of the text to be replaced. A start below 0 means that its
// stars are already written.
type span struct{ start, end int }

// Masker replaces patterns in a text that arrives in pieces.
type Masker struct {
	patterns []Pattern
	found    []int  // for each pattern: how much of it is at the end of the text
	tail     []byte // end of the text that may begin a pattern
	spans    []span // in tail
	out      []byte
}

// New makes a Masker; nil, which replaces nothing, if there are no patterns.
func New(p []Pattern) *Masker {
	if len(p) == 0 {
		return nil
	}
	return &Masker{patterns: p, found: make([]int, len(p))}
}

// Feed takes a piece and returns the text that is safe to show; last says
// that no more follows. The result is valid until the next call.
func (m *Masker) Feed(piece []byte, last bool) []byte {
	if m == nil {
		return piece
	}
	from := len(m.tail)
	m.tail = append(m.tail, piece...)
	hold := 0
	for i := range m.patterns {
		hold = max(hold, m.find(i, from))
	}
	if last {
		hold = 0
	}
	m.merge()
	return m.show(len(m.tail) - hold)
}

// End returns the rest. If it is the beginning of a secret of at least the
// minimum length, it is replaced too: the program may have been cut off within
// the value.
func (m *Masker) End() []byte {
	if m == nil {
		return nil
	}
	if len(m.tail) >= From {
		m.add(span{0, len(m.tail)})
	}
	return m.Feed(nil, true)
}

// find searches for a pattern in the text from position from on, and returns
// how much of it is at the end.
func (m *Masker) find(which, from int) int {
	p, n := &m.patterns[which], m.found[which]
	for i := from; i < len(m.tail); i++ {
		if n == 0 {
			skip := bytes.IndexByte(m.tail[i:], p.text[0])
			if skip < 0 {
				break
			}
			i, n = i+skip, 1
			continue
		}
		for n > 0 && m.tail[i] != p.text[n] {
			n = int(p.overlap[n-1])
		}
		if m.tail[i] == p.text[n] {
			n++
		}
		if n == len(p.text) {
			m.add(span{i + 1 - n, i + 1})
			n = int(p.overlap[n-1])
		}
	}
	m.found[which] = n
	return n
}

func (m *Masker) add(s span) {
	if k := len(m.spans) - 1; k >= 0 && s.start >= m.spans[k].start && s.start < m.spans[k].end {
		m.spans[k].end = max(s.end, m.spans[k].end)
		return
	}
	m.spans = append(m.spans, s)
}

// merge merges overlapping spans, so that no part of a value is shown because
// another begins within it.
func (m *Masker) merge() {
	if len(m.spans) < 2 {
		return
	}
	slices.SortFunc(m.spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	all := m.spans
	m.spans = all[:0]
	for _, s := range all {
		m.add(s)
	}
}

// show returns the text up to end with secrets replaced, and keeps the rest.
func (m *Masker) show(end int) []byte {
	m.out = m.out[:0]
	pos, kept := 0, m.spans[:0]
	for _, s := range m.spans {
		if s.start >= end {
			kept = append(kept, span{s.start - end, s.end - end})
			continue
		}
		if s.start >= 0 {
			m.out = append(append(m.out, m.tail[pos:s.start]...), hidden...)
		}
		if pos = s.end; s.end > end {
			pos = end
			kept = append(kept, span{-1, s.end - end})
		}
	}
	m.out = append(m.out, m.tail[pos:end]...)
	m.tail, m.spans = append(m.tail[:0], m.tail[end:]...), kept
	return m.out
}

// Text replaces the patterns in a whole text.
func Text(p []Pattern, text string) string {
	if len(p) == 0 || text == "" {
		return text
	}
	return string(New(p).Feed([]byte(text), true))
}
