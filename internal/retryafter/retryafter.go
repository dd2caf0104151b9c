// Package retryafter reads how long a server wants to be left alone.
package retryafter

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Longest is the greatest answer of Of, more than any server means.
const Longest = 366 * 24 * time.Hour

// Of returns what the headers of an answer say: seconds, also parts of one, or a date, which is
// compared with the server's own Date, else with now. It is from -Longest to Longest. false: they
// say nothing that can be read.
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

// shortest is the least time that Refusal says.
const shortest = time.Second

// Refusal reports whether an answer says that the server refused a request without processing it:
// 429, or 503 with a time. wait is how long it wants to be left alone: less than a second, or a
// date in the past, is a second; 0: it did not say.
func Refusal(status int, h http.Header, now time.Time) (wait time.Duration, refused bool) {
	wait, said := Of(h, now)
	if said {
		wait = max(wait, shortest)
	}
	return wait, status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable && said
}
