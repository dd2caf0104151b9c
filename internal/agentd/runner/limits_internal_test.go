package runner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// streamAt is the stream of a kind at a fixed time, in a home of its own.
func streamAt(t *testing.T, kind, home string, at time.Time) Stream {
	t.Helper()
	r, err := New(kind, Options{Binary: "/bin/sh"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Plan(Task{Prompt: "x", Home: home, Env: []string{"TZ=UTC"}})
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return at }
	switch s := p.Stream.(type) {
	case *claudeStream:
		s.now = now
	case *codexStream:
		s.now, s.begun = now, at
	case *opencodeStream:
		s.now = now
	}
	return p.Stream
}

// The lines are output of the CLIs, each of the version in the file's name, recorded
// with an endpoint that refused as providers do.
func TestLimitsAsTheCLIsReportThem(t *testing.T) {
	at := time.Date(2026, 11, 27, 19, 8, 23, 0, time.UTC)
	in := func(d time.Duration) string { return at.Add(d).Format(time.RFC3339) }
	const day28 = "2026-11-28T21:06:40Z" // 1795900000
	for file, want := range map[string]struct {
		typ, window, resets, source, text string
		began, hopeless                   bool
		windows                           string
		outcome                           string // type of a run that ended there; "": as typ
	}{
		"claude-2.1.329-five-hour.jsonl": {typ: usageLimit, window: "five_hour", resets: "2026-11-27T19:18:22Z", source: byEvent,
			text: "You've hit your 5-hour limit · resets 7:18pm (UTC)", windows: "five_hour 100% 2026-11-27T19:18:22Z, seven_day 60% 2026-11-28T19:18:22Z"},
		"claude-2.1.329-warning.jsonl": {outcome: "none", windows: "five_hour 92% " + day28 + ", seven_day 60% 2026-11-30T00:53:20Z"},
		"claude-2.1.329-seven-day-in-the-middle.jsonl": {typ: usageLimit, window: "seven_day", resets: day28, source: byEvent, began: true,
			text: "You've hit your weekly limit · resets Nov 28, 9:06pm (UTC)", windows: "seven_day 101% " + day28},
		"claude-2.1.329-bare-429.jsonl": {typ: usageLimit, source: byGuess, text: "the model's API answers 429 (rate_limit)", hopeless: true},
		// It reports a wait of 34 s, which includes up to a quarter of its own.
		"claude-2.1.329-retry-after-30.jsonl":       {typ: usageLimit, resets: in(27592 * time.Millisecond), source: byHeader, text: "the model's API answers 429 (rate_limit)", hopeless: true},
		"claude-2.1.329-retry-after-300-plan.jsonl": {typ: usageLimit, source: byEvent, text: "API Error: Server is temporarily limiting requests (not your usage limit) · Number of requests has exceeded your rate limit"},
		"claude-2.1.329-retry-after-300-key.jsonl":  {typ: usageLimit, source: byEvent, text: "API Error: Request rejected (429) · Number of requests has exceeded your rate limit"},
		"claude-2.1.329-overloaded.jsonl":           {typ: overloaded, source: byEvent, text: "API Error: 529 Number of requests"},
		"claude-2.1.329-login-expired.jsonl":        {typ: refusedLogin, source: byEvent, text: "Failed to authenticate. API Error: 401 OAuth token has expired.", hopeless: true},
		"claude-2.1.329-no-credit.jsonl":            {typ: usageLimit, source: byEvent, text: "Credit balance is too low"},
		"codex-0.169.0-usage-limit.jsonl":           {typ: usageLimit, resets: "2026-11-28T21:06:00Z", source: byText, text: "You’ve hit your usage limit."},
		"codex-0.169.0-overloaded.jsonl":            {typ: overloaded, source: byText, text: "unexpected status 529"},
		"codex-0.169.0-tokens-per-minute.jsonl":     {typ: usageLimit, resets: in(11054 * time.Millisecond), source: byText, text: "Reconnecting... 5/5 (rate limit exceeded:", hopeless: true},
		"codex-0.169.0-quota.jsonl":                 {typ: usageLimit, source: byGuess, text: "Quota exceeded. Check your plan and billing details."},
		"codex-0.169.0-bare-429.jsonl":              {typ: usageLimit, source: byGuess, text: "exceeded retry limit, last status: 429 Too Many Requests"},
		"codex-0.169.0-retry-after-300.jsonl":       {typ: usageLimit, source: byGuess, text: "Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"},
		"opencode-1.18.33-bare-429.log":             {typ: usageLimit, source: byText, text: "the model's API fails: Rate limit reached. Try again later.", hopeless: true},
		"opencode-1.18.33-retry-after-300.log":      {typ: usageLimit, source: byText, text: "the model's API fails: Rate limit reached. Try again later."},
	} {
		t.Run(file, func(t *testing.T) {
			kind, _, _ := strings.Cut(file, "-")
			s := streamAt(t, kind, t.TempDir(), at)
			lines, err := os.ReadFile(filepath.Join("testdata", "limits", file))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(lines)) {
				if strings.HasSuffix(file, ".log") {
					s.StderrLine([]byte(strings.TrimSpace(line)))
				} else {
					s.Line([]byte(strings.TrimSpace(line)))
				}
			}
			_, hopeless := s.Trouble()
			o := s.Outcome(Exit{Code: 1, Text: "exit status 1"})
			h := s.Heard()
			if h.Limit == nil {
				h.Limit = &api.AgentLimit{}
			}
			if typ := cmp.Or(want.outcome, want.typ); h.ErrType != want.typ || (typ != "none" && (o.ErrType != typ || o.Limit != h.Limit || o.ErrMessage == "")) || (typ == "none" && o.ErrType != "") {
				t.Errorf("heard %q, ended as %q (%s) with %+v", h.ErrType, o.ErrType, o.ErrMessage, o.Limit)
			}
			l := h.Limit
			if l.Window != want.window || instant(l.ResetsAt) != want.resets || l.Source != want.source || !strings.HasPrefix(l.Text, want.text) || l.Began != want.began || hopeless != want.hopeless {
				t.Errorf("limit %+v until %s, hopeless %v; want %+v", l, instant(l.ResetsAt), hopeless, want)
			}
			var windows []string
			for _, w := range h.Windows {
				windows = append(windows, fmt.Sprintf("%s %v%% %s", w.Name, w.UsedPercent, instant(w.ResetsAt)))
			}
			if got := strings.Join(windows, ", "); got != want.windows {
				t.Errorf("windows %q, want %q", got, want.windows)
			}
		})
	}
}

func instant(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.Truncate(time.Second).Format(time.RFC3339)
}

// The limits that codex stored in the conversation have precedence over its message;
// limits from an earlier run do not count.
func TestCodexWindowsAreReadFromItsConversation(t *testing.T) {
	const id = "01a21e6c-6e37-7d02-82f7-b96b42e3b329"
	home := t.TempDir()
	dir := filepath.Join(home, ".codex", "sessions", "2026", "11", "27")
	lines, err := os.ReadFile(filepath.Join("testdata", "limits", "codex-0.169.0-rollout.jsonl"))
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "rollout-2026-11-27T19-12-32-"+id+".jsonl"), append([]byte(strings.Repeat("x", stateEnd)+"\n"), lines...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	written := time.Date(2026, 11, 27, 19, 12, 32, 0, time.UTC)
	for at, want := range map[time.Time]string{written: "2026-11-28T21:06:40Z", written.Add(time.Minute): "2026-11-28T21:06:00Z"} {
		s := streamAt(t, "codex", home, at)
		s.Line([]byte(`{"type":"thread.started","thread_id":"` + id + `"}`))
		s.Line([]byte(`{"type":"turn.failed","error":{"message":"You’ve hit your usage limit. Visit https://example.org to purchase more credits or try again at Nov 28th, 2026 9:06 PM."}}`))
		o := s.Outcome(Exit{})
		if o.ErrType != usageLimit || instant(o.Limit.ResetsAt) != want || (len(s.Heard().Windows) == 2) != (at == written) {
			t.Errorf("at %s: until %s, want %s; %+v, %+v", at, instant(o.Limit.ResetsAt), want, o.Limit, s.Heard().Windows)
		}
	}
}

// A text counts as a limit only if it is about what the account may do, not about
// another limit, quota or number.
func TestSentencesOfLimits(t *testing.T) {
	for text, want := range map[string]string{
		"Claude AI usage limit reached|1770170400":                     usageLimit,
		"5-hour limit reached ∙ resets 3pm":                            usageLimit,
		"You've hit your weekly limit · resets Nov 28, 9:06pm (UTC)":   usageLimit,
		"API Error: 429 {\"type\":\"error\"}":                          usageLimit,
		"Rate limit reached for gpt-5.1 on tokens per min":             usageLimit,
		"Too Many Requests":                                            usageLimit,
		"You exceeded your current quota, please check your plan":      usageLimit,
		"Quota exceeded. Check your plan and billing details.":         usageLimit,
		"unexpected status 529 <unknown status code>: no":              overloaded,
		"Selected model is at capacity. Please try a different model.": overloaded,
		"Overloaded":                             overloaded,
		"context length limit exceeded":          "",
		"write: Disk quota exceeded (error 122)": "",
		"time limit exceeded after 429 s":        "",
		"request 529 failed":                     "",
		"the limit of turns is reached":          "",
		"no such model":                          "",
	} {
		s := streamAt(t, "codex", t.TempDir(), time.Unix(1795807102, 0))
		said, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		s.Line([]byte(`{"type":"turn.failed","error":{"message":` + string(said) + `}}`))
		if o := s.Outcome(Exit{}); s.Heard().ErrType != want || o.ErrType != cmp.Or(want, "claude_error") {
			t.Errorf("%q: %q, ended as %q", text, s.Heard().ErrType, o.ErrType)
		}
	}
}

func TestResetTimesInSentences(t *testing.T) {
	vienna, err := time.LoadLocation("Europe/Vienna")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 2, 3, 18, 30, 10, 0, vienna)
	for text, want := range map[string]string{
		"try again at 7:38 PM.":                              "2026-02-03T19:38:00+01:00",
		"or try again at 7:38 AM":                            "2026-02-04T07:38:00+01:00",
		"You've hit your limit · resets 6:30pm":              "2026-02-03T18:31:00+01:00", // this minute
		"You've hit your limit · resets 6:25pm":              "2026-02-03T18:26:00+01:00", // just over
		"You've hit your limit · resets 6:15pm":              "2026-02-04T18:15:00+01:00",
		"5-hour limit reached ∙ resets 3pm":                  "2026-02-04T15:00:00+01:00",
		"resets 3pm (America/New_York)":                      "2026-02-03T21:00:00+01:00",
		"resets 7:18pm (UTC)":                                "2026-02-03T20:18:00+01:00",
		"resets 7:18pm (Nowhere/Land)":                       "2026-02-03T19:18:00+01:00",
		"resets Feb 5, 9:06pm (UTC)":                         "2026-02-05T22:06:00+01:00",
		"resets Jan 5, 9pm":                                  "2027-01-05T21:00:00+01:00", // of next year
		"try again at Feb 3rd, 2027 12:05 AM.":               "2027-02-03T00:05:00+01:00",
		"try again at Dec 31st, 9999 11:59 PM":               "9999-12-31T23:59:00+01:00",
		"try again at Feb 3rd, 2020 12:05 PM":                "2020-02-03T12:05:00+01:00", // as given
		"try again in 3 hours 12 minutes":                    "2026-02-03T21:42:10+01:00",
		"Please try again in 1 day, 2 hours and 3 minutes.":  "2026-02-04T20:33:10+01:00",
		"Please try again in 11.054s. Visit https://x.org":   "2026-02-03T18:30:21+01:00",
		"Please try again in 6m0s.":                          "2026-02-03T18:36:10+01:00",
		"Please try again in 250ms":                          "2026-02-03T18:30:10+01:00",
		"limit reached, retry after 120 seconds":             "2026-02-03T18:32:10+01:00",
		"resets at 2026-02-04T01:02:03Z.":                    "2026-02-04T02:02:03+01:00",
		"resets at 19:45":                                    "2026-02-03T19:45:00+01:00",
		"Claude AI usage limit reached|1770170400":           "2026-02-04T03:00:00+01:00",
		"Claude AI usage limit reached|0000000000":           "",
		"please try again later":                             "",
		"try again in a moment":                              "",
		"try again at 7":                                     "",
		"try again at 99:99 PM":                              "",
		"try again at 13:00 PM":                              "",
		"try again at Foo 3rd, 2027 12:05 AM":                "",
		"try again in 999999999 days":                        "",
		"resets " + strings.Repeat("9", 5000) + " hours":     "",
		"resets in -5 minutes":                               "",
		"resets\n\tat   7:38\nPM":                            "2026-02-03T19:38:00+01:00",
		"try again at " + strings.Repeat("Nov 28th, ", 1000): "",
	} {
		at, ok := resetTime(text, now, vienna)
		got := ""
		if ok {
			got = at.In(vienna).Truncate(time.Second).Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%.80q: %q, want %q", text, got, want)
		}
	}
}

// Whatever an event contains, the reported values are valid: one line of text, a time
// that JSON can represent, a percentage that is a number.
func TestLimitsOfHostileEvents(t *testing.T) {
	event := func(info string) string { return `{"type":"rate_limit_event","rate_limit_info":` + info + `}` }
	for line, want := range map[string]string{ // window, reset and share
		event(`{"status":"rejected","resetsAt":-5,"rateLimitType":"five_hour"}`):                                         "five_hour  100",
		event(`{"status":"rejected","resetsAt":1e300,"rateLimitType":"five_hour"}`):                                      "five_hour  100",
		event(`{"status":"rejected","resetsAt":253402300799,"rateLimitType":"five_hour"}`):                               "five_hour 9999-12-31T23:59:59Z 100",
		event(`{"status":"rejected","resetsAt":253402300800,"rateLimitType":"five_hour"}`):                               "five_hour  100",
		event(`{"status":"rejected","resetsAt":1000,"rateLimitType":"five_hour"}`):                                       "five_hour 1970-01-01T00:16:40Z 100",
		event(`{"status":"rejected","resetsAt":"NaN","rateLimitType":"five_hour"}`):                                      "five_hour  100",
		event(`{"status":"rejected","resetsAt":{},"rateLimitType":["x"]}`):                                               "",
		event(`{"status":"rejected","rateLimitType":"five_hour","unifiedWindows":{"five_hour":{"utilization":"NaN"}}}`):  "five_hour  100",
		event(`{"status":"allowed","unifiedWindows":{"a":{"utilization":-3},"b":{"utilization":1e30},"\u001b[31m":{}}}`): "a  0, b  1000",
		event(`{"status":"allowed","unifiedWindows":[1,2]}`):                                                             "",
		event(`{"status":"rejected","isUsingOverage":true,"resetsAt":1895807102,"rateLimitType":"five_hour"}`):           "",
		event(`7`): "",
		`{"type":"assistant","error":"rate_limit","api_error":{"a":1},"api_error_status":"429","message":{"content":[{"type":"text","text":"` + strings.Repeat(`\u001b[31mbusy\n`, 400) + `"}]}}`: "",
	} {
		s := streamAt(t, "claude", t.TempDir(), time.Unix(1795807102, 0))
		s.Line([]byte(line))
		h := s.Heard()
		var got []string
		for _, w := range h.Windows {
			got = append(got, fmt.Sprintf("%s %s %v", w.Name, instant(w.ResetsAt), w.UsedPercent))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%.120s: %q, want %q", line, got, want)
		}
		wellFormed(t, h)
		if refused := strings.Contains(line, "rejected") && !strings.Contains(line, "Overage") || strings.Contains(line, "rate_limit\","); refused != (h.ErrType == usageLimit) {
			t.Errorf("%.120s: %q", line, h.ErrType)
		}
	}
}

// wellFormed fails the test if the recorded values are not valid.
func wellFormed(t *testing.T, h ProviderReport) {
	t.Helper()
	if _, err := json.Marshal(h); err != nil {
		t.Errorf("%+v: %v", h, err)
	}
	if l := h.Limit; (l == nil) != (h.ErrType == "") || (l != nil && (l.Text == "" || len(l.Text) > 300 || strings.ContainsAny(l.Text, "\n\t\x1b\r") || l.Source == "")) {
		t.Errorf("%q with %+v", h.ErrType, l)
	}
	if len(h.Windows) > maxWindows {
		t.Errorf("%d windows", len(h.Windows))
	}
}

// A limit ends when the model answers.
func TestLimitThatIsOver(t *testing.T) {
	at := time.Unix(1795807102, 0)
	for kind, lines := range map[string][]string{
		"claude": {`{"type":"system","subtype":"api_retry","attempt":1,"retry_delay_ms":550,"error_status":429,"error":"rate_limit"}`, `{"type":"stream_event","event":{"type":"message_start"}}`},
		"codex":  {`{"type":"error","message":"Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"}`, `{"type":"item.completed","item":{"type":"reasoning"}}`},
	} {
		s := streamAt(t, kind, t.TempDir(), at)
		for range 3 { // each time is the first in a row
			s.Line([]byte(lines[0]))
			if _, hopeless := s.Trouble(); s.Heard().ErrType != usageLimit || s.Heard().Patience != DefaultLimitWait || hopeless {
				t.Fatalf("%s: %+v, hopeless %v", kind, s.Heard(), hopeless)
			}
			s.Line([]byte(lines[1]))
			if h := s.Heard(); h.Limit != nil || h.ErrType != "" || h.Patience != 0 || !h.AnsweredAt.Equal(at) {
				t.Errorf("%s: %+v", kind, h)
			}
		}
	}
	s := streamAt(t, "opencode", t.TempDir(), at)
	s.StderrLine([]byte(`level=ERROR message="stream error" small=false error.error="AI_APICallError: Not now"`))
	if h := s.Heard(); h.ErrType != usageLimit || h.Limit.Source != byGuess || h.Patience != 3*DefaultLimitWait {
		t.Errorf("%+v, %+v", h, h.Limit)
	}
	if o := s.Outcome(Exit{Text: "exit status 1"}); o.ErrType != "no_result" || o.Limit != nil {
		t.Errorf("%+v", o) // it did not fail because of the limit
	}
	s.StderrLine([]byte(`level=ERROR message="stream error" session.id=ses_1aB small=false error.error="AI_APICallError: Too Many Requests"`))
	if s.Session() != "ses_1aB" || s.Heard().ErrType != usageLimit {
		t.Errorf("session %q, %+v", s.Session(), s.Heard())
	}
	s.Line([]byte(`{"type":"step_start","sessionID":"ses_1aB"}`))
	if s.Heard().Limit != nil || s.Heard().AnsweredAt.IsZero() {
		t.Errorf("%+v", s.Heard())
	}
	s.Line([]byte(`{"type":"error","error":{"name":"APIError","data":{"message":"slow down","statusCode":429,"responseHeaders":{"retry-after":"90"}}}}`))
	if o := s.Outcome(Exit{}); o.ErrType != usageLimit || o.Limit.Source != byHeader || !o.Limit.Began || o.Limit.ResetsAt.Sub(at) != 90*time.Second {
		t.Errorf("%+v %+v", o, o.Limit)
	}
	// Codex's log shows that its model writes; a failed answer does not count.
	codex := streamAt(t, "codex", t.TempDir(), at)
	for line, answers := range map[string]bool{`{"type":"response.failed"}`: false, `{"type":"response.output_text.delta"}`: true} {
		codex.StderrLine([]byte("x TRACE codex_api::sse::responses: SSE event: " + line))
		if h := codex.Heard(); answers && h.AnsweredAt.IsZero() {
			t.Errorf("%s: %+v", line, h)
		}
	}
}

// Both vendors and compatible endpoints report their limits in headers.
func TestLimitsInHeaders(t *testing.T) {
	now := time.Date(2026, 2, 3, 18, 30, 10, 0, time.UTC)
	for want, header := range map[string]map[string]string{
		"requests 100 2026-02-03T18:31:00Z, tokens 25 2026-02-03T18:40:00Z": {
			"anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-02-03T18:31:00Z",
			"anthropic-ratelimit-tokens-limit": "80000", "anthropic-ratelimit-tokens-remaining": "60000", "anthropic-ratelimit-tokens-reset": "2026-02-03T18:40:00Z",
		},
		"five_hour 92 2026-02-03T19:00:00Z, seven_day 101 ": {
			"anthropic-ratelimit-unified-5h-utilization": "0.92", "anthropic-ratelimit-unified-5h-reset": "1770145200",
			"anthropic-ratelimit-unified-7d-utilization": "1.01", "anthropic-ratelimit-unified-7d-reset": "soon",
		},
		"requests 50 2026-02-03T18:36:10Z, tokens 100 2026-02-03T18:30:10Z": {
			"x-ratelimit-limit-requests": "2", "x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "6m0s",
			"x-ratelimit-limit-tokens": "10", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms",
		},
		"requests 0 2026-02-03T18:30:40Z": {"x-ratelimit-limit-requests": "2", "x-ratelimit-remaining-requests": "2", "x-ratelimit-reset-requests": "30"},
		"requests 0 ":                     {"x-ratelimit-limit-requests": "2", "x-ratelimit-remaining-requests": "2", "x-ratelimit-reset-requests": "NaN"},
		"tokens 1000 ":                    {"x-ratelimit-limit-tokens": "1", "x-ratelimit-remaining-tokens": "-1e9", "x-ratelimit-reset-tokens": "-5s"},
		"":                                {"x-ratelimit-limit-requests": "0", "x-ratelimit-remaining-requests": "NaN", "x-ratelimit-limit-tokens": "5", "x-ratelimit-remaining-tokens": "inf"},
	} {
		h := http.Header{}
		for name, value := range header {
			h.Set(name, value)
		}
		var got []string
		for _, w := range headerWindows(h, now) {
			got = append(got, fmt.Sprintf("%s %.0f %s", w.Name, w.UsedPercent, instant(w.ResetsAt)))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%v: %q, want %q", header, got, want)
		}
	}
}

// FuzzLimits uses any text as a provider's message.
func FuzzLimits(f *testing.F) {
	for _, text := range []string{"usage limit: try again at Nov 28th, 2026 9:06 PM", "429, resets 3pm (UTC)", "quota|1770170400", "rate limit: retry in 1h2m3s", "overloaded", "\x1b[31mlimit reached\r\n"} {
		f.Add(text, 3.5)
	}
	f.Fuzz(func(t *testing.T, text string, n float64) {
		said, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		for kind, lines := range map[string][]string{
			"claude":   {`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":` + fmt.Sprint(n) + `,"rateLimitType":` + string(said) + `,"utilization":` + fmt.Sprint(n) + `}}`, `{"type":"result","is_error":true,"result":` + string(said) + `}`},
			"codex":    {`{"type":"error","message":` + string(said) + `}`},
			"opencode": {`{"type":"error","error":{"data":{"message":` + string(said) + `,"responseHeaders":{"retry-after":"` + fmt.Sprint(n) + `"},"statusCode":429}}}`},
		} {
			s := streamAt(t, kind, "", time.Unix(1795807102, 0))
			for _, line := range lines {
				s.Line([]byte(line))
			}
			s.StderrLine([]byte(`level=ERROR message="stream error" small=false error.error="` + text + `"`))
			if o := s.Outcome(Exit{Text: "exit status 1"}); o.ErrType != "" && o.ErrMessage == "" {
				t.Errorf("%s: a failure without a message", kind)
			}
			wellFormed(t, s.Heard())
		}
		var q LimitsQuery
		if window := `{"usedPercent":` + fmt.Sprint(n) + `,"windowDurationMins":` + string(said) + `,"resetsAt":` + fmt.Sprint(n) + `}`; !q.Line([]byte(text)) {
			q.Line([]byte(`{"id":2,"result":{"rateLimits":{"primary":` + window + `,"secondary":` + string(said) + `}},"error":null}`))
		}
		wellFormed(t, q.heard.heard)
	})
}

// opencode reports an error on standard output and in its log, in either order. The
// event decides what ended the run.
func TestOpencodeErrorEndsTheRunWhateverItsLogSaysThen(t *testing.T) {
	event := `{"type":"error","sessionID":"ses_1aB","error":{"name":"APIError","data":{"message":"no such thing","statusCode":400}}}`
	log := `level=ERROR message="stream error" small=false error.error="AI_APICallError: no such thing"`
	for _, logFirst := range []bool{true, false} {
		s := &opencodeStream{trouble: commonRunner{}.trouble(Task{})}
		if logFirst {
			s.StderrLine([]byte(log))
		}
		s.Line([]byte(event))
		if !logFirst {
			s.StderrLine([]byte(log))
		}
		if o := s.Outcome(Exit{Code: 1}); o.ErrType != "claude_error" || o.Limit != nil || o.ErrMessage != "no such thing" {
			t.Errorf("log first %v: %+v", logFirst, o)
		}
	}
}
