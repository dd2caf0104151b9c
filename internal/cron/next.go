package cron

import (
	"math/bits"
	"time"
)

// searchYears is how many years Next searches. The rarest expression is 29 February on one
// weekday: every 28 years, or 40 across a year such as 2100 without one.
const searchYears = 48

// maxShift exceeds the difference of any two UTC offsets, in seconds.
const maxShift = 32 * 3600

// Next returns the first instant after a time, in UTC; the zero time if there is none.
func (e Expr) Next(after time.Time, zone *time.Location) time.Time {
	if e.minutes == 0 || after.Year() < 1 || after.Year() > 9900 {
		return time.Time{}
	}
	from := after.Unix() + 1
	end := after.AddDate(searchYears, 0, 0).Unix()
	var next int64
	var ok bool
	if e.interval() {
		next, ok = e.nextInstant(from, end, zone)
	} else {
		next, ok = e.nextTimeOfDay(from, end, zone)
	}
	if !ok {
		return time.Time{}
	}
	return time.Unix(next, 0).UTC()
}

// A period is a time span in which a zone has one offset from UTC. A reading is what its clocks
// show, in seconds as if it were UTC.
type period struct {
	start, end int64 // end is the first second after it
	offset     int64
}

const (
	always = int64(1) << 60
	never  = -always
)

func periodAt(t int64, zone *time.Location) period {
	at := time.Unix(t, 0).In(zone)
	_, offset := at.Zone()
	p := period{start: never, end: always, offset: int64(offset)}
	start, end := at.ZoneBounds()
	if !start.IsZero() {
		p.start = start.Unix()
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	return p
}

// nextInstant finds the first second >= from whose reading matches.
func (e *Expr) nextInstant(from, end int64, zone *time.Location) (int64, bool) {
	for from < end {
		p := periodAt(from, zone)
		reading, ok := e.nextReading(from+p.offset, end+maxShift)
		if !ok {
			return 0, false
		}
		if t := reading - p.offset; t < p.end {
			return t, t < end
		}
		// Nothing matches in the rest of the period. Earlier readings than the one found do not
		// match either, unless the clock is set back to before the start of the search.
		if settled := p.end >= from+maxShift; settled {
			from = max(p.end, reading-p.offset-maxShift)
		} else {
			from = p.end
		}
	}
	return 0, false
}

// nextTimeOfDay finds when the clock first shows or skips a matching reading that it had not
// shown or skipped before.
func (e *Expr) nextTimeOfDay(from, end int64, zone *time.Location) (int64, bool) {
	reading, ok := e.nextReading(firstUnseenReading(from, zone), end+maxShift)
	if !ok {
		return 0, false
	}
	at := max(from, reading-maxShift)
	for {
		p := periodAt(at, zone)
		if t := max(p.start, reading-p.offset); t < p.end {
			return t, t < end
		}
		at = p.end
	}
}

// firstUnseenReading returns the lowest reading that no clock had shown or skipped before a
// time.
func firstUnseenReading(from int64, zone *time.Location) int64 {
	p := periodAt(from-1, zone)
	highest := from + p.offset
	for p.start > from-maxShift {
		before := periodAt(p.start-1, zone)
		highest = max(highest, p.start+before.offset)
		p = before
	}
	return highest
}

// nextReading finds the first matching reading >= from.
func (e *Expr) nextReading(from, end int64) (int64, bool) {
	const minute, day = 60, 24 * 3600
	from += mod(-from, minute)
	at := time.Unix(from, 0).UTC()
	if e.matchesDate(at) {
		if t, ok := e.nextTime(at.Hour(), at.Minute()); ok {
			return from - mod(from, day) + t, true
		}
	}
	first, _ := e.nextTime(0, 0)
	date, ok := e.nextDate(at.AddDate(0, 0, 1), end)
	return date + first, ok
}

func mod(n, by int64) int64 { return ((n % by) + by) % by }

// nextTime finds the first time of a day >= hour:minute, in seconds.
func (e *Expr) nextTime(hour, minute int) (int64, bool) {
	m := atLeast(e.minutes, minute)
	if e.hours&(1<<hour) != 0 && m != 0 {
		return int64(hour)*3600 + int64(bits.TrailingZeros64(m))*60, true
	}
	h := atLeast(e.hours, hour+1)
	if h == 0 {
		return 0, false
	}
	return int64(bits.TrailingZeros64(h))*3600 + int64(bits.TrailingZeros64(e.minutes))*60, true
}

// atLeast returns the values of a set that are >= from.
func atLeast(set uint64, from int) uint64 { return set >> from << from }

func (e *Expr) matchesDate(at time.Time) bool {
	return e.months&(1<<at.Month()) != 0 && e.daysOf(at.Year(), at.Month())&(1<<at.Day()) != 0
}

// nextDate finds the first matching date >= that of a reading, and returns the reading of its
// midnight.
func (e *Expr) nextDate(at time.Time, end int64) (int64, bool) {
	year, month, day := at.Date()
	for at.Unix() < end {
		months := atLeast(e.months, int(month))
		if months == 0 {
			year, month, day = year+1, time.January, 1
			at = time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
			continue
		}
		if m := time.Month(bits.TrailingZeros64(months)); m != month {
			month, day = m, 1
		}
		if days := atLeast(e.daysOf(year, month), day); days != 0 {
			return time.Date(year, month, bits.TrailingZeros64(days), 0, 0, 0, 0, time.UTC).Unix(), true
		}
		month, day = month+1, 1 // 13 is found in no set
		at = time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	}
	return 0, false
}

// longest is the maximum length of each month in days.
var longest = [13]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// firstDays is the set of the days 1 to n.
func firstDays(n int) uint64 { return 1<<(n+1) - 2 }

// daysOf returns the matching days of a month.
func (e *Expr) daysOf(year int, month time.Month) uint64 {
	n := longest[month]
	if month == time.February && (year%4 != 0 || (year%100 == 0 && year%400 != 0)) {
		n = 28
	}
	// The week, rotated to start with the first day of the month, five times.
	first := int(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Weekday())
	rotated := e.week>>first | e.week<<(7-first)
	rotated &= 1<<7 - 1
	byWeekday := (rotated | rotated<<7 | rotated<<14 | rotated<<21 | rotated<<28) << 1
	if e.anyDay || e.anyWeek {
		return e.days & byWeekday & firstDays(n)
	}
	return (e.days | byWeekday) & firstDays(n)
}
