package runner

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// claudeRateLimit is what Claude Code 2.1 reports about the limits of a
// subscription, as in its provider's headers (anthropic-ratelimit-unified-*).
type claudeRateLimit struct {
	Status      word   `json:"status"` // allowed, allowed_warning or rejected
	ResetsAt    number `json:"resetsAt"`
	Type        word   `json:"rateLimitType"`
	Utilization number `json:"utilization"` // 1 is all of it
	Overage     bool   `json:"isUsingOverage"`

	Windows map[string]struct {
		Utilization number `json:"utilization"`
		ResetsAt    number `json:"resetsAt"`
	} `json:"unifiedWindows"`
}

// UnmarshalJSON implements json.Unmarshaler. It ignores other forms.
func (l *claudeRateLimit) UnmarshalJSON(b []byte) error {
	type plain claudeRateLimit
	if json.Unmarshal(b, (*plain)(l)) != nil {
		*l = claudeRateLimit{}
	}
	return nil
}

func (s *claudeStream) rateLimit(l claudeRateLimit) {
	for _, name := range slices.Sorted(maps.Keys(l.Windows)) {
		w := l.Windows[name]
		s.window(api.AccountWindow{Name: name, UsedPercent: 100 * float64(w.Utilization), ResetsAt: epoch(float64(w.ResetsAt))})
	}
	if len(l.Windows) == 0 && l.Utilization > 0 {
		s.window(api.AccountWindow{Name: string(l.Type), UsedPercent: 100 * float64(l.Utilization), ResetsAt: epoch(float64(l.ResetsAt))})
	}
	if l.Status != "rejected" || l.Overage {
		return
	}
	s.limited(usageLimit, api.AgentLimit{Window: oneLine(Plain(string(l.Type)), 64), ResetsAt: epoch(float64(l.ResetsAt)), Source: byEvent, Text: "the provider's limit is reached"})
	s.heard.Patience = s.wait // the CLI gives up by itself, immediately
}

// reason is the CLI's name for why the API refused, "" for none.
func (e *claudeEvent) reason() string {
	var reason word
	_ = reason.UnmarshalJSON(e.Error) // never fails
	return string(reason)
}

// refused reports whether the event says that the API refused.
func (e *claudeEvent) refused() bool {
	return e.reason() != "" || e.APIError != "" || e.APIStatus >= 400
}

// refusal records the limit in an event with which the CLI gives up.
func (s *claudeStream) refusal(e claudeEvent, text string) {
	reason := e.reason()
	switch l := (api.AgentLimit{Source: byEvent, Text: text}); {
	case reason == "authentication_failed" || e.APIStatus == 401:
		s.limited(refusedLogin, l)
	case reason == "overloaded" || e.APIStatus == 529:
		s.limited(overloaded, l)
	case e.APIError == "usage_limit_reached" || reason == "rate_limit" || reason == "billing_error" || e.APIStatus == 429:
		if said := s.heard.Limit; said != nil && s.heard.ErrType == usageLimit { // from rate_limit_event
			l.Window, l.ResetsAt = said.Window, said.ResetsAt
		}
		s.limited(usageLimit, l)
	default:
		s.over()
	}
}

// retries records that the CLI will retry its request.
func (s *claudeStream) retries(e claudeEvent, reason string) {
	l := api.AgentLimit{Source: byEvent, Text: s.text}
	switch {
	case reason == "authentication_failed":
		// A first refusal may be due to a login that is about to be renewed.
		if s.hopeless = e.Attempt > 1; s.hopeless {
			s.limited(refusedLogin, l)
		}
	case string(e.Status) == "429":
		l.Source = byGuess
		wait := retryAfter(e.Attempt, time.Duration(min(max(e.Delay, 0), 1e9))*time.Millisecond)
		if wait > 0 {
			l.Source = byHeader
		}
		s.throttled(wait, l)
	}
}

// retryAfter estimates the API's retry-after value from the CLI's delay; 0: the
// API gave none. By default the CLI waits half a second, doubles that up to 32 s,
// and adds up to a quarter. It adds a quarter to the API's value as well, so the
// result is the smallest value that fits.
func retryAfter(attempt int, delay time.Duration) time.Duration {
	own := min(500*time.Millisecond<<min(max(attempt-1, 0), 16), 32*time.Second)
	if delay <= own*5/4+50*time.Millisecond {
		return 0
	}
	return delay * 4 / 5
}
