package llm

import "strings"

// mender copies the beginning of a JSON text and completes it where it ends.
// It looks only at what it needs for that: the caller checks the outcome.
type mender struct {
	in    string
	at    int
	out   []byte
	wrong bool // it is no beginning of JSON
}

// maxNesting is far beyond any arguments; it bounds the recursion.
const maxNesting = 1000

// over reports whether nothing follows but space.
func (m *mender) over() bool {
	for m.at < len(m.in) && strings.IndexByte(" \t\r\n", m.in[m.at]) >= 0 {
		m.copy()
	}
	return m.at >= len(m.in)
}

func (m *mender) copy() {
	m.out = append(m.out, m.in[m.at])
	m.at++
}

// value copies one value and reports whether there was enough of it to stand.
func (m *mender) value(depth int) bool {
	if m.over() {
		return false
	}
	switch c := m.in[m.at]; {
	case depth > maxNesting:
		m.wrong = true
		return false
	case c == '{':
		m.group(depth, '}', m.member)
		return true
	case c == '[':
		m.group(depth, ']', m.value)
		return true
	case c == '"':
		return m.text(true)
	default:
		return m.word()
	}
}

// group copies an object or an array. A part that cannot stand is left out
// again, with the comma before it.
func (m *mender) group(depth int, end byte, part func(int) bool) {
	m.copy()
	for first := true; ; first = false {
		mark := len(m.out)
		if m.over() {
			m.out = append(m.out, end)
			return
		}
		switch c := m.in[m.at]; {
		case c == end:
			m.copy()
			return
		case first:
		case c == ',':
			m.copy()
		default:
			m.wrong = true
			return
		}
		if !part(depth + 1) {
			m.out = append(m.out[:mark], end)
			m.at = len(m.in)
			return
		}
		if m.wrong {
			return
		}
	}
}

// member copies a name and its value.
func (m *mender) member(depth int) bool {
	if m.over() {
		return false
	}
	if m.in[m.at] != '"' {
		m.wrong = true
		return false
	}
	if !m.text(false) || m.over() {
		return false
	}
	if m.in[m.at] != ':' {
		m.wrong = true
		return false
	}
	m.copy()
	return m.value(depth)
}

// text copies a string; one that is cut is closed if it may be, without the
// escape that it was cut in.
func (m *mender) text(mayClose bool) bool {
	m.copy()
	for m.at < len(m.in) {
		switch m.in[m.at] {
		case '"':
			m.copy()
			return true
		case '\\':
			n := 2
			if m.at+1 < len(m.in) && m.in[m.at+1] == 'u' {
				n = 6
			}
			if m.at+n > len(m.in) {
				m.at = len(m.in)
				break
			}
			for range n {
				m.copy()
			}
		default:
			m.copy()
		}
	}
	if mayClose {
		m.out = append(m.out, '"')
	}
	return mayClose
}

// word copies a number or a literal; a cut literal is completed, a cut number
// loses what makes it none.
func (m *mender) word() bool {
	rest := m.in[m.at:]
	n := strings.IndexAny(rest, ",]} \t\r\n")
	if n >= 0 {
		m.out = append(m.out, rest[:n]...)
		m.at += n
		return n > 0
	}
	m.at = len(m.in)
	for _, literal := range []string{"true", "false", "null"} {
		if strings.HasPrefix(literal, rest) {
			m.out = append(m.out, literal...)
			return true
		}
	}
	number := strings.TrimRight(rest, "+-.eE")
	m.out = append(m.out, number...)
	return number != ""
}
