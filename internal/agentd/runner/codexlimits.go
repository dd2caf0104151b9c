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

// codexLogin is what codex says of a login that was refused or has expired.
var codexLogin = regexp.MustCompile(`^unexpected status 401\b|(?i)access token could not be refreshed|please (?:log out and )?sign in again`)

// codexBusy is what it says of a refusal for too many requests.
var codexBusy = regexp.MustCompile(`\b429 Too Many Requests\b|^(?:Reconnecting\.\.\. \d+/\d+ \()?rate limit exceeded\b`)

// retries notes that codex will ask the API again, if the error says so.
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

// gaveUp notes what limit the error tells of that ended the run. What codex wrote
// of its windows into the conversation is more exact than its sentence, which has
// no seconds.
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

// codexWindow is how much of a limit is used, as codex keeps it.
type codexWindow struct {
	Used     number `json:"used_percent"`
	Minutes  number `json:"window_minutes"`
	ResetsAt number `json:"resets_at"`
}

// codexLine is a line of a conversation's file that has limits in it, or what was used.
type codexLine struct {
	At      time.Time `json:"timestamp"`
	Payload struct {
		Limits struct {
			Primary   *codexWindow `json:"primary"`
			Secondary *codexWindow `json:"secondary"`
		} `json:"rate_limits"`
		Info struct {
			Total *codexUsage `json:"total_token_usage"` // of all its runs
		} `json:"info"`
	} `json:"payload"`
}

// stateEnd is how much of the end of a CLI's file of a conversation is read.
const stateEnd = 4 << 20

// fileEnd is the end of a file, nil for none.
func fileEnd(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > stateEnd {
		_, _ = f.Seek(-stateEnd, io.SeekEnd) // else from the beginning
	}
	text, _ := io.ReadAll(io.LimitReader(f, stateEnd)) // a part serves as well
	return text
}

// codexCounts are the lines of a conversation's file in which codex wrote what was used.
func codexCounts(text []byte) (list []codexLine) {
	for line := range bytes.Lines(text) {
		var l codexLine
		if bytes.Contains(line, []byte(`"token_count"`)) && json.Unmarshal(line, &l) == nil {
			list = append(list, l)
		}
	}
	return list
}

// codexCounted is what it wrote last.
func codexCounted(text []byte) (n tokens) {
	for _, l := range codexCounts(text) {
		if total := l.Payload.Info.Total; total != nil {
			n = total.tokens()
		}
	}
	return n
}

// readRollout notes the limits that codex wrote last into the conversation in this
// run, which exec prints none of, and what was used.
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

// codexWindow names a window by its length, as other providers call it.
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
