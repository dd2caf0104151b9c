// Package cron computes when a job is due: five fields or an @form, in a time zone. It is pure:
// the time is a parameter.
//
// Daylight saving: an expression whose hour field has all 24 hours is an interval: it is due at
// each real instant that matches, so twice in a repeated hour and never in a skipped one. Any
// other is a time of day: if the clock skips it, it is due once, at the jump; if the clock
// shows it twice, it is due the first time.
package cron

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"
)

// MaxBytes is the maximum length of an expression.
const MaxBytes = 256

// Expr is a parsed expression. The zero Expr is never due. Its sets are bit sets: bit n stands
// for the value n.
type Expr struct {
	text    string
	minutes uint64 // 0 to 59
	hours   uint64 // 0 to 23
	days    uint64 // 1 to 31
	months  uint64 // 1 to 12
	week    uint64 // 0, Sunday, to 6
	// The field has a *: it does not select days by itself. If neither has one, a day that
	// matches either field matches; else both must.
	anyDay, anyWeek bool
}

// shortForms includes the aliases @midnight and @annually.
var shortForms = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

// Error describes what is wrong with an expression, and what to write instead.
type Error struct {
	Field string // minute, hour, day of month, month, day of week, timezone; "" is the whole
	Text  string
}

func (e *Error) Error() string { return e.Text }

func errorf(field, format string, args ...any) *Error {
	return &Error{Field: field, Text: fmt.Sprintf(format, args...)}
}

const fiveFields = "write five fields, minute, hour, day of month, month and day of week, such as 30 9 * * 1-5, or a short form such as @daily"

// Parse reads an expression. Errors are *Error.
func Parse(text string) (Expr, error) {
	if len(text) > MaxBytes {
		return Expr{}, errorf("", "the expression has %d bytes; at most %d are allowed", len(text), MaxBytes)
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return Expr{}, errorf("", "the expression is empty: %s", fiveFields)
	}
	e := Expr{text: strings.Join(words, " ")}
	if err := refuseZone(words[0]); err != nil {
		return Expr{}, err
	}
	if strings.HasPrefix(words[0], "@") {
		long, err := expandShortForm(words)
		if err != nil {
			return Expr{}, err
		}
		words = strings.Fields(long)
	}
	if err := e.parseFields(words); err != nil {
		return Expr{}, err
	}
	return e, nil
}

// refuseZone refuses the time zone prefix of some crons: the zone is set elsewhere.
func refuseZone(word string) error {
	name, zone, ok := strings.Cut(word, "=")
	if name = strings.ToUpper(name); !ok || (name != "TZ" && name != "CRON_TZ") {
		return nil
	}
	zone = cmp.Or(zone, "Europe/Berlin")
	return errorf("", "%s= is not part of an expression: leave it out and set timezone to %s", name, clip(zone))
}

// expandShortForm returns the five fields of a short form.
func expandShortForm(words []string) (string, error) {
	form := strings.ToLower(words[0])
	switch long, ok := shortForms[form]; {
	case form == "@every":
		return "", errorf("", "@every is not known, for it says no instant: write */15 * * * * for every 15 minutes, 0 */2 * * * for every 2 hours")
	case form == "@reboot":
		return "", errorf("", "@reboot is not known, for it is no instant: submit the task from what starts the machine")
	case !ok:
		return "", errorf("", "%s is not known: write @hourly, @daily, @weekly, @monthly or @yearly, or five fields", clip(words[0]))
	case len(words) > 1:
		return "", errorf("", "%s stands alone: leave out what follows, or write five fields", form)
	default:
		return long, nil
	}
}

func (e *Expr) parseFields(words []string) error {
	switch {
	case len(words) == 6 || len(words) == 7:
		return errorf("", "the expression has %d fields, and seconds and years are not known: %s", len(words), fiveFields)
	case len(words) != 5:
		fields := "fields"
		if len(words) == 1 {
			fields = "field"
		}
		return errorf("", "the expression has %d %s instead of five: %s", len(words), fields, fiveFields)
	}
	sets := [5]*uint64{&e.minutes, &e.hours, &e.days, &e.months, &e.week}
	for i, word := range words {
		set, err := fields[i].parse(word)
		if err != nil {
			return err
		}
		*sets[i] = set
	}
	e.anyDay, e.anyWeek = strings.Contains(words[2], "*"), strings.Contains(words[4], "*")
	if e.days&e.possibleDays() == 0 && (e.anyDay || e.anyWeek) {
		last := 29
		if e.months != 1<<2 {
			last = 30
		}
		return errorf("day of month", "the expression is never due, for none of its months has such a day: the last that any of them has is the %dth", last)
	}
	return nil
}

// possibleDays are the days that at least one of the months has in some year.
func (e *Expr) possibleDays() uint64 {
	var days uint64
	for m := e.months; m != 0; m &= m - 1 {
		days |= firstDays(longest[bits.TrailingZeros64(m)])
	}
	return days
}

// interval reports whether the expression is due at real instants rather than times of day.
func (e *Expr) interval() bool { return e.hours == 1<<24-1 }

// String is the expression as written, with single spaces.
func (e Expr) String() string { return e.text }

// clip quotes input in an error, shortened.
func clip(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	return fmt.Sprintf("%q", s)
}
