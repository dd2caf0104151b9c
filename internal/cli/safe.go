package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// safeWriter writes untrusted text to a terminal. It lets only the escape sequences
// for colours pass: others could move the cursor, set the title or make the terminal
// send input.
type safeWriter struct {
	w    io.Writer
	held string // an incomplete character or escape sequence
}

// maxSequence is the longest escape sequence that is buffered, in bytes.
const maxSequence = 64

func (s *safeWriter) Write(p []byte) (int, error) {
	text := s.held + string(p)
	cut := len(text)
	if esc := strings.LastIndexByte(text, 0x1b); esc >= 0 && len(text)-esc < maxSequence && !complete(text[esc:]) {
		cut = esc
	} else {
		for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
			if utf8.RuneStart(text[len(text)-n]) {
				if !utf8.FullRuneInString(text[len(text)-n:]) {
					cut = len(text) - n
				}
				break
			}
		}
	}
	s.held = text[cut:]
	if _, err := io.WriteString(s.w, neutralise(text[:cut])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// complete reports whether a text that begins with ESC has a complete sequence.
func complete(s string) bool {
	if len(s) < 2 {
		return false
	}
	return s[1] != '[' || strings.IndexFunc(s[2:], func(r rune) bool { return r >= 0x40 }) >= 0
}

// neutralise drops escape sequences other than colours, and replaces other hostile
// characters with question marks. Line ends and tabs stay.
func neutralise(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		if text[i] == 0x1b {
			n := sequence(text[i:])
			if isColour(text[i : i+n]) {
				out.WriteString(text[i : i+n])
			}
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\r' && strings.HasPrefix(text[i:], "\r\n"): // drop it
		case r == '\r':
			out.WriteByte('\n') // text that would overwrite the line goes to the next one
		case r == '\n' || r == '\t' || !hostile(r):
			out.WriteRune(r)
		default:
			out.WriteByte('?')
		}
		i += n
	}
	return out.String()
}

// sequence returns the length of the escape sequence at the start of s. For a sequence
// that is not CSI it counts only ESC and the next character: the rest is harmless text.
func sequence(s string) int {
	if len(s) < 2 {
		return 1
	}
	if s[1] != '[' {
		_, n := utf8.DecodeRuneInString(s[1:])
		return 1 + n
	}
	for i := 2; i < len(s) && i < maxSequence; i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		if s[i] < 0x20 || s[i] > 0x7e {
			return i // not a sequence
		}
	}
	return 2
}

func isColour(seq string) bool {
	return len(seq) >= 3 && seq[1] == '[' && seq[len(seq)-1] == 'm' && strings.Trim(seq[2:len(seq)-1], "0123456789;:") == ""
}
