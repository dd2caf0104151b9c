package e2e_test

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/e2e/model"
)

// provider is a provider of models at which one login reaches its limit: it
// answers a number of requests, then refuses until a reset time, then answers
// again. Before the limit it answers with a tool call, so that a run that
// meets the limit is in the middle of a conversation.
type provider struct {
	*model.Server
	limit limit

	mu      sync.Mutex
	asked   []modelCall
	first   int           // number of requests of the login so far
	reset   time.Time     // zero before the first refusal
	refused chan struct{} // closed at the first refusal
	probing bool          // a request has arrived after the reset
	probed  time.Time     // when the first such request was answered
	all     chan struct{} // closed once as many conversations as agents have begun
}

// limit says when a login is refused, and with which answer.
type limit struct {
	login  string                                           // as in its header
	agents int                                              // number that use it: their first runs begin together
	after  int                                              // number of requests answered before
	length time.Duration                                    // from the first refusal to the reset
	again  int                                              // how often the first request after a reset meets the limit again
	refuse func(reset time.Time, now time.Time) model.Reply // the answer until then
}

// modelCall is a request that continues a conversation; a CLI's side requests are not
// included.
type modelCall struct {
	at      time.Time
	login   string
	session string // the conversation, as named by the CLI
	task    string // task of the conversation
	text    string // the whole conversation
	refused bool   // it met the limit
	said    string // the model's answer before the limit
}

// probeTime is how long the answer to the first request after the reset takes, so
// that a run that does not wait for it is noticed.
const probeTime = 700 * time.Millisecond

func newProvider(t *testing.T, l limit) *provider {
	t.Helper()
	p := &provider{limit: l, refused: make(chan struct{}), all: make(chan struct{})}
	m, err := model.Start(p.answer)
	if err != nil {
		t.Fatal(err)
	}
	p.Server = m
	t.Cleanup(m.Close)
	return p
}

var taskForm = regexp.MustCompile(`task [0-9]{2}\b`)

func (p *provider) answer(r model.Request) model.Reply {
	a := modelCall{
		at: time.Now(), text: r.Text, task: taskForm.FindString(r.Text),
		login:   cmp.Or(r.Header.Get("Authorization"), "Bearer "+r.Header.Get("X-Api-Key")),
		session: cmp.Or(r.Header.Get("X-Claude-Code-Session-Id"), r.Header.Get("Session-Id"), r.Header.Get("X-Session-Id")),
	}
	done := model.Reply{Text: "Done: " + a.task + "."}
	if a.login != "Bearer "+p.limit.login {
		p.note(a)
		return done
	}
	p.mu.Lock()
	p.first++
	n := p.first
	if n > p.limit.after && p.reset.IsZero() {
		close(p.refused)
		p.close(a.at)
	}
	if !p.reset.IsZero() && !a.at.Before(p.reset) && p.limit.again > 0 {
		p.limit.again--
		p.close(a.at)
	}
	reset := p.reset
	if reset.IsZero() {
		a.said = fmt.Sprintf("Step %d of %s.", n, a.task)
	}
	a.refused = a.at.Before(reset)
	p.asked = append(p.asked, a)
	probe := a.said == "" && !a.refused && !p.probing
	p.probing = p.probing || probe
	if n == p.limit.agents {
		close(p.all)
	}
	p.mu.Unlock()
	switch {
	case a.refused:
		return p.limit.refuse(reset, a.at)
	case a.said != "":
		<-p.all
		return model.Reply{Text: a.said, Tool: model.Shell(fmt.Sprintf("echo step %d", n))}
	case probe:
		time.Sleep(probeTime)
		p.mu.Lock()
		p.probed = time.Now()
		p.mu.Unlock()
	}
	return done
}

// close begins a limit. Headers give its end in seconds.
func (p *provider) close(now time.Time) {
	if p.reset = now.Add(p.limit.length); p.limit.length > time.Second {
		p.reset = p.reset.Truncate(time.Second)
	}
}

func (p *provider) note(a modelCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, a)
}

// lift ends the limit early, as if someone bought more.
func (p *provider) lift() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reset = time.Now()
	return p.reset
}

// of returns the limited login's requests so far, and when its limit ends.
func (p *provider) of() (list []modelCall, reset time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list = slices.DeleteFunc(slices.Clone(p.asked), func(a modelCall) bool { return a.login != "Bearer "+p.limit.login })
	return list, p.reset
}

// firstAnswer is when the first request after the reset was answered.
func (p *provider) firstAnswer() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.probed
}

// unified is the Messages API's answer to a subscription that has used up its
// five hours.
func unified(reset, _ time.Time) model.Reply {
	at := strconv.FormatInt(reset.Unix(), 10)
	return model.Reply{
		Status: http.StatusTooManyRequests, Message: "This request would exceed your account's rate limit. Please try again later.",
		Header: map[string]string{
			"x-should-retry":                                   "false",
			"anthropic-ratelimit-unified-status":               "rejected",
			"anthropic-ratelimit-unified-reset":                at,
			"anthropic-ratelimit-unified-representative-claim": "five_hour",
			"anthropic-ratelimit-unified-5h-status":            "rejected",
			"anthropic-ratelimit-unified-5h-utilization":       "1",
			"anthropic-ratelimit-unified-5h-reset":             at,
			"anthropic-ratelimit-unified-7d-status":            "allowed",
			"anthropic-ratelimit-unified-7d-utilization":       "0.6",
			"anthropic-ratelimit-unified-7d-reset":             strconv.FormatInt(reset.Add(24*time.Hour).Unix(), 10),
			"anthropic-ratelimit-unified-overage-status":       "rejected",
		},
	}
}

// used are the Messages API's headers for a subscription in each answer: how much of its
// five hours is used.
func used(part float64) map[string]string {
	at := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	status := "allowed"
	if part > 0.8 {
		status = "allowed_warning"
	}
	return map[string]string{
		"anthropic-ratelimit-unified-status":               status,
		"anthropic-ratelimit-unified-reset":                at,
		"anthropic-ratelimit-unified-representative-claim": "five_hour",
		"anthropic-ratelimit-unified-5h-status":            status,
		"anthropic-ratelimit-unified-5h-utilization":       strconv.FormatFloat(part, 'f', -1, 64),
		"anthropic-ratelimit-unified-5h-reset":             at,
	}
}

// codexLimit is the Responses API's answer to a ChatGPT plan that has used up
// its five hours.
func codexLimit(reset, now time.Time) model.Reply {
	left := int64(reset.Sub(now).Seconds())
	return model.Reply{
		Status: http.StatusTooManyRequests,
		Header: map[string]string{
			"x-codex-primary-used-percent":          "100",
			"x-codex-primary-window-minutes":        "300",
			"x-codex-primary-reset-at":              strconv.FormatInt(reset.Unix(), 10),
			"x-codex-primary-reset-after-seconds":   strconv.FormatInt(left, 10),
			"x-codex-secondary-used-percent":        "60",
			"x-codex-secondary-window-minutes":      "10080",
			"x-codex-secondary-reset-at":            strconv.FormatInt(reset.Add(24*time.Hour).Unix(), 10),
			"x-codex-secondary-reset-after-seconds": strconv.FormatInt(left+24*60*60, 10),
		},
		Failure: object{"error": object{
			"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus",
			"resets_at": reset.Unix(), "resets_in_seconds": left,
		}},
	}
}

// bare is a 429 that has at most a Retry-After.
func bare(retryAfter bool) func(reset, now time.Time) model.Reply {
	return func(reset, now time.Time) model.Reply {
		reply := model.Reply{Status: http.StatusTooManyRequests, Message: "Number of requests has exceeded your rate limit."}
		if retryAfter {
			reply.Header = map[string]string{"Retry-After": strconv.Itoa(1 + int(reset.Sub(now).Seconds()))}
		}
		return reply
	}
}

// expired is the Messages API's answer to an expired login.
func expired(_, _ time.Time) model.Reply {
	return model.Reply{Status: http.StatusUnauthorized, Message: "OAuth token has expired. Please obtain a new token or refresh your existing token."}
}

// overloaded is its answer to everybody when it is overloaded.
func overloaded(_, _ time.Time) model.Reply {
	return model.Reply{Status: 529, Message: "Overloaded"}
}
