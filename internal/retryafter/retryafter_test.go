package retryafter_test

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/retryafter"
)

func TestOf(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	const none = time.Duration(math.MaxInt64)
	for name, x := range map[string]struct {
		h    map[string]string
		want time.Duration
	}{
		"seconds":            {map[string]string{"Retry-After": "2"}, 2 * time.Second},
		"parts of a second":  {map[string]string{"Retry-After": "0.5"}, time.Second / 2},
		"milliseconds":       {map[string]string{"Retry-After": "2", "Retry-After-Ms": "1500"}, 1500 * time.Millisecond},
		"zero":               {map[string]string{"Retry-After": "0"}, 0},
		"negative":           {map[string]string{"Retry-After": "-5"}, -5 * time.Second},
		"huge":               {map[string]string{"Retry-After": "99999999999999999999"}, retryafter.Longest},
		"infinite":           {map[string]string{"Retry-After": "-Inf"}, -retryafter.Longest},
		"a date":             {map[string]string{"Retry-After": date(time.Minute)}, time.Minute},
		"a date in the past": {map[string]string{"Retry-After": date(-time.Minute)}, -time.Minute},
		"a date of a server whose clock is wrong": {map[string]string{"Retry-After": date(time.Hour + time.Minute), "Date": date(time.Hour)}, time.Minute},
		"a date far away":                         {map[string]string{"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, retryafter.Longest},
		"no number":                               {map[string]string{"Retry-After": "NaN"}, none},
		"a word":                                  {map[string]string{"Retry-After": "soon"}, none},
		"too much for a number":                   {map[string]string{"Retry-After": "1e999"}, none},
		"empty":                                   {map[string]string{"Retry-After": ""}, none},
		"nothing":                                 {nil, none},
	} {
		h := http.Header{}
		for k, v := range x.h {
			h.Set(k, v)
		}
		got, ok := retryafter.Of(h, now)
		if !ok {
			got = none
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}

func TestRefusal(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, x := range []struct {
		status  int
		after   string
		wait    time.Duration
		refused bool
	}{
		{429, "2", 2 * time.Second, true},
		{429, "", 0, true},
		{429, "soon", 0, true},
		{429, "-1", time.Second, true},
		{429, "0", time.Second, true},
		{429, now.Add(-time.Hour).Format(http.TimeFormat), time.Second, true},
		{503, "2", 2 * time.Second, true},
		{503, "0", time.Second, true},
		{503, "", 0, false},
		{503, "soon", 0, false},
		{500, "2", 2 * time.Second, false},
		{200, "2", 2 * time.Second, false},
	} {
		h := http.Header{"Retry-After": {x.after}}
		if wait, refused := retryafter.Refusal(x.status, h, now); refused != x.refused || wait != x.wait {
			t.Errorf("%d, %q: %s, %v; want %s, %v", x.status, x.after, wait, refused, x.wait, x.refused)
		}
	}
}
