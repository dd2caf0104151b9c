package cron

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // a machine without zones must not refuse, or worse move, what another accepted
)

// field is one of the five.
type field struct {
	name   string
	lo, hi int
	names  []string // of the values from lo on
}

var fields = [5]field{
	{name: "minute", lo: 0, hi: 59},
	{name: "hour", lo: 0, hi: 23},
	{name: "day of month", lo: 1, hi: 31},
	{name: "month", lo: 1, hi: 12, names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{name: "day of week", lo: 0, hi: 6, names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
}

// sunday is the second number of Sunday, which lets a range end with it.
const sunday = 7

func (f *field) week() bool { return f.hi == 6 }

// top is the highest number that may be written.
func (f *field) top() int {
	if f.week() {
		return sunday
	}
	return f.hi
}

// parse reads a field: entries with commas between them.
func (f *field) parse(text string) (uint64, error) {
	var set uint64
	for entry := range strings.SplitSeq(text, ",") {
		part, err := f.entry(entry, text)
		if err != nil {
			return 0, err
		}
		set |= part
	}
	return set, nil
}

// entry reads a value, a range or *, with or without a step.
func (f *field) entry(entry, all string) (uint64, error) {
	if entry == "" {
		return 0, refuse(f.name, "%s: %s has an empty entry: write values with one comma between them", f.name, clip(all))
	}
	span, by, stepped := strings.Cut(entry, "/")
	first, last, ranged := strings.Cut(span, "-")
	lo, hi, err := f.lo, f.hi, error(nil)
	if span != "*" {
		if lo, hi, err = f.span(first, last, ranged); err != nil {
			return 0, err
		}
	}
	step := 1
	if stepped {
		if span != "*" && !ranged {
			return 0, refuse(f.name, "%s: %s has a step but no range: write %d-%d/%s", f.name, clip(entry), lo, f.hi, by)
		}
		if step, err = f.step(by, entry); err != nil {
			return 0, err
		}
	}
	var set uint64
	for n := lo; n <= hi; n += step {
		if f.week() && n == sunday {
			set |= 1
			continue
		}
		set |= 1 << n
	}
	return set, nil
}

// span reads a value or a range.
func (f *field) span(first, last string, ranged bool) (lo, hi int, err error) {
	if lo, err = f.value(first); err != nil || !ranged {
		return lo, lo, err
	}
	if hi, err = f.value(last); err != nil {
		return 0, 0, err
	}
	if f.week() && strings.EqualFold(last, "SUN") && lo > 0 {
		hi = sunday // a week may end with it: FRI-SUN
	}
	if lo <= hi {
		return lo, hi, nil
	}
	return 0, 0, refuse(f.name, "%s: the range %s ends before it begins: write %s", f.name, clip(first+"-"+last), f.unwrapped(lo, hi))
}

// unwrapped is what to write for a range that goes round.
func (f *field) unwrapped(lo, hi int) string {
	run := func(a, b int) string {
		if a == b {
			return strconv.Itoa(a)
		}
		return strconv.Itoa(a) + "-" + strconv.Itoa(b)
	}
	switch {
	case f.week() && lo == sunday:
		return run(0, hi)
	case f.week() && hi == 0:
		return run(lo, sunday)
	}
	return run(lo, f.hi) + "," + run(f.lo, hi)
}

func (f *field) step(by, entry string) (int, error) {
	n, ok := number(by)
	most := f.hi - f.lo + 1
	switch {
	case !ok:
		return 0, refuse(f.name, "%s: the step of %s is no number: write */2 for every second value", f.name, clip(entry))
	case n == 0:
		return 0, refuse(f.name, "%s: the step of %s is 0, which comes to no end: write a step of 1 to %d", f.name, clip(entry), most)
	case n > most:
		return 0, refuse(f.name, "%s: the step of %s is larger than the field, so it would only be due at its beginning: write %d for that, or a step of 1 to %d", f.name, clip(entry), f.lo, most)
	}
	return n, nil
}

// value reads a number or a name.
func (f *field) value(text string) (int, error) {
	if n, ok := number(text); ok {
		if n < f.lo || n > f.top() {
			return 0, refuse(f.name, "%s must be %d to %d, not %s", f.name, f.lo, f.top(), clip(text))
		}
		return n, nil
	}
	if i := slices.Index(f.names, strings.ToUpper(text)); i >= 0 {
		return f.lo + i, nil
	}
	return 0, f.unknown(text)
}

// number reads up to four digits; more are no value of any field.
func number(text string) (int, bool) {
	if text == "" || len(text) > 4 || strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// unknown says what to write in place of what other crons know.
func (f *field) unknown(text string) error {
	upper := strings.ToUpper(text)
	switch {
	case text == "":
		return refuse(f.name, "%s: a value is missing: write a number, a range such as %d-%d, or *", f.name, f.lo, f.hi)
	case strings.Contains(text, "?"):
		return refuse(f.name, "%s: ? is not known: write *", f.name)
	case strings.Contains(text, "#"):
		return refuse(f.name, "%s: # (the n-th day of that name in the month) is not known: write the day alone, and let the task see which of the month it is", f.name)
	case strings.Contains(text, "*"):
		return refuse(f.name, "%s: %s: * stands alone, or with a step such as */2", f.name, clip(text))
	case upper == "W" || letterAfterNumber(upper, 'W'):
		return refuse(f.name, "%s: W (the nearest weekday) is not known: write days of the month or days of the week", f.name)
	case upper == "L" || upper == "LW" || letterAfterNumber(upper, 'L'):
		return refuse(f.name, "%s: L (the last) is not known: write 28 for a day that every month has", f.name)
	case f.names != nil:
		return refuse(f.name, "%s: %s is not known: write a number of %d to %d or a name such as %s", f.name, clip(text), f.lo, f.top(), f.names[1])
	}
	return refuse(f.name, "%s: %s is not known: write a number of %d to %d, a range such as %d-%d, or *", f.name, clip(text), f.lo, f.top(), f.lo, f.hi)
}

func letterAfterNumber(text string, letter byte) bool {
	_, ok := number(text[:len(text)-1])
	return ok && text[len(text)-1] == letter
}

// zoneForm keeps the name away from the file system.
var zoneForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)

// zones are those found before: finding one reads a file.
var zones sync.Map // of *time.Location by name

// Zone finds a time zone by its IANA name; "" is UTC. What depends on the
// machine (Local, localtime) or counts leap seconds (right/...) is refused.
// Errors are *Error.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	if len(name) <= 64 && zoneForm.MatchString(name) && !ofMachine(name) {
		if z, err := time.LoadLocation(name); err == nil {
			zones.Store(name, z)
			return z, nil
		}
	}
	return nil, refuse("timezone", "%s is no time zone: write an IANA name such as Europe/Berlin, America/New_York or UTC", clip(name))
}

func ofMachine(name string) bool {
	folder, _, _ := strings.Cut(name, "/")
	switch strings.ToLower(folder) {
	case "local", "localtime", "posixrules", "posix", "right", "factory":
		return true
	}
	return false
}
