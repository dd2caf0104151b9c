package agentd_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

// refusing stands before a model and refuses what is asked of it, while it is to.
type refusing struct {
	url    string
	with   atomic.Pointer[refusalAnswer] // nil: the model answers
	asked  atomic.Int64                  // requests refused
	passed atomic.Int64
}

type refusalAnswer struct {
	status int
	header map[string]string
	body   string
}

func refuseBefore(t *testing.T, m *model.Server) *refusing {
	t.Helper()
	to, err := url.Parse(m.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	transport := &http.Transport{}
	proxy.FlushInterval, proxy.Transport = -1, transport
	r := &refusing{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if a := r.with.Load(); a != nil && req.Method == http.MethodPost && !strings.HasSuffix(req.URL.Path, "count_tokens") {
			r.asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			for name, value := range a.header {
				w.Header().Set(name, value)
			}
			w.WriteHeader(a.status)
			fmt.Fprint(w, a.body)
			return
		}
		r.passed.Add(1)
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(func() { srv.Close(); transport.CloseIdleConnections() })
	r.url = srv.URL
	return r
}

// behind starts an agent of a real CLI whose model stands behind one that refuses.
// Claude Code has the token of a plan: for a key it tells no windows.
func behind(t *testing.T, kind string, change func(*agentd.Config)) (*agent, *model.Server, *refusing) {
	t.Helper()
	var r *refusing
	a, m := cliAt(t, kind, func(s *model.Server) string {
		r = refuseBefore(t, s)
		return r.url
	}, func(cfg *agentd.Config) {
		if kind == "claude" {
			cfg.Environ = slices.DeleteFunc(cfg.Environ, func(kv string) bool {
				return strings.HasPrefix(kv, "ANTHROPIC_API_KEY=") || strings.HasPrefix(kv, "CLAUDE_CODE_MAX_RETRIES=")
			})
			cfg.Environ = append(cfg.Environ, "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-of-a-test")
		}
		if change != nil {
			change(cfg)
		}
	})
	return a, m, r
}

// atLimit is how the provider of a CLI refuses at the limit of a plan.
func atLimit(kind string, resets time.Time) *refusalAnswer {
	at, later := fmt.Sprint(resets.Unix()), fmt.Sprint(resets.Add(24*time.Hour).Unix())
	if kind == "claude" {
		const p = "anthropic-ratelimit-unified-"
		return &refusalAnswer{429, map[string]string{
			p + "status": "rejected", p + "reset": at, p + "representative-claim": "five_hour",
			p + "5h-status": "rejected", p + "5h-utilization": "1", p + "5h-reset": at,
			p + "7d-status": "allowed", p + "7d-utilization": "0.6", p + "7d-reset": later,
			"x-should-retry": "false",
		}, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}}`}
	}
	const p = "x-codex-"
	return &refusalAnswer{429, map[string]string{
		p + "primary-used-percent": "100", p + "primary-window-minutes": "300", p + "primary-reset-at": at,
		p + "secondary-used-percent": "60", p + "secondary-window-minutes": "10080", p + "secondary-reset-at": later,
	}, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":` + at + `}}`}
}

// wantFull looks for the windows of an account at its limit.
func wantFull(t *testing.T, a *api.AgentAccount, name string, resets time.Time) {
	t.Helper()
	want := []api.AccountWindow{{Name: "five_hour", UsedPercent: 100}, {Name: "seven_day", UsedPercent: 60}}
	if a == nil || (name != "" && a.Name != name) || len(a.Windows) != len(want) {
		t.Errorf("account %+v, want %q with %+v", a, name, want)
		return
	}
	for i, w := range a.Windows {
		if at := resets.Add(time.Duration(i) * 24 * time.Hour); w.Name != want[i].Name || w.UsedPercent != want[i].UsedPercent || w.ResetsAt == nil || !w.ResetsAt.Equal(at) {
			t.Errorf("window %+v, want %+v until %s", w, want[i], at)
		}
	}
}

// A run that meets the limit of a plan ends for that, with the instant at which it
// is over. The conversation goes on there, also in another process of the agent, with
// what was asked before and not asked anew.
func TestUsageLimitEndsRunAndConversationGoesOn(t *testing.T) {
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			a, m, r := behind(t, kind, nil)
			resets := time.Now().Add(2 * time.Hour).Truncate(time.Second)
			r.with.Store(atLimit(kind, resets))
			acc := a.submit(fenced("queue-a", 1, "mind the gap"))
			check := func(a *agent) {
				t.Helper()
				s := a.end("queue-a")
				wantError(t, s, "failed", "usage_limit", "limit")
				l := s.Limit
				if l == nil || l.ResetsAt == nil || !l.ResetsAt.Equal(resets) || l.Window != "five_hour" || l.Source != "event" || l.Began || !strings.Contains(l.Text, "limit") {
					t.Errorf("limit %+v, want one until %s", l, resets)
				}
				account := a.daemon.Status().Account
				if account == nil || !strings.HasPrefix(account.Name, kind+"-") {
					t.Fatalf("account %+v", account)
				}
				wantFull(t, account, "", resets)
				wantFull(t, s.Account, account.Name, resets)
			}
			check(a)
			gone(t, acc.TaskID)
			if n := r.asked.Load(); n != 1 {
				t.Errorf("%d requests at the limit", n)
			}
			a.stop()
			a = start(t, a.cfg)
			check(a)

			r.with.Store(nil)
			m.Use(model.Replies(model.Reply{Text: "Minded."}))
			next := fenced("queue-a", 2, "mind the gap")
			next.SessionID, next.Resume = acc.SessionID, &api.AgentResume{}
			s := a.end(a.submit(next).TaskID)
			if s.State != "completed" || s.Output != "Minded." || s.SessionID != acc.SessionID || s.Limit != nil {
				t.Fatalf("%s %q in %s, error %+v, limit %+v", s.State, s.Output, s.SessionID, s.Error, s.Limit)
			}
			text := m.Requests()[len(m.Requests())-1].Text
			if strings.Count(text, "mind the gap") != 1 || !strings.Contains(text, "Go on where you left off") {
				t.Errorf("the model was asked %q", text)
			}
			if s.Account == nil || s.Account.AnsweredAt == nil || a.daemon.Status().Account.AnsweredAt == nil {
				t.Errorf("that it answered is not told: %+v", s.Account)
			}
		})
	}
}
