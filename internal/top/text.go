package top

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/signalbox-ai/signalbox"
)

// plain makes untrusted text safe for one line: it removes escape sequences and replaces
// control characters and characters that reorder text.
func plain(s string) string {
	s = ansi.Strip(strings.ToValidUTF8(s, "?"))
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case hostile(r):
			return '?'
		}
		return r
	}, s)
}

// hostile reports whether a character could move the cursor, change other parts of the
// screen, or disguise the text.
func hostile(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// plainLines is plain for the lines of a log. Tabs become spaces. Text that would
// overwrite a line goes to the next one instead.
func plainLines(s string) []string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = plain(strings.ReplaceAll(lines[i], "\t", "    "))
	}
	return lines
}

// width is the number of cells that a text takes, not counting styles.
func width(s string) int { return ansi.StringWidth(s) }

// cut shortens a text to n cells.
func cut(s string, n int) string {
	if n <= 0 {
		return ""
	}
	return ansi.Truncate(s, n, "…")
}

// fit makes a text exactly n cells wide.
func fit(s string, n int) string {
	s = cut(s, n)
	return s + strings.Repeat(" ", max(0, n-width(s)))
}

// ends puts one text at each end of a line of n cells. If both do not fit, it cuts the
// left one.
func ends(left, right string, n int) string {
	if width(right) >= n {
		return fit(left, n)
	}
	return fit(left, n-width(right)) + right
}

// wrap breaks a text into lines of at most n cells.
func wrap(s string, n int) []string {
	if n < 1 {
		return nil
	}
	return strings.Split(ansi.Wrap(s, n, ""), "\n")
}

// ago formats a duration in its one or two largest units, in short form.
func ago(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// short is the short form of an ID: its last characters.
func short(id string) string {
	const shown = 4
	rest, ours := strings.CutPrefix(id, signalbox.IDPrefix)
	if !ours || len(rest) <= 2*shown {
		return plain(id)
	}
	return "…" + plain(rest[len(rest)-shown:])
}

// joined joins the parts that are not empty.
func joined(sep string, parts ...string) string {
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return strings.Join(said, sep)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// seconds formats a duration in seconds from the API.
func seconds(s int64) string { return ago(time.Duration(s) * time.Second) }

// styles are the colours of the view. No information is in a colour alone: a word or a
// sign beside it says the same.
type styles struct {
	bold, dim, good, busy, warn, bad, pick lipgloss.Style
}

// newStyles returns colours that are readable on a dark or a light background.
func newStyles(dark bool) styles {
	pick := lipgloss.LightDark(dark)
	colour := func(light, dark string) lipgloss.Style {
		return lipgloss.NewStyle().Foreground(pick(lipgloss.Color(light), lipgloss.Color(dark)))
	}
	return styles{
		bold: lipgloss.NewStyle().Bold(true),
		dim:  colour("#5f6670", "#9aa2ad"),
		good: colour("#1a7f37", "#56d364"),
		busy: colour("#1f5fbf", "#79b8ff"),
		warn: colour("#8a5a00", "#e3b341"),
		bad:  colour("#b3261e", "#ff8a80"),
		pick: lipgloss.NewStyle().Reverse(true),
	}
}

// look is the appearance of a state or face: a sign and its colour beside the word.
type look struct {
	sign  string
	style lipgloss.Style
}

func (s *styles) face(face string) look {
	switch face {
	case "idle":
		return look{"○", s.good}
	case "running":
		return look{"●", s.busy}
	case "waiting for capacity", "waiting for account":
		return look{"◐", s.warn}
	case "cancelling", "withheld":
		return look{"◌", s.warn}
	case "paused", "draining":
		return look{"‖", s.warn}
	case "stuck":
		return look{"▲", s.bad}
	case "down", "closed":
		return look{"✗", s.bad}
	}
	return look{"·", s.dim}
}

func (s *styles) state(state string) look {
	switch state {
	case "pending":
		return look{"○", s.dim}
	case "parked":
		return look{"◐", s.warn}
	case "dispatching":
		return look{"◌", s.busy}
	case "working":
		return look{"●", s.busy}
	case "cancelling":
		return look{"◌", s.warn}
	case "completed":
		return look{"✓", s.good}
	case "failed", "timeout":
		return look{"✗", s.bad}
	case "cancelled":
		return look{"–", s.warn}
	}
	return look{"·", s.dim}
}
