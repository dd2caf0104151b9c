package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// maxTimes is how many times of day are listed individually.
const maxTimes = 6

// Describe describes the expression in English, without the zone. It is derived from the sets:
// equivalent expressions have equal descriptions.
func (e Expr) Describe() string {
	if e.minutes == 0 {
		return "never"
	}
	times, at := e.timesText()
	days := e.daysText()
	switch {
	case days != "":
		return times + " " + days
	case at && e.everyMonth():
		return "every day " + times
	case at:
		return "every day in " + list(e.monthNames()) + " " + times
	case e.everyMonth():
		return times
	}
	return times + " in " + list(e.monthNames())
}

// timesText describes the times of day; at: they are listed individually.
func (e *Expr) timesText() (words string, at bool) {
	minutes, hours := values(e.minutes), values(e.hours)
	regular := evenly(minutes, 60)
	switch {
	case len(minutes)*len(hours) <= maxTimes:
		return "at " + list(clockTimes(hours, minutes)), true
	case e.interval() && regular:
		return every(minutes, 60, "minute"), false
	case e.interval() && len(minutes) == 1:
		return "every hour" + atMinute(minutes[0]), false
	case e.interval():
		return "every hour at minutes " + list(runs(minutes)), false
	}
	switch {
	case len(minutes) == 1 && evenly(hours, 24):
		return every(hours, 24, "hour") + atMinute(minutes[0]), false
	case (regular || len(minutes) == 1) && contiguous(hours):
		step := "every hour"
		if regular {
			step = every(minutes, 60, "minute")
		}
		return step + " from " + clock(hours[0], minutes[0]) + " to " + clock(hours[len(hours)-1], minutes[len(minutes)-1]), false
	case regular:
		return every(minutes, 60, "minute") + " in the hours " + list(runs(hours)), false
	}
	return "at minutes " + list(runs(minutes)) + " of the hours " + list(runs(hours)), false
}

// evenly reports whether values divide a field in equal steps from 0.
func evenly(v []int, size int) bool {
	if len(v) < 2 || size%len(v) != 0 {
		return false
	}
	for i := range v {
		if v[i] != i*size/len(v) {
			return false
		}
	}
	return true
}

// every describes the step of evenly spaced values.
func every(v []int, size int, unit string) string {
	if n := size / len(v); n > 1 {
		return fmt.Sprintf("every %d %ss", n, unit)
	}
	return "every " + unit
}

func atMinute(m int) string {
	if m == 0 {
		return ""
	}
	return " at minute " + strconv.Itoa(m)
}

// contiguous reports whether values have no gap.
func contiguous(v []int) bool { return v[len(v)-1]-v[0] == len(v)-1 }

func clock(hour, minute int) string { return fmt.Sprintf("%02d:%02d", hour, minute) }

func clockTimes(hours, minutes []int) []string {
	var times []string
	for _, h := range hours {
		for _, m := range minutes {
			times = append(times, clock(h, m))
		}
	}
	return times
}

// daysText describes the days, with their months; "" for every day of the months.
func (e *Expr) daysText() string {
	days, named := e.days != firstDays(31), e.week != 1<<7-1
	either := !e.anyDay && !e.anyWeek
	if either && (!days || !named) {
		return "" // one of the two matches every day
	}
	switch {
	case days && named && either:
		return "on " + e.datesText() + " and on every " + e.weekdayNames("and") + e.inMonths()
	case days && named:
		return "on " + e.datesText() + e.ofMonths() + ", if that is a " + e.weekdayNames("or")
	case days && bits.OnesCount64(e.months) == 1:
		return "on " + list(runs(values(e.days))) + " " + e.monthNames()[0]
	case days:
		return "on " + e.datesText() + e.ofMonths()
	case named:
		return "on " + e.weekdaysText() + e.inMonths()
	}
	return ""
}

func (e *Expr) datesText() string {
	v := values(e.days)
	if len(v) == 1 {
		return "day " + strconv.Itoa(v[0])
	}
	return "days " + list(runs(v))
}

// weekdaysText names days of the week in the plural.
func (e *Expr) weekdaysText() string {
	const workdays, weekend = 0b0111110, 0b1000001
	switch e.week {
	case workdays:
		return "weekdays"
	case weekend:
		return "Saturdays and Sundays"
	}
	var names []string
	for _, d := range values(e.week) {
		names = append(names, time.Weekday(d).String()+"s")
	}
	return list(names)
}

// weekdayNames names days of the week in the singular.
func (e *Expr) weekdayNames(word string) string {
	var names []string
	for _, d := range values(e.week) {
		names = append(names, time.Weekday(d).String())
	}
	return join(names, word)
}

func (e *Expr) everyMonth() bool { return e.months == firstDays(12) }

func (e *Expr) monthNames() []string {
	var names []string
	for _, m := range values(e.months) {
		names = append(names, time.Month(m).String())
	}
	return names
}

func (e *Expr) inMonths() string {
	if e.everyMonth() {
		return ""
	}
	return " in " + list(e.monthNames())
}

func (e *Expr) ofMonths() string {
	if e.everyMonth() {
		return " of the month"
	}
	return " of " + list(e.monthNames())
}

// values lists a set.
func values(set uint64) []int {
	var v []int
	for ; set != 0; set &= set - 1 {
		v = append(v, bits.TrailingZeros64(set))
	}
	return v
}

// runs describes values, consecutive ones as ranges.
func runs(v []int) []string {
	if step, ok := steps(v); ok {
		return []string{fmt.Sprintf("%d to %d in steps of %d", v[0], v[len(v)-1], step)}
	}
	var words []string
	for i := 0; i < len(v); {
		last := i
		for last+1 < len(v) && v[last+1] == v[last]+1 {
			last++
		}
		switch {
		case last-i >= 2:
			words = append(words, fmt.Sprintf("%d to %d", v[i], v[last]))
		case last > i:
			words = append(words, strconv.Itoa(v[i]), strconv.Itoa(v[last]))
		default:
			words = append(words, strconv.Itoa(v[i]))
		}
		i = last + 1
	}
	return words
}

// steps reports whether at least five values are evenly spaced, by more than 1.
func steps(v []int) (step int, ok bool) {
	if len(v) < 5 || v[1]-v[0] == 1 {
		return 0, false
	}
	step = v[1] - v[0]
	for i := range v[1:] {
		if v[i+1]-v[i] != step {
			return 0, false
		}
	}
	return step, true
}

func list(words []string) string { return join(words, "and") }

// join joins words with commas, and conj before the last.
func join(words []string, conj string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + conj + " " + words[len(words)-1]
}
