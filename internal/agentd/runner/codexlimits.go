package runner

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// codexLogin matches codex's message about a refused or expired login.
var codexLogin = regexp.MustCompile(`^unexpected status 401\b|(?i)access token could not be refreshed|please (?:log out and )?sign in again`)

// codexBusy matches its message about too many requests.
var codexBusy = regexp.MustCompile(`\b429 Too Many Requests\b|^(?:Reconnecting\.\.\. \d+/\d+ \()?rate limit exceeded\b`)

// retries records that codex will retry its request, if the error says so.
func (s *codexStream) retries(message string) {
	if !codexBusy.MatchString(message) {
		s.refusals = 0
		return
	}
	l := api.AgentLimit{Source: byText, Text: message}
	var wait time.Duration
	if at, ok := resetTime(message, s.clock(), s.zone); ok {
		l.ResetsAt, wait = &at, at.Sub(s.clock())
	} else {
		l.Source = byGuess
	}
	s.throttled(wait, l)
}

// gaveUp records the limit in the error that ended the run. The windows that
// codex wrote to the conversation's file are more exact than its message, which
// has no seconds.
func (s *codexStream) gaveUp(text string) {
	if codexLogin.MatchString(text) {
		s.limited(refusedLogin, api.AgentLimit{Source: byText, Text: text})
		return
	}
	windows, guessed := s.heard.Windows, s.heard.Limit
	if s.fromText(text, s.zone); s.heard.ErrType != usageLimit {
		return
	}
	l := *s.heard.Limit
	if l.ResetsAt == nil && guessed != nil {
		l.ResetsAt, l.Source = guessed.ResetsAt, guessed.Source
	} else if l.ResetsAt == nil {
		l.Source = byGuess
	}
	s.limited(usageLimit, ExactLimit(l, windows))
}

// codexWindow is how much of a limit is used, as codex stores it.
type codexWindow struct {
	Used     number `json:"used_percent"`
	Minutes  number `json:"window_minutes"`
	ResetsAt number `json:"resets_at"`
}

// codexLine is a line of a conversation's file with limits or usage.
type codexLine struct {
	At      time.Time `json:"timestamp"`
	Payload struct {
		Limits struct {
			Primary   *codexWindow `json:"primary"`
			Secondary *codexWindow `json:"secondary"`
		} `json:"rate_limits"`
		Info struct {
			Total *codexUsage `json:"total_token_usage"` // over all its runs
		} `json:"info"`
	} `json:"payload"`
}

// stateEnd is how much of the end of a conversation's file is read, in bytes.
const stateEnd = 4 << 20

// fileEnd returns the end of a file, nil if there is none.
func fileEnd(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > stateEnd {
		_, _ = f.Seek(-stateEnd, io.SeekEnd) // fails for a short file, which is then read from its beginning
	}
	text, _ := io.ReadAll(io.LimitReader(f, stateEnd)) // a partial read is fine
	return text
}

// codexCounts returns the lines of a conversation's file in which codex wrote the usage.
func codexCounts(text []byte) (list []codexLine) {
	for line := range bytes.Lines(text) {
		var l codexLine
		if bytes.Contains(line, []byte(`"token_count"`)) && json.Unmarshal(line, &l) == nil {
			list = append(list, l)
		}
	}
	return list
}

// codexCounted returns the last usage.
func codexCounted(text []byte) (n tokens) {
	for _, l := range codexCounts(text) {
		if total := l.Payload.Info.Total; total != nil {
			n = total.tokens()
		}
	}
	return n
}

// readRollout reads the limits and the usage that codex last wrote to the
// conversation's file in this run; codex exec does not print the limits.
func (s *codexStream) readRollout() {
	for _, l := range codexCounts(fileEnd(codexRollout(s.state, s.session))) {
		if l.At.Before(s.begun) {
			continue
		}
		s.codexWindow("primary", l.Payload.Limits.Primary)
		s.codexWindow("secondary", l.Payload.Limits.Secondary)
		if total := l.Payload.Info.Total; total != nil {
			s.counted(total.tokens())
		}
	}
}

// codexWindow names a window by its length, as other providers do.
func (t *trouble) codexWindow(name string, w *codexWindow) {
	if w == nil {
		return
	}
	switch w.Minutes {
	case 300:
		name = "five_hour"
	case 10080:
		name = "seven_day"
	}
	t.window(api.AccountWindow{Name: name, UsedPercent: float64(w.Used), ResetsAt: epoch(float64(w.ResetsAt))})
}
