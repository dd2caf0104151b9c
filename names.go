package signalbox

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	nameForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	sessionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

// ValidName reports whether name can name an agent, a kind or a job: 1 to 64
// letters, digits, dots, underscores or hyphens, the first a letter or digit.
func ValidName(name string) bool { return nameForm.MatchString(name) && !strings.Contains(name, "..") }

// ValidSessionID reports whether id can be a session id: the seed's form,
// 1 to 128 characters, without "..".
func ValidSessionID(id string) bool {
	return sessionForm.MatchString(id) && !strings.Contains(id, "..")
}

// previewRunes is the length of a prompt preview, in characters.
const previewRunes = 80

// Preview returns the first line of a prompt, cut to 80 characters, with
// control and formatting characters replaced: it is shown in terminals and logs.
func Preview(prompt string) string {
	line, _, more := strings.Cut(strings.TrimSpace(clip(prompt, 4*previewRunes*4)), "\n")
	line = strings.Map(func(r rune) rune {
		if unprintable(r) {
			return ' '
		}
		return r
	}, line)
	line = strings.TrimSpace(line)
	n := 0
	for at := range line {
		if n++; n > previewRunes {
			return strings.TrimSpace(line[:at]) + "..."
		}
	}
	if more {
		return line + "..."
	}
	return line
}

// unprintable reports whether r could do more to a terminal than to show a
// character: control it, break the line, or turn the text round. The joiners
// stay, emoji and some scripts are written with them.
func unprintable(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f // most of most prompts, and the tables are slow
	}
	const nonJoiner, joiner = 0x200c, 0x200d
	return unicode.IsControl(r) || r == utf8.RuneError || unicode.In(r, unicode.Zl, unicode.Zp) ||
		(unicode.Is(unicode.Cf, r) && r != nonJoiner && r != joiner)
}

// clip cuts s to at most n bytes at a character's edge.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
