package cron_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox/internal/cron"
)

// reference computes instants by checking every minute of real time against the clock. It
// shares no code with the package and knows nothing of daylight saving.
type reference struct {
	minutes, hours, days, months, week map[int]bool
	anyDay, anyWeek                    bool
}

func (r *reference) matches(reading time.Time) bool {
	day, week := r.days[reading.Day()], r.week[int(reading.Weekday())]
	fits := day || week
	if r.anyDay || r.anyWeek {
		fits = day && week
	}
	return fits && r.minutes[reading.Minute()] && r.hours[reading.Hour()] && r.months[int(reading.Month())]
}

// due lists the instants after a time, within so many days.
func (r *reference) due(after time.Time, zone *time.Location, days int) []time.Time {
	const before = 3 * 24 * time.Hour // the clock may have shown readings before
	shown := reading(after.Add(-before), zone)
	var due []time.Time
	for t := after.Add(-before).Truncate(time.Minute); t.Before(after.AddDate(0, 0, days)); t = t.Add(time.Minute) {
		now := reading(t, zone)
		hit := len(r.hours) == 24 && r.matches(now)
		for ; shown.Before(now); shown = shown.Add(time.Minute) {
			hit = hit || (len(r.hours) < 24 && r.matches(shown.Add(time.Minute)))
		}
		if hit && t.After(after) {
			due = append(due, t.UTC())
		}
	}
	return due
}

// reading is what the clock shows, as if it were UTC, without its seconds.
func reading(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second).Truncate(time.Minute)
}

// referenceZones are zones with unusual transitions.
var referenceZones = []string{
	"UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "Australia/Lord_Howe",
	"Pacific/Apia", "Pacific/Chatham", "Asia/Kathmandu", "Asia/Tehran", "Asia/Gaza", "Africa/Casablanca", "Antarctica/Troll",
	"America/Caracas", "Asia/Pyongyang", "Africa/Juba", "America/Havana", "Asia/Beirut",
}

// drawField draws a field as text and as a set.
func drawField(t *rapid.T, name string, lo, hi int) (text string, set map[int]bool, star bool) {
	set = map[int]bool{}
	n := rapid.IntRange(1, 3).Draw(t, name+" entries")
	for i := range n {
		entry, from, to, step, isStar := drawEntry(t, name, lo, hi)
		if i > 0 {
			text += ","
		}
		text, star = text+entry, star || isStar
		for v := from; v <= to; v += step {
			set[v] = true
		}
	}
	return text, set, star
}

func drawEntry(t *rapid.T, name string, lo, hi int) (text string, from, to, step int, star bool) {
	from = rapid.IntRange(lo, hi).Draw(t, name+" from")
	to = rapid.IntRange(from, hi).Draw(t, name+" to")
	step = rapid.IntRange(1, min(8, hi-lo+1)).Draw(t, name+" step")
	switch rapid.IntRange(0, 4).Draw(t, name+" sort") {
	case 0:
		return "*", lo, hi, 1, true
	case 1:
		return fmt.Sprintf("*/%d", step), lo, hi, step, true
	case 2:
		return fmt.Sprintf("%02d", from), from, from, 1, false
	case 3:
		return fmt.Sprintf("%d-%d", from, to), from, to, 1, false
	}
	return fmt.Sprintf("%d-%d/%d", from, to, step), from, to, step, false
}

// drawExpression draws an expression as text and as a reference. Most restrict days little, so
// that a search of some days finds instants.
func drawExpression(t *rapid.T) (string, *reference) {
	r := &reference{}
	texts := make([]string, 5)
	all := func(lo, hi int) map[int]bool {
		set := map[int]bool{}
		for v := lo; v <= hi; v++ {
			set[v] = true
		}
		return set
	}
	texts[0], r.minutes, _ = drawField(t, "minute", 0, 59)
	texts[1], r.hours, _ = drawField(t, "hour", 0, 23)
	texts[2], r.days, r.anyDay = "*", all(1, 31), true
	texts[3], r.months = "*", all(1, 12)
	texts[4], r.week, r.anyWeek = "*", all(0, 6), true
	if rapid.IntRange(0, 2).Draw(t, "days restricted") == 0 {
		texts[2], r.days, r.anyDay = drawField(t, "day", 1, 31)
	}
	if rapid.IntRange(0, 4).Draw(t, "months restricted") == 0 {
		texts[3], r.months, _ = drawField(t, "month", 1, 12)
	}
	if rapid.IntRange(0, 2).Draw(t, "week restricted") == 0 {
		texts[4], r.week, r.anyWeek = drawField(t, "week", 0, 6)
	}
	return strings.Join(texts, " "), r
}

// drawMoment draws a time, mostly shortly before a daylight saving transition.
func drawMoment(t *rapid.T, zone *time.Location) time.Time {
	at := time.Date(1996, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.Int64Range(0, 40*365*24*60).Draw(t, "minute")) * time.Minute)
	if _, end := at.In(zone).ZoneBounds(); !end.IsZero() && rapid.IntRange(0, 3).Draw(t, "near a jump") > 0 {
		at = end
	}
	return at.Add(-time.Duration(rapid.Int64Range(-4*3600, 24*3600).Draw(t, "before")) * time.Second)
}

func TestNextMatchesReference(t *testing.T) {
	const days = 3
	rapid.Check(t, func(t *rapid.T) {
		text, ref := drawExpression(t)
		e, err := cron.Parse(text)
		if err != nil {
			if cronErr := new(cron.Error); errors.As(err, &cronErr) && strings.Contains(cronErr.Text, "never due") {
				return
			}
			t.Fatalf("%q: %v", text, err)
		}
		name := rapid.SampledFrom(referenceZones).Draw(t, "zone")
		zone, err := cron.Zone(name)
		if err != nil {
			t.Fatal(err)
		}
		at := drawMoment(t, zone)
		next := at
		for _, want := range ref.due(at, zone, days) {
			if next = e.Next(next, zone); !next.Equal(want) {
				t.Fatalf("%q in %s from %s: %s, want %s", text, name, at.In(zone), next.In(zone), want.In(zone))
			}
		}
		if next = e.Next(next, zone); next.Before(at.AddDate(0, 0, days)) {
			t.Fatalf("%q in %s from %s: also due at %s", text, name, at.In(zone), next.In(zone))
		}
	})
}
