// Package retryafter reads how long a server wants clients to wait.
package retryafter

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Longest is the maximum result of Of, more than any server means.
const Longest = 366 * 24 * time.Hour

// Of parses the headers of a response: seconds, including fractions, or a date, which is compared
// with the server's own Date, else with now. The result is from -Longest to Longest; false: there
// is no valid value.
func Of(h http.Header, now time.Time) (time.Duration, bool) {
	var seconds float64
	text := h.Get("Retry-After")
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		seconds = ms / 1000
	} else if s, err := strconv.ParseFloat(text, 64); err == nil {
		seconds = s
	} else if at, err := http.ParseTime(text); err == nil {
		if date, err := http.ParseTime(h.Get("Date")); err == nil {
			now = date
		}
		seconds = at.Sub(now).Seconds()
	} else {
		return 0, false
	}
	if math.IsNaN(seconds) {
		return 0, false
	}
	return time.Duration(min(max(seconds, -Longest.Seconds()), Longest.Seconds()) * float64(time.Second)), true
}

// shortest is the minimum wait that Refusal returns.
const shortest = time.Second

// Refusal reports whether a response says that the server refused a request without processing
// it: 429, or 503 with a time. wait is how long to wait before a retry: less than a second, or a
// date in the past, becomes a second; 0: not given.
func Refusal(status int, h http.Header, now time.Time) (wait time.Duration, refused bool) {
	wait, said := Of(h, now)
	if said {
		wait = max(wait, shortest)
	}
	return wait, status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable && said
}
