package cron_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestDocsTablesMatch checks the tables of docs/schedules.md: descriptions of expressions, and what is due at
// daylight saving transitions.
func TestDocsTablesMatch(t *testing.T) {
	page, err := os.ReadFile("../../docs/schedules.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)`[^|]* \\| ([^|]+) \\|(?: ([^|]+) \\|)?$").FindAllStringSubmatch(string(page), -1)
	words, nights := 0, 0
	for _, row := range rows {
		expr, second, third := row[1], row[2], row[3]
		switch {
		case !strings.Contains(expr, "*") && expr != "0 0 29 2 *" && !strings.HasPrefix(expr, "@"):
		case strings.Contains(second, "+0"):
			nights++
			for date, want := range map[string]string{"2026-03-29": second, "2026-10-25": third} {
				if got := night(t, expr, date); got != want {
					t.Errorf("%q on %s: %s, the page says %s", expr, date, got, want)
				}
			}
		case strings.HasPrefix(second, "`"): // a short form
			if parse(t, expr).Describe() != parse(t, strings.Trim(second, "`")).Describe() {
				t.Errorf("%s is not %s", expr, second)
			}
		default:
			words++
			if got := parse(t, expr).Describe(); got != second {
				t.Errorf("%q: %s, the page says %s", expr, got, second)
			}
		}
	}
	if words < 10 || nights < 5 {
		t.Errorf("found %d expressions in words and %d nights", words, nights)
	}
}

// night lists what is due in Berlin from 01:00 to 04:00 of a day.
func night(t *testing.T, expr, date string) string {
	t.Helper()
	z := zone(t, "Europe/Berlin")
	at, err := time.ParseInLocation(time.DateOnly, date, z)
	if err != nil {
		t.Fatal(err)
	}
	var due []string
	for at = parse(t, expr).Next(at.Add(time.Hour-time.Second), z); at.In(z).Hour() < 4 && at.In(z).Format(time.DateOnly) == date; at = parse(t, expr).Next(at, z) {
		due = append(due, at.In(z).Format("15:04 -07:00"))
	}
	return strings.Join(due, ", ")
}
