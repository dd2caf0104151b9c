package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// note writes a line for people to standard error.
func (a *app) note(format string, args ...any) {
	a.line.note(clean(fmt.Sprintf(format, args...)))
}

// say writes a line of the result.
func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintf(a.io.Out, format+"\n", args...)
	return err
}

// print writes a result as JSON where that is wanted, else as f does.
func (a *app) print(v any, f func() error) error {
	if a.json {
		return writeJSON(a.io.Out, v)
	}
	return f()
}

// clean makes a foreign text safe for a line on a terminal: no control
// character, none that reorders text.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if hostile(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// cleanLines is clean for a text of several lines.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = clean(strings.ReplaceAll(lines[i], "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// hostile reports whether a character could move the cursor, change what
// stands elsewhere, or show a text other than it is.
func hostile(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// Colours, by their SGR numbers.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint colours a text for standard output, where colours are wanted.
func (a *app) paint(sgr, text string) string {
	if sgr == "" || !a.colours() {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

func (a *app) colours() bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	none, _ := a.io.Env("NO_COLOR")
	return a.io.OutTTY && none == "" && !a.dumb()
}

// dumb reports that the terminal cannot move its cursor.
func (a *app) dumb() bool {
	kind, ok := a.io.Env("TERM")
	return ok && kind == "dumb"
}

func stateColour(state string) string {
	switch state {
	case "completed":
		return green
	case "failed", "timeout":
		return red
	case "cancelled", "cancelling":
		return yellow
	case "working", "dispatching":
		return bold
	}
	return ""
}

func (a *app) state(state string) string { return a.paint(stateColour(state), clean(state)) }

// ago is a length of time as people say it, in its one or two largest units.
func ago(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60), " 0 min")
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// clock is a moment as lists show it.
func (a *app) clock(t time.Time) string {
	return t.In(a.io.Now().Location()).Format("2006-01-02 15:04:05")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
