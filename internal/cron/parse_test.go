package cron_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/cron"
)

func TestParseErrorsSayWhatToWrite(t *testing.T) {
	for _, c := range []struct{ expr, field, says string }{
		{"", "", "write five fields"},
		{" \t\n", "", "write five fields"},
		{strings.Repeat("1,", 130) + " * * * *", "", "at most 256"},
		{"nightly", "", "has 1 field instead of five"},
		{"* * * *", "", "4 fields instead of five: write five fields, minute"},
		{"0 0 9 * * 1-5", "", "6 fields, and seconds and years are not known: write five fields"},
		{"0 0 9 * * 1-5 2026", "", "7 fields, and seconds and years are not known: write five fields"},
		{"1 2 3 4 5 6 7 8", "", "8 fields instead of five"},
		{"@every 15m", "", "write */15 * * * *"},
		{"@reboot", "", "submit the task from what starts the machine"},
		{"@fortnightly", "", "write @hourly, @daily"},
		{"@", "", "write @hourly, @daily"},
		{"@daily 5", "", "@daily stands alone"},
		{"TZ=Asia/Tokyo 0 9 * * *", "", `set timezone to "Asia/Tokyo"`},
		{"CRON_TZ=Asia/Tokyo 0 9 * * *", "", `set timezone to "Asia/Tokyo"`},
		{"TZ= 0 9 * * *", "", `set timezone to "Europe/Berlin"`},
		{"TZ=Asia/Tokyo", "", "set timezone to"},
		{"0 9 ? * 1", "day of month", "write *"},
		{"0 9 * * ?", "day of week", "write *"},
		{"0 9 L * *", "day of month", "write 28"},
		{"0 9 * * 5L", "day of week", "write 28"},
		{"0 9 LW * *", "day of month", "write 28"},
		{"0 9 15W * *", "day of month", "write days of the month or days of the week"},
		{"0 9 W * *", "day of month", "write days of the month or days of the week"},
		{"0 9 * * 1#2", "day of week", "write the day alone"},
		{"0 22-2 * * *", "hour", "write 22-23,0-2"},
		{"0 9 * * 5-1", "day of week", "write 5-6,0-1"},
		{"0 9 * * FRI-MON", "day of week", "write 5-6,0-1"},
		{"0 9 * * 6-0", "day of week", "write 6-7"},
		{"0 9 * * 7-2", "day of week", "write 0-2"},
		{"0 9 * NOV-FEB *", "month", "write 11-12,1-2"},
		{"*/0 * * * *", "minute", "a step of 1 to 60"},
		{"*/90 * * * *", "minute", "write 0 for that, or a step of 1 to 60"},
		{"0 0 */99 * *", "day of month", "write 1 for that"},
		{"*/x * * * *", "minute", "write */2"},
		{"*/ * * * *", "minute", "write */2"},
		{"*/2/2 * * * *", "minute", "write */2"},
		{"5/15 * * * *", "minute", "write 5-59/15"},
		{"60 * * * *", "minute", "minute must be 0 to 59"},
		{"* 24 * * *", "hour", "hour must be 0 to 23"},
		{"* * 0 * *", "day of month", "day of month must be 1 to 31"},
		{"* * 32 * *", "day of month", "day of month must be 1 to 31"},
		{"* * * 0 *", "month", "month must be 1 to 12"},
		{"* * * 13 *", "month", "month must be 1 to 12"},
		{"* * * * 8", "day of week", "day of week must be 0 to 7"},
		{"99999999999999999999 * * * *", "minute", "write a number of 0 to 59"},
		{"-5 * * * *", "minute", "a value is missing"},
		{"5- * * * *", "minute", "a value is missing"},
		{"1-2-3 * * * *", "minute", "write a number"},
		{"+5 * * * *", "minute", "write a number"},
		{"1,,2 * * * *", "minute", "one comma"},
		{"1, * * * *", "minute", "one comma"},
		{"MON * * * *", "minute", "write a number of 0 to 59"},
		{"0 0 * * MONDAY", "day of week", "a name such as MON"},
		{"0 0 * JANUARY *", "month", "a name such as FEB"},
		{"** * * * *", "minute", "* stands alone"},
		{"1-* * * * *", "minute", "* stands alone"},
		{"٣ * * * *", "minute", "write a number of 0 to 59"},
		{"<script> * * * *", "minute", "write a number of 0 to 59"},
	} {
		_, err := cron.Parse(c.expr)
		var refused *cron.Error
		switch {
		case err == nil:
			t.Errorf("%q is not refused", c.expr)
		case !errors.As(err, &refused) || refused.Field != c.field:
			t.Errorf("%q: field %q, want %q", c.expr, refused.Field, c.field)
		case !strings.Contains(err.Error(), c.says):
			t.Errorf("%q: %q does not say %q", c.expr, err, c.says)
		case len(err.Error()) > 300:
			t.Errorf("%q: the error has %d bytes", c.expr, len(err.Error()))
		}
	}
}

// TestIncidentImpossibleDatesFireDaily: in the system of the seed work-queue 31 February fired
// every day.
func TestIncidentImpossibleDatesFireDaily(t *testing.T) {
	for expr, says := range map[string]string{
		"0 0 31 2 *":           "the last that any of them has is the 29th",
		"0 0 30 2 *":           "29th",
		"0 0 30-31 feb *":      "29th",
		"0 0 31 4,6,9,11 *":    "30th",
		"0 0 31 2,4 *":         "30th",
		"0 0 30 2 */2":         "29th", // with a * both fields must match
		"0 0 31 */2,4 */2":     "",     // January has one
		"0 0 29 2 *":           "",
		"0 0 31 2 1":           "", // a Monday of February matches
		"0 0 1,31 2 *":         "",
		"0 0 31 2-3 *":         "",
		"0 0 30 2,4,6,9,11 *":  "",
		"0 0 */31 2 *":         "",
		"0 0 29-31/2 2,4 */7":  "",
		"59 23 29 2 sun,*/6":   "",
		"0 0 31 jan-feb/1 mon": "",
	} {
		e, err := cron.Parse(expr)
		switch {
		case says == "" && err != nil:
			t.Errorf("%q: %v", expr, err)
		case says == "" && e.Next(time.Unix(0, 0), time.UTC).IsZero():
			t.Errorf("%q was accepted and is never due", expr)
		case says != "" && (err == nil || !strings.Contains(err.Error(), "never due") || !strings.Contains(err.Error(), says)):
			t.Errorf("%q: %v", expr, err)
		}
	}
}

func TestStringReturnsInput(t *testing.T) {
	for in, want := range map[string]string{
		"  30  9\t* * mon-FRI ": "30 9 * * mon-FRI",
		"@daily":                "@daily",
		" @Daily\n":             "@Daily",
	} {
		if got := parse(t, in).String(); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	for expr, want := range map[string]string{
		"0 1 * * *":           "every day at 01:00",
		"30 9 * * 1-5":        "at 09:30 on weekdays",
		"*/15 * * * *":        "every 15 minutes",
		"0-59/15 0-23 * * *":  "every 15 minutes",
		"0,30 * * * *":        "every 30 minutes",
		"* * * * *":           "every minute",
		"@hourly":             "every hour",
		"5 * * * *":           "every hour at minute 5",
		"5,20 * * * *":        "every hour at minutes 5 and 20",
		"*/7 * * * *":         "every hour at minutes 0 to 56 in steps of 7",
		"0 */2 * * *":         "every 2 hours",
		"30 */2 * * *":        "every 2 hours at minute 30",
		"@daily":              "every day at 00:00",
		"@weekly":             "at 00:00 on Sundays",
		"@monthly":            "at 00:00 on day 1 of the month",
		"@yearly":             "at 00:00 on 1 January",
		"0 0 29 2 *":          "at 00:00 on 29 February",
		"0 12 1,15 3,6 *":     "at 12:00 on days 1 and 15 of March and June",
		"0 0 1-7 * *":         "at 00:00 on days 1 to 7 of the month",
		"0 12 * 7 *":          "every day in July at 12:00",
		"*/10 * * 7 *":        "every 10 minutes in July",
		"*/15 9-17 * * 1-5":   "every 15 minutes from 09:00 to 17:45 on weekdays",
		"0 9-17 * * *":        "every hour from 09:00 to 17:00",
		"* 9 * * *":           "every minute from 09:00 to 09:59",
		"*/5 8,12 * * *":      "every 5 minutes in the hours 8 and 12",
		"1,2,3 4 * * *":       "every day at 04:01, 04:02 and 04:03",
		"1-59/2 1-23/2 * * *": "at minutes 1 to 59 in steps of 2 of the hours 1 to 23 in steps of 2",
		"0 9,17 * * 6,7":      "at 09:00 and 17:00 on Saturdays and Sundays",
		"15 */6 * * 1,3":      "at 00:15, 06:15, 12:15 and 18:15 on Mondays and Wednesdays",
		"0 0 13 * 5":          "at 00:00 on day 13 and on every Friday",
		"0 0 13 5 5":          "at 00:00 on day 13 and on every Friday in May",
		"0 0 1-31 * 5":        "every day at 00:00", // either field matches
		"0 0 13 * 0-6":        "every day at 00:00",
		"0 0 */2 * 1":         "at 00:00 on days 1 to 31 in steps of 2 of the month, if that is a Monday",
		"0 0 1 3 1,*/7":       "at 00:00 on day 1 of March, if that is a Sunday or Monday",
	} {
		if got := parse(t, expr).Describe(); got != want {
			t.Errorf("%q: %q, want %q", expr, got, want)
		}
	}
}

func TestZone(t *testing.T) {
	for _, name := range []string{"", "UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "America/Port-au-Prince", "EST"} {
		if z, err := cron.Zone(name); err != nil || z == nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if z, _ := cron.Zone(""); z != time.UTC {
		t.Error("no name is not UTC")
	}
	for _, name := range []string{
		"Berlin", "europe/berlin2", "Mars/Olympus", "Local", "local", "localtime", "right/Europe/Berlin", "posix/Europe/Berlin", "Factory",
		"../../etc/passwd", "/etc/localtime", "Europe/", "Europe", "Europe/Berlin\n", "Europe/Berlin ", " ", strings.Repeat("a", 10_000), "zone.tab", "+02:00", "UTC+2",
	} {
		z, err := cron.Zone(name)
		var refused *cron.Error
		if z != nil || !errors.As(err, &refused) || refused.Field != "timezone" || !strings.Contains(err.Error(), "Europe/Berlin") || len(err.Error()) > 300 {
			t.Errorf("%.40q: %v, %v", name, z, err)
		}
	}
}
