package httpio

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// Limits of query parameters.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
	maxWait      = 5 * time.Minute
)

// CheckQuery refuses query parameters that the route does not have, or that occur twice:
// a misspelt filter must not be ignored. The parameters of pages are not checked: only
// their scripts read them.
func CheckQuery(r *http.Request, route api.Route) error {
	if route.Name == "page" {
		return nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return signalbox.Errorf(signalbox.CodeValidation, "the query of the URL is malformed")
	}
	var known []string
	for _, p := range route.Query {
		if p.In == "query" {
			known = append(known, p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			hint := "this path takes none"
			if len(known) > 0 {
				hint = "known are " + strings.Join(known, ", ")
			}
			return &Refusal{Err: signalbox.Invalid(Clip(name), "%s is not a query parameter of this path", Clip(name)), Hint: hint}
		}
		if len(values[name]) > 1 {
			return signalbox.Invalid(name, "%s is given twice", name)
		}
		if v := values[name][0]; !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			return signalbox.Invalid(name, "%s is not valid text", name)
		}
	}
	return nil
}

// Param returns a query parameter; "" if it is not given.
func Param(r *http.Request, name string) string { return r.URL.Query().Get(name) }

// Limit returns ?limit=, 1 to MaxLimit; DefaultLimit if it is missing.
func Limit(r *http.Request) (int, error) { return Number(r, "limit", DefaultLimit, 1, MaxLimit) }

// Number returns a query parameter that is a whole number.
func Number(r *http.Request, name string, def, lo, hi int) (int, error) {
	s := Param(r, name)
	if s == "" {
		return def, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < lo || n > hi {
		return 0, signalbox.Invalid(name, "%s must be %d to %d, not %q", name, lo, hi, Clip(s))
	}
	return n, nil
}

// Bool returns a query parameter that is true or false; false if it is missing.
func Bool(r *http.Request, name string) (bool, error) {
	switch s := Param(r, name); s {
	case "true":
		return true, nil
	case "", "false":
		return false, nil
	default:
		return false, signalbox.Invalid(name, "%s must be true or false, not %q", name, Clip(s))
	}
}

// Position parses a position in a log or journal; -1 if it is missing.
func Position(name, s string) (int64, error) {
	if s == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, signalbox.Invalid(name, "%s must be a whole number from 0, not %q", name, Clip(s))
	}
	return n, nil
}

// Wait returns ?wait=: a duration such as 30s, or seconds.
func Wait(r *http.Request) (time.Duration, error) {
	s := Param(r, "wait")
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if n, bare := strconv.Atoi(s); bare == nil && n >= 0 && n <= int(maxWait.Seconds()) {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d < 0 || d > maxWait {
		return 0, signalbox.Invalid("wait", "wait must be a duration such as 30s, at most 5m, not %q", Clip(s))
	}
	return d, nil
}

// When returns a time parameter, in RFC 3339 or as an age such as 2h or 7d; zero if it is
// missing.
func When(r *http.Request, name string, now time.Time) (time.Time, error) {
	s := Param(r, name)
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.UTC(), nil
	}
	if age, ok := ageOf(s); ok {
		return now.Add(-age), nil
	}
	return time.Time{}, signalbox.Invalid(name, "%s must be a time such as 2026-01-31T10:00:00Z or an age such as 2h or 7d, not %q", name, Clip(s))
}

func ageOf(s string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err == nil && n >= 0 && n <= 36500
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0
}

// TaskID returns the id in the path. A text that cannot be an id is CodeNotFound.
func TaskID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !signalbox.ValidID(id) {
		return "", Refuse(signalbox.CodeNotFound, "GET /api/find/{part} finds ids by their beginning or end",
			"%q is not the id of a task: an id is %q and 26 lower-case letters and digits", Clip(id), signalbox.IDPrefix)
	}
	return id, nil
}

// EitherName returns the value of a field that has two names, because the seeds differ.
func EitherName(one, first, other, second string) (string, error) {
	if first != "" && second != "" {
		return "", signalbox.Invalid(other, "%s is another name for %s: give one of them", other, one)
	}
	return first + second, nil
}

// IdempotencyKey returns the header of that name; "": none.
func IdempotencyKey(r *http.Request) (string, error) {
	given := r.Header.Values("Idempotency-Key")
	switch {
	case len(given) == 0:
		return "", nil
	case len(given) > 1:
		return "", signalbox.Invalid("Idempotency-Key", "Idempotency-Key is given twice")
	case given[0] == "":
		return "", signalbox.Invalid("Idempotency-Key", "Idempotency-Key must be 1 to %d printable characters", signalbox.MaxIdempotencyBytes)
	}
	return given[0], nil
}

// WantsStream reports whether the client accepts a stream of events.
func WantsStream(r *http.Request) bool {
	return strings.Contains(strings.ToLower(r.Header.Get("Accept")), "text/event-stream")
}
