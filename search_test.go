package signalbox_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

var searchNow = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func parseQuery(t *testing.T, text string) signalbox.Query {
	t.Helper()
	q, err := signalbox.ParseQuery(text, searchNow)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return q
}

func TestQueryInItsCanonicalForm(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "   ": "", `""`: "",
		"billing":     `"billing"`,
		`"two words"`: `"two words"`,
		"two words":   `"two" "words"`,
		`agent:coder state:failed since:2h "billing"`: `state:failed agent:coder "billing" since:2h`,
		"state:failed,timeout":                        "state:failed,timeout",
		"state:failed state:timeout state:failed":     "state:failed,timeout",
		"STATE:Failed":                                "state:failed",
		"-state:failed -state:timeout agent:a":        "-state:failed,timeout agent:a",
		`-billing -"x y"`:                             `-"billing" -"x y"`,
		`job:"nightly run",weekly`:                    `job:"nightly run",weekly`,
		"queue:agent:coder queue:pool:claude":         "queue:agent:coder,pool:claude",
		`"say \"hi\" \\ \n"`:                          `"say \"hi\" \\ \\n"`,
		"-":                                           `"-"`,
		"- x":                                         `"-" "x"`,
		":x":                                          `":x"`,
		"until:2026-01-31 since:2026-01-01T00:00:00Z": "since:2026-01-01T00:00:00Z until:2026-01-31",
		"older:7d":                        "older:7d",
		"cause:0A1b2c3d4e5f state:failed": "state:failed cause:0a1b2c3d4e5f",
		"by:ana@example.org mode:chat":    "mode:chat by:ana@example.org",
		"źródło\tünïcode":                 `"źródło" "ünïcode"`,
	} {
		q := parseQuery(t, text)
		if got := q.String(); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
		again := parseQuery(t, want)
		if got := again.String(); got != want {
			t.Errorf("%s becomes %s", want, got)
		}
	}
}

func TestQueryErrorsNameTheWord(t *testing.T) {
	for text, want := range map[string][]string{
		"agnet:coder":                       {`"agnet" is no key in agnet:coder`, "did you mean agent?", "quotes"},
		"billing http://x":                  {`"http" is no key in http://x`, "quotes"},
		"state:faild":                       {"state:faild", "did you mean failed?"},
		"state:":                            {"state:: a value is missing"},
		"state:failed,":                     {"a value is missing"},
		"reason:gone":                       {`"gone" is no reason`, "lost"},
		"cause:disk":                        {`"disk" is no cause`, "12 hexadecimal digits"},
		"mode:x":                            {`"x" is no mode`},
		"source:cron":                       {`"cron" is no source`, "scheduler"},
		"queue:nowhere":                     {`"nowhere" is not a queue`, "pool:KIND"},
		"since:yesterday":                   {`"yesterday" is no time`, "7d"},
		"since:-2h":                         {"no time"},
		"until:0001-01-01":                  {"no time"}, // the zero time, which would mean no bound
		"since:1h since:2h":                 {"since can be given once"},
		"-since:2h":                         {"-since:2h", "minus"},
		"older:1h,2h":                       {"once"},
		`"no end`:                           {"no end"},
		`agent:"no end`:                     {"no end"},
		`"a"b`:                              {"put a space"},
		"a\x00b":                            {"cannot be printed"},
		"\xff":                              {"UTF-8"},
		strings.Repeat("x", 1001):           {"1000 bytes, not 1001"},
		strings.Repeat("y", 200) + ":value": {"…"},
	} {
		_, err := signalbox.ParseQuery(text, searchNow)
		var e *signalbox.Error
		if !errors.As(err, &e) || e.Code != signalbox.CodeValidation || e.Field != "q" {
			t.Errorf("%q: %v", text, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v: want %q in it", text, err, part)
			}
		}
	}
}

func TestQueryTakes(t *testing.T) {
	failed := signalbox.Task{
		ID: "queue-0123456789abcdefghjkmnpqrs", State: signalbox.Failed, Reason: signalbox.ReasonExitNonzero, Queue: "work", Agent: "coder",
		Source: signalbox.SourceScheduler, SourceJob: "nightly", SessionID: "s1", Preview: "Fix the Billing report",
		Owner: "user:ana", OwnerEmail: "ana@example.org", CreatedAt: searchNow.Add(-3 * time.Hour), EndedAt: searchNow.Add(-time.Hour),
	}
	waiting := signalbox.Task{
		ID: "queue-zzzzzzzzzzzzzzzzzzzzzzzzzz", State: signalbox.Pending, Queue: "agent:coder", Agent: "other", Source: signalbox.SourceCLI,
		Mode: signalbox.ModeChat, Preview: "hello", Owner: "service:ci", CreatedAt: searchNow.Add(-3 * time.Hour),
	}
	for _, c := range []struct {
		query           string
		failed, waiting bool
	}{
		{"", true, true},
		{"billing", true, false},
		{`"the billing"`, true, false},
		{"billing hello", false, false},
		{"-billing", false, true},
		{"agent:coder", true, true},
		{"agent:other", false, false}, // a waiting task keeps the agent of an earlier claim in its row
		{"agent:x,coder", true, true},
		{"state:failed", true, false},
		{"state:ended", true, false},
		{"state:waiting", false, true},
		{"state:running", false, false},
		{"-state:ended", false, true},
		{"reason:exit_nonzero", true, false},
		{"-reason:lost", true, true},
		{"queue:work", true, false},
		{"queue:agent:coder", false, true},
		{"source:scheduler job:nightly", true, false},
		{"session:s1", true, false},
		{"mode:chat", false, true},
		{"mode:queue", true, false},
		{"by:ana", true, false},
		{"by:ANA@example.org", true, false},
		{"by:user:ana", true, false},
		{"by:ci", false, true},
		{"id:queue-0123", true, false},
		{"id:zzzz", false, true},
		{"since:2h", true, false}, // the other one was submitted before, and has not ended
		{"since:4h", true, true},
		{"until:2h", false, true},
		{"older:2h", true, true},
		{"older:4h", false, false},
		{"state:failed since:2026-01-31", true, false},
	} {
		q := parseQuery(t, c.query)
		parked := waiting
		parked.State = signalbox.Parked
		if q.Matches(&parked) != c.waiting {
			t.Errorf("%s takes the parked one: %v", c.query, !c.waiting)
		}
		if a, b := q.Matches(&failed), q.Matches(&waiting); a != c.failed || b != c.waiting {
			t.Errorf("%s takes the failed one: %v, the waiting one: %v", c.query, a, b)
		}
		if q.Matches(&failed) && !q.MatchesState(failed.State) || q.Matches(&waiting) && !q.MatchesState(waiting.State) {
			t.Errorf("%s takes what it could not", c.query)
		}
	}
}

func TestQueryOnly(t *testing.T) {
	q := parseQuery(t, "state:failed job:a,b -tool:x queue:work since:1h")
	since, until := q.Span()
	if q.SingleValue("state") != "failed" || q.SingleValue("job") != "" || q.SingleValue("tool") != "" || q.SingleValue("queue") != "work" || !since.Equal(searchNow.Add(-time.Hour)) || !until.IsZero() {
		t.Errorf("%s: state %q job %q tool %q queue %q %v %v", q.String(), q.SingleValue("state"), q.SingleValue("job"), q.SingleValue("tool"), q.SingleValue("queue"), since, until)
	}
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{`agent:coder -state:failed,timeout since:2h "bil\"ling"`, "a:b", `"`, `-"x"`, "queue:agent:x", `job:"a b",c`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := signalbox.ParseQuery(text, searchNow)
		if err != nil {
			if signalbox.CodeOf(err) != signalbox.CodeValidation {
				t.Fatal(err)
			}
			return
		}
		plain := q.String()
		if len(plain) > signalbox.MaxQueryBytes {
			return // quotes make it longer
		}
		again, err := signalbox.ParseQuery(plain, searchNow)
		if err != nil || again.String() != plain {
			t.Fatalf("%q becomes %q, and that %q, %v", text, plain, again.String(), err)
		}
	})
}
