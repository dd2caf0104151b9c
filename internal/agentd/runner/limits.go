package runner

import (
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// The error types of a run that ended at a limit of its provider.
const (
	usageLimit   = "usage_limit"
	overloaded   = "overloaded"
	refusedLogin = "login_refused"
)

// Values of api.AgentLimit.Source: how a limit is known.
const (
	byEvent  = "event"
	byHeader = "header"
	byText   = "text"
	byGuess  = "guess"
)

// DefaultLimitWait replaces an Options.LimitWait of 0.
const DefaultLimitWait = 20 * time.Second

// ProviderReport is what a run has learnt from its provider. Its parts are immutable.
type ProviderReport struct {
	// ErrType and Limit describe the limit that the CLI has met and not yet got past:
	// usage_limit, overloaded, login_refused or OverBudget; "" and nil for none. If the run
	// fails now, this is the reason. OverBudget has no Limit.
	ErrType string
	Limit   *api.AgentLimit
	// Patience is how long the CLI may stay silent from now on before its run is
	// ended because of Limit; 0: without limit.
	Patience   time.Duration
	Windows    []api.AccountWindow // the provider's latest values, each name once
	AnsweredAt time.Time           // when the model last answered; zero: not in this run
	Used       Used                // so far; complete at the end
}

// After adds what an earlier program of the same run has learnt.
func (h ProviderReport) After(earlier ProviderReport) ProviderReport {
	h.Windows = MergeWindows(earlier.Windows, h.Windows)
	if h.AnsweredAt.IsZero() {
		h.AnsweredAt = earlier.AnsweredAt
	}
	h.Used = earlier.Used.plus(h.Used)
	return h
}

// trouble is the error state that most streams share.
type trouble struct {
	text     string
	hopeless bool
	heard    ProviderReport
	meter    meter
	refusals int              // consecutive refusals for too many requests
	wait     time.Duration    // Options.LimitWait
	now      func() time.Time // nil: time.Now
}

func (t *trouble) Trouble() (string, bool)          { return t.text, t.hopeless }
func (t *trouble) StderrLine([]byte) (string, bool) { return "", false }
func (t *trouble) Heard() ProviderReport            { return t.heard }

func (b commonRunner) trouble(t Task) trouble {
	m := meter{prices: b.opt.Prices, asked: t.Model, budget: t.Budget}
	return trouble{wait: cmp.Or(b.opt.LimitWait, DefaultLimitWait), meter: m}
}

func (t *trouble) clock() time.Time {
	if t.now != nil {
		return t.now()
	}
	return time.Now()
}

// over records that the CLI continues.
func (t *trouble) over() {
	t.text, t.hopeless, t.refusals = "", false, 0
	t.heard.ErrType, t.heard.Limit, t.heard.Patience = "", nil, 0
}

// answered records that the model answers.
func (t *trouble) answered() {
	t.over()
	t.heard.AnsweredAt = t.clock().UTC()
}

// limited records a limit that the CLI has met.
func (t *trouble) limited(errType string, l api.AgentLimit) {
	l.Text = cmp.Or(limitText(l.Text), "the provider refused a request")
	l.Began = !t.heard.AnsweredAt.IsZero()
	t.heard.ErrType, t.heard.Limit, t.heard.Patience = errType, &l, 0
	if l.Window != "" && errType == usageLimit {
		full := api.AccountWindow{Name: l.Window, UsedPercent: 100, ResetsAt: l.ResetsAt}
		for _, w := range t.heard.Windows {
			if w.Name == l.Window {
				full.UsedPercent = max(full.UsedPercent, w.UsedPercent)
				full.ResetsAt = cmp.Or(l.ResetsAt, w.ResetsAt)
			}
		}
		t.window(full)
	}
}

// throttled records that the provider answered a request with 429 and that the CLI
// will retry it, after wait if that is known, else 0. The run is ended if the wait is
// too long, and at the second 429 in a row. Otherwise the CLI must show activity
// within LimitWait after the wait.
func (t *trouble) throttled(wait time.Duration, l api.AgentLimit) {
	if wait > 0 && l.ResetsAt == nil {
		at := t.clock().Add(wait).UTC()
		l.ResetsAt = &at
	}
	t.limited(usageLimit, l)
	t.refusals++
	t.hopeless = t.refusals > 1 || wait >= t.wait
	t.heard.Patience = t.wait + wait
}

// maxWindows is how many windows are kept; a provider has a handful.
const maxWindows = 16

var windowName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$`)

// window records how much of a limit is used.
func (t *trouble) window(w api.AccountWindow) {
	t.heard.Windows = addWindow(t.heard.Windows, w)
}

// addWindow returns list with w, which replaces a window of the same name.
func addWindow(list []api.AccountWindow, w api.AccountWindow) []api.AccountWindow {
	if !windowName.MatchString(w.Name) || math.IsNaN(w.UsedPercent) || math.IsInf(w.UsedPercent, 0) {
		return list
	}
	w.UsedPercent = min(max(w.UsedPercent, 0), 1000)
	list = slices.Clone(list)
	for i := range list {
		if list[i].Name == w.Name {
			list[i] = w
			return list
		}
	}
	if len(list) >= maxWindows {
		return list
	}
	return append(list, w)
}

// MergeWindows returns list with each of news, which replace windows of the
// same name.
func MergeWindows(list, news []api.AccountWindow) []api.AccountWindow {
	for _, w := range news {
		list = addWindow(list, w)
	}
	return list
}

// IsVague reports whether the end of a usage limit is known at best from a message for people.
func IsVague(errType string, l *api.AgentLimit) bool {
	return errType == usageLimit && l != nil && (l.Source == byText || l.Source == byGuess)
}

// ExactLimit returns a usage limit with its end taken from the windows that are used up, if
// there are any: they are more exact than the CLI's message.
func ExactLimit(l api.AgentLimit, windows []api.AccountWindow) api.AgentLimit {
	for _, w := range windows {
		if w.UsedPercent >= 100 && w.ResetsAt != nil && (l.Window == "" || l.ResetsAt == nil || w.ResetsAt.After(*l.ResetsAt)) {
			l.Window, l.ResetsAt, l.Source = w.Name, w.ResetsAt, byEvent
		}
	}
	return l
}

// limitFailure is the outcome of a CLI that ended at a limit.
func (t *trouble) limitFailure(kind, message string, x Exit, o Outcome) Outcome {
	o.Limit = t.heard.Limit
	if t.heard.ErrType == refusedLogin {
		message = kind + "'s key or login was refused: " + message
	}
	return failed(t.heard.ErrType, message, x, o)
}

// limitText shortens a provider's text to one line of at most 300 bytes.
func limitText(s string) string {
	return oneLine(strings.Join(strings.Fields(Plain(strings.ToValidUTF8(s, "\uFFFD"))), " "), 296)
}

// epoch converts seconds since 1970, and returns nil for an invalid value.
func epoch(seconds float64) *time.Time {
	const year10000 = 253402300800
	if !(seconds >= 1 && seconds < year10000) {
		return nil
	}
	at := time.Unix(int64(seconds), 0).UTC()
	return &at
}

// number is a number in a CLI's event. An invalid or infinite number decodes to
// 0, so that one unexpected field does not lose the whole event.
type number float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	*n = 0
	if f, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
		*n = number(f)
	}
	return nil
}

// count is a number of tokens in a CLI's event, from 0 to signalbox.MaxRunTokens. Invalid values
// decode to 0.
type count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(b []byte) error {
	var n number
	_ = n.UnmarshalJSON(b) // never fails
	*c = count(min(max(n, 0), signalbox.MaxRunTokens))
	return nil
}

// word is a string in a CLI's event. Anything else decodes to "".
type word string

// UnmarshalJSON implements json.Unmarshaler.
func (w *word) UnmarshalJSON(b []byte) error {
	*w = ""
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(w))
	}
	return nil
}

var (
	usageWords = regexp.MustCompile(`(?i)\busage limit|\bhit your\b.{0,40}\blimit|rate[ _-]?limit|too many requests|resource[ _]exhausted` +
		`|\b(?:requests?|session|hourly|[0-9]+-hour|daily|weekly|monthly|opus|sonnet|spend|spending|plan) limit (?:was |has been )?(?:reached|exceeded|hit)` +
		`|\bquota (?:was |has been |is )?(?:reached|exceeded|exhausted)|\b(?:exceeded|out of) your current quota|insufficient[ _]quota` +
		`|\b(?:status|error|code|http)[:=( ]{1,3}429\b|\(429\)`)
	overloadWords = regexp.MustCompile(`(?i)\boverloaded\b|\bat capacity\b|\b(?:status|error|code|http)[:=( ]{1,3}529\b`)
)

// tellsLimit reports whether an error's text is about a provider's limit.
func tellsLimit(text string) bool {
	return usageWords.MatchString(text) && !strings.Contains(strings.ToLower(text), "disk quota")
}

// fromText records the limit in an error's text, if there is one.
func (t *trouble) fromText(text string, zone *time.Location) {
	switch {
	case tellsLimit(text):
		l := api.AgentLimit{Source: byText, Text: text}
		if at, ok := resetTime(text, t.clock(), zone); ok {
			l.ResetsAt = &at
		}
		t.limited(usageLimit, l)
	case overloadWords.MatchString(text):
		t.limited(overloaded, api.AgentLimit{Source: byText, Text: text})
	}
}

var (
	epochBehindBar = regexp.MustCompile(`\|([0-9]{10})\b`) // Claude Code before 2.0
	resetWords     = regexp.MustCompile(`(?i)\b(?:try again|retry|resets?|available)(?: again)?(?: (?:at|on|in|after))? `)
	durationPart   = regexp.MustCompile(`(?i)^(?:,? ?and |, ?| )?([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(days?|d|hours?|hrs?|hr|h|minutes?|mins?|min|m|seconds?|secs?|sec|s|milliseconds?|ms)(?:[^A-Za-z]|$)`)
	clockForm      = regexp.MustCompile(`(?i)^(?:([A-Z][a-z]{2})[a-z]{0,6}\.? ([0-9]{1,2})(?:st|nd|rd|th)?,?(?: ([0-9]{4}),?)?(?: at)? )?([0-9]{1,2})(?::([0-9]{2}))? ?([ap]\.?m\b)?(?: ?\(([A-Za-z0-9_+/-]{1,40})\))?`)
)

var unitSeconds = map[byte]float64{'d': 86400, 'h': 3600, 'm': 60, 's': 1}

// justOver is how far in the past a time without a date may be and still mean today
// rather than tomorrow: the message may have been delayed.
const justOver = 10 * time.Minute

// resetTime finds the end of a limit in a text for people: "in 3 hours 12 minutes",
// "7:38 PM", "Nov 28th, 2026 9:06 PM", "3pm (Europe/Vienna)". A time without a date
// means its next occurrence. A time without a zone is in zone. Such times have no
// seconds, so the result is the end of the minute.
func resetTime(text string, now time.Time, zone *time.Location) (time.Time, bool) {
	text = strings.Join(strings.Fields(text), " ")
	if m := epochBehindBar.FindStringSubmatch(text); m != nil {
		seconds, _ := strconv.ParseFloat(m[1], 64) // ten digits
		if at := epoch(seconds); at != nil {
			return *at, true
		}
	}
	for _, m := range resetWords.FindAllStringIndex(text, 8) {
		rest := text[m[1]:]
		if d, ok := durationOf(rest); ok {
			return now.Add(d).UTC(), true
		}
		if first, _, _ := strings.Cut(rest, " "); len(first) >= len("2006-01-02T15:04:05Z") {
			if at, err := time.Parse(time.RFC3339, strings.TrimRight(first, ".,)")); err == nil {
				return at.UTC(), true
			}
		}
		if at, ok := clockTime(rest, now, zone); ok {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// durationOf parses a duration at the beginning of s.
func durationOf(s string) (time.Duration, bool) {
	var seconds float64
	found := false
	for {
		m := durationPart.FindStringSubmatchIndex(s)
		if m == nil {
			break
		}
		n, _ := strconv.ParseFloat(s[m[2]:m[3]], 64) // digits
		unit := strings.ToLower(s[m[4]:m[5]])
		if strings.HasPrefix(unit, "ms") || strings.HasPrefix(unit, "milli") {
			n /= 1000
			unit = "s"
		}
		seconds += n * unitSeconds[unit[0]]
		found = true
		s = s[m[5]:]
	}
	const century = 100 * 366 * 86400
	if !found || seconds > century {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

func clockTime(s string, now time.Time, zone *time.Location) (time.Time, bool) {
	m := clockForm.FindStringSubmatch(s)
	if m == nil || (m[5] == "" && m[6] == "") { // a bare number is not a time
		return time.Time{}, false
	}
	if named, err := time.LoadLocation(m[7]); err == nil && m[7] != "" {
		zone = named
	}
	now = now.In(zone)
	hour, _ := strconv.Atoi(m[4]) // digits, this and below
	minute, _ := strconv.Atoi(m[5])
	if m[6] != "" {
		if hour < 1 || hour > 12 {
			return time.Time{}, false
		}
		hour %= 12
		if m[6][0] == 'p' || m[6][0] == 'P' {
			hour += 12
		}
	}
	if hour > 23 || minute > 59 {
		return time.Time{}, false
	}
	if m[1] == "" {
		at := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, zone)
		if end := at.Add(time.Minute); !now.Before(at) && now.Sub(end) < justOver {
			return end, true
		}
		if at.Before(now) {
			at = time.Date(now.Year(), now.Month(), now.Day()+1, hour, minute, 0, 0, zone)
		}
		return at, true
	}
	month, err := time.Parse("Jan", m[1])
	day, _ := strconv.Atoi(m[2])
	if err != nil || day < 1 || day > 31 {
		return time.Time{}, false
	}
	year, given := now.Year(), m[3] != ""
	if given {
		year, _ = strconv.Atoi(m[3])
	}
	at := time.Date(year, month.Month(), day, hour, minute, 0, 0, zone)
	if !given && at.Before(now.AddDate(0, 0, -1)) {
		at = time.Date(year+1, month.Month(), day, hour, minute, 0, 0, zone)
	}
	return at, year >= 1970
}

// zoneOf is the time zone that a program with this environment uses.
func zoneOf(environ []string) *time.Location {
	if name := env(environ, "TZ"); name != "" {
		if zone, err := time.LoadLocation(strings.TrimPrefix(name, ":")); err == nil {
			return zone
		}
	}
	return time.Local
}
