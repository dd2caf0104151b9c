package cron

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones must not depend on the machine
)

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

// sunday is the second number of Sunday, which allows a range to end with it.
const sunday = 7

func (f *field) week() bool { return f.hi == 6 }

// highest is the highest number that may be written.
func (f *field) highest() int {
	if f.week() {
		return sunday
	}
	return f.hi
}

// parse parses a field: entries separated by commas.
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

// entry parses a value, a range or *, with or without a step.
func (f *field) entry(entry, all string) (uint64, error) {
	if entry == "" {
		return 0, errorf(f.name, "%s: %s has an empty entry: write values with one comma between them", f.name, clip(all))
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
			return 0, errorf(f.name, "%s: %s has a step but no range: write %d-%d/%s", f.name, clip(entry), lo, f.hi, by)
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

// span parses a value or a range.
func (f *field) span(first, last string, ranged bool) (lo, hi int, err error) {
	if lo, err = f.value(first); err != nil || !ranged {
		return lo, lo, err
	}
	if hi, err = f.value(last); err != nil {
		return 0, 0, err
	}
	if f.week() && strings.EqualFold(last, "SUN") && lo > 0 {
		hi = sunday // a range may end with Sunday: FRI-SUN
	}
	if lo <= hi {
		return lo, hi, nil
	}
	return 0, 0, errorf(f.name, "%s: the range %s ends before it begins: write %s", f.name, clip(first+"-"+last), f.splitRange(lo, hi))
}

// splitRange suggests what to write for a range that wraps around.
func (f *field) splitRange(lo, hi int) string {
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
		return 0, errorf(f.name, "%s: the step of %s is no number: write */2 for every second value", f.name, clip(entry))
	case n == 0:
		return 0, errorf(f.name, "%s: the step of %s is 0, which comes to no end: write a step of 1 to %d", f.name, clip(entry), most)
	case n > most:
		return 0, errorf(f.name, "%s: the step of %s is larger than the field, so it would only be due at its beginning: write %d for that, or a step of 1 to %d", f.name, clip(entry), f.lo, most)
	}
	return n, nil
}

// value parses a number or a name.
func (f *field) value(text string) (int, error) {
	if n, ok := number(text); ok {
		if n < f.lo || n > f.highest() {
			return 0, errorf(f.name, "%s must be %d to %d, not %s", f.name, f.lo, f.highest(), clip(text))
		}
		return n, nil
	}
	if i := slices.Index(f.names, strings.ToUpper(text)); i >= 0 {
		return f.lo + i, nil
	}
	return 0, f.unknownValue(text)
}

// number parses up to four digits; no field has larger values.
func number(text string) (int, bool) {
	if text == "" || len(text) > 4 || strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// unknownValue suggests what to write for syntax of other crons.
func (f *field) unknownValue(text string) error {
	upper := strings.ToUpper(text)
	switch {
	case text == "":
		return errorf(f.name, "%s: a value is missing: write a number, a range such as %d-%d, or *", f.name, f.lo, f.hi)
	case strings.Contains(text, "?"):
		return errorf(f.name, "%s: ? is not known: write *", f.name)
	case strings.Contains(text, "#"):
		return errorf(f.name, "%s: # (the n-th day of that name in the month) is not known: write the day alone, and let the task see which of the month it is", f.name)
	case strings.Contains(text, "*"):
		return errorf(f.name, "%s: %s: * stands alone, or with a step such as */2", f.name, clip(text))
	case upper == "W" || letterAfterNumber(upper, 'W'):
		return errorf(f.name, "%s: W (the nearest weekday) is not known: write days of the month or days of the week", f.name)
	case upper == "L" || upper == "LW" || letterAfterNumber(upper, 'L'):
		return errorf(f.name, "%s: L (the last) is not known: write 28 for a day that every month has", f.name)
	case f.names != nil:
		return errorf(f.name, "%s: %s is not known: write a number of %d to %d or a name such as %s", f.name, clip(text), f.lo, f.highest(), f.names[1])
	}
	return errorf(f.name, "%s: %s is not known: write a number of %d to %d, a range such as %d-%d, or *", f.name, clip(text), f.lo, f.highest(), f.lo, f.hi)
}

func letterAfterNumber(text string, letter byte) bool {
	_, ok := number(text[:len(text)-1])
	return ok && text[len(text)-1] == letter
}

// zonePattern prevents file system access by a zone name.
var zonePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)

// zones caches locations by name: loading one reads a file.
var zones sync.Map // of *time.Location by name

// Zone finds a time zone by its IANA name; "" is UTC. Names that depend on the machine (Local,
// localtime) or count leap seconds (right/...) are refused. Errors are *Error.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	if len(name) <= 64 && zonePattern.MatchString(name) && !machineDependent(name) {
		if z, err := time.LoadLocation(name); err == nil {
			zones.Store(name, z)
			return z, nil
		}
	}
	return nil, errorf("timezone", "%s is no time zone: write an IANA name such as Europe/Berlin, America/New_York or UTC", clip(name))
}

func machineDependent(name string) bool {
	folder, _, _ := strings.Cut(name, "/")
	switch strings.ToLower(folder) {
	case "local", "localtime", "posixrules", "posix", "right", "factory":
		return true
	}
	return false
}
