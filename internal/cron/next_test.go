package cron_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/cron"
)

func parse(t testing.TB, text string) cron.Expr {
	t.Helper()
	e, err := cron.Parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return e
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := cron.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// clockForm is the layout of instants in the tables: local time with its offset, which
// distinguishes the passes of a repeated hour.
const clockForm = "2006-01-02 15:04 -0700"

func at(t testing.TB, text string) time.Time {
	t.Helper()
	v, err := time.Parse(clockForm, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDaylightSaving(t *testing.T) {
	for _, c := range []struct {
		what, expr, zone, after string
		want                    []string
	}{
		{"a time in the missing hour comes at the jump, once", "30 2 * * *", "Europe/Berlin", "2026-03-28 12:00 +0100",
			[]string{"2026-03-29 03:00 +0200", "2026-03-30 02:30 +0200"}},
		{"several times in the missing hour come once", "*/15 2 * * *", "Europe/Berlin", "2026-03-28 12:00 +0100",
			[]string{"2026-03-29 03:00 +0200", "2026-03-30 02:00 +0200"}},
		{"and once with one that is at the jump itself", "30 2-3 * * *", "Europe/Berlin", "2026-03-28 12:00 +0100",
			[]string{"2026-03-29 03:00 +0200", "2026-03-29 03:30 +0200", "2026-03-30 02:30 +0200"}},
		{"also where both are one instant", "0 2,3 * * *", "Europe/Berlin", "2026-03-28 12:00 +0100",
			[]string{"2026-03-29 03:00 +0200", "2026-03-30 02:00 +0200"}},
		{"asked in the very second before the jump", "30 2 * * *", "Europe/Berlin", "2026-03-29 01:59 +0100",
			[]string{"2026-03-29 03:00 +0200"}},
		{"asked at the jump itself", "30 2 * * *", "Europe/Berlin", "2026-03-29 03:00 +0200",
			[]string{"2026-03-30 02:30 +0200"}},
		{"a time in the repeated hour comes the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24 12:00 +0200",
			[]string{"2026-10-25 02:30 +0200", "2026-10-26 02:30 +0100"}},
		{"asked between the two", "30 2 * * *", "Europe/Berlin", "2026-10-25 02:10 +0100",
			[]string{"2026-10-26 02:30 +0100"}},
		{"the end of the repeated hour is no repetition", "0 3 * * *", "Europe/Berlin", "2026-10-24 12:00 +0200",
			[]string{"2026-10-25 03:00 +0100"}},
		{"an interval has neither gap nor bunch", "30 * * * *", "Europe/Berlin", "2026-03-29 00:45 +0100",
			[]string{"2026-03-29 01:30 +0100", "2026-03-29 03:30 +0200", "2026-03-29 04:30 +0200"}},
		{"an interval fires in both passes", "30 * * * *", "Europe/Berlin", "2026-10-25 01:45 +0200",
			[]string{"2026-10-25 02:30 +0200", "2026-10-25 02:30 +0100", "2026-10-25 03:30 +0100"}},
		{"so does every minute", "*/20 * * * *", "Europe/Berlin", "2026-10-25 02:30 +0200",
			[]string{"2026-10-25 02:40 +0200", "2026-10-25 02:00 +0100", "2026-10-25 02:20 +0100"}},
		{"New York, spring", "15 2 * * *", "America/New_York", "2026-03-07 12:00 -0500",
			[]string{"2026-03-08 03:00 -0400", "2026-03-09 02:15 -0400"}},
		{"New York, autumn", "15 1 * * *", "America/New_York", "2026-10-31 12:00 -0400",
			[]string{"2026-11-01 01:15 -0400", "2026-11-02 01:15 -0500"}},
		{"every two hours is no interval: its hours are times of day", "0 */2 * * *", "America/New_York", "2026-03-08 00:30 -0500",
			[]string{"2026-03-08 03:00 -0400", "2026-03-08 04:00 -0400"}},
		{"half an hour is missing", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00 +1030",
			[]string{"2026-10-04 02:30 +1100", "2026-10-05 02:15 +1100"}},
		{"half an hour is not missing", "45 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00 +1030",
			[]string{"2026-10-04 02:45 +1100"}},
		{"half an hour is repeated", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00 +1100",
			[]string{"2026-04-05 01:45 +1100", "2026-04-06 01:45 +1030"}},
		{"half an hour is repeated for an interval", "45 * * * *", "Australia/Lord_Howe", "2026-04-05 00:50 +1100",
			[]string{"2026-04-05 01:45 +1100", "2026-04-05 01:45 +1030", "2026-04-05 02:45 +1030"}},
		{"a whole day is missing", "0 9 * * *", "Pacific/Apia", "2011-12-29 08:00 -1000",
			[]string{"2011-12-29 09:00 -1000", "2011-12-31 00:00 +1400", "2011-12-31 09:00 +1400"}},
		{"a day of the week that is missing", "0 9 * * 5", "Pacific/Apia", "2011-12-29 08:00 -1000",
			[]string{"2011-12-31 00:00 +1400", "2012-01-06 09:00 +1400"}},
		{"a date that is missing", "0 9 30 12 *", "Pacific/Apia", "2011-12-29 08:00 -1000",
			[]string{"2011-12-31 00:00 +1400", "2012-12-30 09:00 +1400"}},
		{"a missing day has no intervals", "0 * * * *", "Pacific/Apia", "2011-12-29 22:30 -1000",
			[]string{"2011-12-29 23:00 -1000", "2011-12-31 00:00 +1400", "2011-12-31 01:00 +1400"}},
		{"midnight is missing", "0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00 -0300",
			[]string{"2018-11-04 01:00 -0200", "2018-11-05 00:00 -0200"}},
		{"the hour before midnight is repeated", "30 23 * * *", "America/Sao_Paulo", "2018-02-17 12:00 -0200",
			[]string{"2018-02-17 23:30 -0200", "2018-02-18 23:30 -0300"}},
		{"and midnight after it is not", "0 0 * * *", "America/Sao_Paulo", "2018-02-17 12:00 -0200",
			[]string{"2018-02-18 00:00 -0300", "2018-02-19 00:00 -0300"}},
		{"two hours are missing", "30 1,2 * * *", "Antarctica/Troll", "2026-03-28 12:00 +0000",
			[]string{"2026-03-29 03:00 +0200", "2026-03-30 01:30 +0200"}},
		{"the clock is put back for good", "0 0 * * *", "Asia/Pyongyang", "2015-08-14 12:00 +0900",
			[]string{"2015-08-15 00:00 +0830", "2015-08-16 00:00 +0830"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			next, z := at(t, c.after), zone(t, c.zone)
			for _, want := range c.want {
				next = parse(t, c.expr).Next(next, z)
				if got := next.In(z).Format(clockForm); got != want {
					t.Fatalf("%q in %s after %s: %s, want %s", c.expr, c.zone, c.after, got, want)
				}
				if next.Location() != time.UTC {
					t.Error("an instant is not in UTC")
				}
			}
		})
	}
}

func TestNext(t *testing.T) {
	for _, c := range []struct{ expr, after, want string }{
		{"* * * * *", "2026-01-01 00:00 +0000", "2026-01-01 00:01 +0000"},
		{"0 0 29 2 *", "2026-01-01 00:00 +0000", "2028-02-29 00:00 +0000"},
		{"0 0 29 2 *", "2096-03-01 00:00 +0000", "2104-02-29 00:00 +0000"}, // 2100 has none
		{"0 0 29 2 *", "1999-03-01 00:00 +0000", "2000-02-29 00:00 +0000"},
		{"0 0 29 2 */7", "2088-03-01 00:00 +0000", "2128-02-29 00:00 +0000"}, // a Sunday: with a * both fields must match
		{"* * 29 2 *", "2028-02-29 23:59 +0000", "2032-02-29 00:00 +0000"},
		{"0 0 31 * *", "2026-01-31 00:00 +0000", "2026-03-31 00:00 +0000"},
		{"0 0 30 2,4 *", "2026-01-31 00:00 +0000", "2026-04-30 00:00 +0000"},
		{"0 12 13 * 5", "2026-02-01 00:00 +0000", "2026-02-06 12:00 +0000"}, // either field matches
		{"0 12 13 * 5", "2026-02-27 12:00 +0000", "2026-03-06 12:00 +0000"},
		{"0 12 31 2 5", "2026-02-01 00:00 +0000", "2026-02-06 12:00 +0000"}, // so the Fridays of February
		{"0 12 */2 * 5", "2026-02-01 00:00 +0000", "2026-02-13 12:00 +0000"},
		{"0 0 * * 7", "2026-01-01 00:00 +0000", "2026-01-04 00:00 +0000"},
		{"0 0 * * SAT-SUN", "2026-01-03 00:00 +0000", "2026-01-04 00:00 +0000"},
		{"0 0 * * Sun-Tue", "2026-01-06 00:00 +0000", "2026-01-11 00:00 +0000"},
		{"0 0 * * 5-7", "2026-01-03 00:00 +0000", "2026-01-04 00:00 +0000"},
		{"0 0 * feb,dec *", "2026-02-28 00:00 +0000", "2026-12-01 00:00 +0000"},
		{"59 23 31 12 *", "2026-12-31 23:59 +0000", "2027-12-31 23:59 +0000"},
		{"5-10/5 9 * * *", "2026-01-01 09:05 +0000", "2026-01-01 09:10 +0000"},
		{"@hourly", "2026-01-01 09:05 +0000", "2026-01-01 10:00 +0000"},
		{"@daily", "2026-01-01 09:05 +0000", "2026-01-02 00:00 +0000"},
		{"@midnight", "2026-01-01 09:05 +0000", "2026-01-02 00:00 +0000"},
		{"@weekly", "2026-01-01 09:05 +0000", "2026-01-04 00:00 +0000"},
		{"@monthly", "2026-01-01 09:05 +0000", "2026-02-01 00:00 +0000"},
		{"@yearly", "2026-01-01 09:05 +0000", "2027-01-01 00:00 +0000"},
		{"@annually", "2026-01-01 09:05 +0000", "2027-01-01 00:00 +0000"},
	} {
		if got := parse(t, c.expr).Next(at(t, c.after), time.UTC).Format(clockForm); got != c.want {
			t.Errorf("%q after %s: %s, want %s", c.expr, c.after, got, c.want)
		}
	}
}

func TestNextWithFractionalSeconds(t *testing.T) {
	start := at(t, "2026-01-01 00:00 +0000")
	e := parse(t, "* * * * *")
	if got := e.Next(start.Add(-time.Nanosecond), time.UTC); !got.Equal(start) {
		t.Errorf("a nanosecond before: %s", got)
	}
	if got := e.Next(start.Add(time.Nanosecond), time.UTC); !got.Equal(start.Add(time.Minute)) {
		t.Errorf("a nanosecond after: %s", got)
	}
}

func TestNextOutsideOfYearRange(t *testing.T) {
	for name, got := range map[string]time.Time{
		"the zero expression": (cron.Expr{}).Next(time.Unix(0, 0), time.UTC),
		"the far future":      parse(t, "* * * * *").Next(time.Unix(1<<50, 0), time.UTC),
		"the far past":        parse(t, "* * * * *").Next(time.Unix(-1<<50, 0), time.UTC),
	} {
		if !got.IsZero() {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := (cron.Expr{}).Describe(); got != "never" {
		t.Errorf("words of the zero expression: %q", got)
	}
}

// hostile expressions need a long search.
var hostile = []string{
	"0 0 29 2 */7", "* * 29 2 */7", "59 23 31 12 *", "* * * * *", "0 0 30 2 1", "59 * 31 12 *", "* * 29 2 *",
	"0-59/1,0-59/2,0-59/3,0-59/4,0-59/5 0-23,0-22,0-21,0-20 1-31/1,1-31/2,1-31/3 1-12,2-12,3-12 0-6",
}

// TestHostileExpressionsAreCheap allows a thousand times the measured cost, for busy machines:
// it detects a linear search.
func TestHostileExpressionsAreCheap(t *testing.T) {
	for _, text := range hostile {
		e := parse(t, text)
		for _, name := range []string{"UTC", "Europe/Berlin", "Africa/Casablanca", "Pacific/Apia"} {
			z := zone(t, name)
			from := at(t, "2011-12-29 12:00 +0000")
			if n := testing.AllocsPerRun(10, func() { from = e.Next(from, z) }); n > 100 {
				t.Errorf("%q in %s: %v allocations", text, name, n)
			}
			begun := time.Now()
			for range 20 {
				e.Next(from, z)
			}
			if took := time.Since(begun) / 20; took > 20*time.Millisecond {
				t.Errorf("%q in %s took %s", text, name, took)
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, text := range []string{"* * * * *", "30 9 * * 1-5", "0 0 29 2 */7", "* * 29 2 */7"} {
		b.Run(text, func(b *testing.B) {
			e, z, from := parse(b, text), zone(b, "Europe/Berlin"), at(b, "2044-03-01 00:00 +0000")
			for b.Loop() {
				e.Next(from, z)
			}
		})
	}
}
