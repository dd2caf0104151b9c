package agentd_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// refusing is a proxy in front of a model that refuses requests while it is told
// to.
type refusing struct {
	url   string
	with  atomic.Pointer[refusalAnswer] // nil: the model answers
	asked atomic.Int64                  // requests refused
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
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the CLI has disconnected
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		// A request without tools is a side request, such as for a title.
		if a := r.with.Load(); a != nil && bytes.Contains(body, []byte(`"tools"`)) && !strings.HasSuffix(req.URL.Path, "count_tokens") {
			r.asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			for name, value := range a.header {
				w.Header().Set(name, value)
			}
			w.WriteHeader(a.status)
			fmt.Fprint(w, a.body)
			return
		}
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(func() { srv.Close(); transport.CloseIdleConnections() })
	r.url = srv.URL
	return r
}

// behind starts an agent of a real CLI whose model is behind a refusing proxy.
// Claude Code gets the token of a subscription, because it reports no windows for
// a key.
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

// atLimit is the answer of a CLI's provider at the limit of a subscription.
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

// wantFull checks the windows of an account at its limit.
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

// A run that reaches the limit of a subscription ends with that reason and the time
// when the limit ends. The conversation can continue afterwards, even in another
// process of the agent, with the earlier prompt, which is not sent again.
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
				var out api.AgentOutput
				a.do("GET", "/task/queue-a/output?after=99999", nil, &out)
				wantFull(t, out.Account, account.Name, resets)
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
				t.Errorf("its answer is not reported: %+v", s.Account)
			}
		})
	}
}

// After a plain 429 each CLI waits as long as it likes. The agent ends the run at
// the second 429, or at once if the provider asks for a long wait.
func TestPlain429EndsRun(t *testing.T) {
	body := `{"type":"error","error":{"type":"rate_limit_error","message":"Rate limit reached. Try again later.","code":"rate_limit_exceeded"}}`
	for name, c := range map[string]struct {
		kind   string
		header map[string]string
		most   int64 // maximum number of refused requests
		source string
	}{
		"claude":            {"claude", nil, 2, "guess"},
		"claude, retry":     {"claude", map[string]string{"retry-after": "45"}, 1, "header"},
		"claude, far retry": {"claude", map[string]string{"retry-after": "300"}, 1, "event"},
		"codex":             {"codex", nil, 2, "guess"},
		"opencode":          {"opencode", nil, 2, "text"},
		"opencode, retry":   {"opencode", map[string]string{"retry-after": "300"}, 1, "text"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.kind == "opencode" { // it takes seconds to start
				soak.Only(t, "an opencode that says another thing of a 429 than package runner knows, or whose conversation is gone after it")
			}
			a, m, r := behind(t, c.kind, func(cfg *agentd.Config) {
				if c.kind == "opencode" {
					cfg.Runner.LimitWait = 3 * time.Second
				}
			})
			r.with.Store(&refusalAnswer{429, c.header, body})
			acc := a.submit(fenced("queue-a", 1, "mind the gap"))
			s := a.end(acc.TaskID)
			wantError(t, s, "failed", "usage_limit", "")
			l := s.Limit
			if l == nil || l.Source != c.source || l.Text == "" || l.Began || (l.ResetsAt != nil) != (c.source == "header") {
				t.Fatalf("limit %+v", l)
			}
			if l.ResetsAt != nil {
				if in := time.Until(*l.ResetsAt); in < 15*time.Second || in > 46*time.Second {
					t.Errorf("it is over in %s", in)
				}
			}
			if n := r.asked.Load(); n > c.most {
				t.Errorf("%d requests were made at the limit", n)
			}
			gone(t, acc.TaskID)

			if c.source != "guess" {
				soak.Only(t, "a Claude Code whose conversation is gone after one 429 that names its time, and not after two that do not")
			}
			r.with.Store(nil)
			m.Use(model.Replies(model.Reply{Text: "Minded."}))
			next := fenced("queue-a", 2, "mind the gap")
			next.SessionID, next.Resume = acc.SessionID, &api.AgentResume{Text: "Now go on."}
			if s := a.end(a.submit(next).TaskID); s.State != "completed" {
				t.Fatalf("%s %+v", s.State, s.Error)
			}
			text := m.Requests()[len(m.Requests())-1].Text
			if strings.Count(text, "mind the gap") != 1 || !strings.Contains(text, "Now go on.") {
				t.Errorf("the model was asked %q", text)
			}
		})
	}
}

// The work that the model did before a limit is in the continued conversation, and the
// limit reports that the run had begun.
func TestLimitInTheMiddleOfARun(t *testing.T) {
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			a, m, r := behind(t, kind, nil)
			resets := time.Now().Add(time.Hour).Truncate(time.Second)
			m.Use(func(q model.Request) model.Reply {
				if q.Turn > 0 {
					return model.Reply{Text: "All done."}
				}
				r.with.Store(atLimit(kind, resets)) // the next request is refused
				return model.Reply{Text: "First I look.", Tool: model.Shell("echo seen")}
			})
			acc := a.submit(fenced("queue-a", 1, "look around"))
			s := a.end(acc.TaskID)
			wantError(t, s, "failed", "usage_limit", "limit")
			if l := s.Limit; l == nil || !l.Began || l.ResetsAt == nil || !l.ResetsAt.Equal(resets) {
				t.Fatalf("limit %+v", l)
			}
			r.with.Store(nil)
			next := fenced("queue-a", 2, "look around")
			next.SessionID, next.Resume = acc.SessionID, &api.AgentResume{Began: true}
			if s = a.end(a.submit(next).TaskID); s.State != "completed" || s.Output != "All done." {
				t.Fatalf("%s %q %+v", s.State, s.Output, s.Error)
			}
			text := m.Requests()[len(m.Requests())-1].Text
			if strings.Count(text, "look around") != 1 || !strings.Contains(text, "First I look.") || !strings.Contains(text, "Go on where you left off") {
				t.Errorf("the model was asked %q", text)
			}
		})
	}
}

// If the conversation of a resumed run is gone, the run fails if it had begun;
// otherwise it starts again with its prompt.
func TestResumedConversationIsGone(t *testing.T) {
	a, m := cli(t, "claude", nil)
	m.Use(model.Replies(model.Reply{Text: "Hello."}))
	task := fenced("queue-a", 1, "mind the gap")
	task.SessionID, task.Resume = "talk-1", &api.AgentResume{Began: true}
	s := a.end(a.submit(task).TaskID)
	wantError(t, s, "failed", "cannot_resume", "talk-1")
	if len(m.Requests()) > 0 {
		t.Errorf("the model was asked %d times", len(m.Requests()))
	}
	task.Fence, task.Resume = 2, &api.AgentResume{}
	s = a.end(a.submit(task).TaskID)
	if s.State != "completed" || s.SessionID != "talk-1" || !strings.Contains(m.Requests()[0].Text, "mind the gap") {
		t.Errorf("%s %+v", s.State, s.Error)
	}
	alone := api.AgentTask{Prompt: "mind the gap", Isolated: true, Resume: &api.AgentResume{Began: true}}
	wantError(t, a.end(a.submit(alone).TaskID), "failed", "cannot_resume", "isolated run keeps no conversation")
	task.Fence, task.Resume = 3, &api.AgentResume{Text: "a\x00b"}
	a.refused(task, 400, "validation_error")
}

// An overloaded provider and a refused login are no limits that were reached,
// and both are reported.
func TestOverloadAndRefusedLogin(t *testing.T) {
	for name, c := range map[string]struct {
		kind   string
		answer refusalAnswer
		typ    string
	}{
		"claude, overloaded": {"claude", refusalAnswer{529, map[string]string{"x-should-retry": "false"}, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, "overloaded"},
		"claude, expired":    {"claude", refusalAnswer{401, nil, `{"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired."}}`}, "login_refused"},
		"codex, expired":     {"codex", refusalAnswer{401, nil, `{"error":{"message":"token expired"}}`}, "login_refused"},
		"codex, overloaded":  {"codex", refusalAnswer{529, nil, `{"error":{"message":"overloaded","type":"server_error"}}`}, "overloaded"},
	} {
		t.Run(name, func(t *testing.T) {
			a, _, r := behind(t, c.kind, func(cfg *agentd.Config) {
				cfg.Environ = append(cfg.Environ, "CLAUDE_CODE_MAX_RETRIES=2")
			})
			r.with.Store(&c.answer)
			s := a.end(a.submit(api.AgentTask{Prompt: "hello"}).TaskID)
			wantError(t, s, "failed", c.typ, "")
			if s.Limit == nil || s.Limit.Text == "" || s.Limit.ResetsAt != nil || s.Limit.Began || s.Limit.Source == "" {
				t.Errorf("limit %+v", s.Limit)
			}
		})
	}
}

// A CLI that stays silent after a limit is ended, and one that continues is not.
func TestSilenceAtALimitEndsRun(t *testing.T) {
	const result = `{"type":"result","subtype":"success","is_error":false,"result":"Done."}`
	for name, c := range map[string]struct {
		lines []string
		ends  string
		wait  time.Duration
	}{
		"silent":  {[]string{rejected, "exec sleep 600"}, "usage_limit", 200 * time.Millisecond},
		"goes on": {[]string{rejected, begins, "sleep 3", result}, "", 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, "claude")
			cfg.Runner.LimitWait = c.wait
			cfg.Runner.Binary = fakeClaude(t, c.lines...)
			a := start(t, cfg)
			acc := a.submit(api.AgentTask{Prompt: "x"})
			s := a.end(acc.TaskID)
			if c.ends == "" {
				if s.State != "completed" || s.Limit != nil {
					t.Errorf("%s %+v %+v", s.State, s.Error, s.Limit)
				}
				return
			}
			wantError(t, s, "failed", c.ends, "limit of its provider")
			if s.Limit == nil || s.Limit.ResetsAt == nil || s.Limit.ResetsAt.Unix() != 4070908800 {
				t.Errorf("%+v", s.Limit)
			}
			gone(t, acc.TaskID)
		})
	}
}

// fakeClaude is a program that prints these lines as Claude Code would: events, and
// between them shell commands to run.
func fakeClaude(t *testing.T, lines ...string) string {
	t.Helper()
	script := "#!/bin/sh\n"
	for _, l := range lines {
		if strings.HasPrefix(l, "{") {
			l = "echo '" + l + "'"
		}
		script += l + "\n"
	}
	path := filepath.Join(t.TempDir(), "claude")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	warning  = `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":4070908800,"rateLimitType":"five_hour","utilization":0.92}}`
	rejected = `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":4070908800,"rateLimitType":"five_hour"}}`
	begins   = `{"type":"assistant","message":{"content":[{"type":"text","text":"On it."}]}}`
	gaveUp   = `{"type":"result","is_error":true,"api_error":"usage_limit_reached","result":"limit reached"}`
)

// What a run learns about its account is reported while it runs, in the output, in
// the task and in the agent's status.
func TestWindowsAreReportedWhileTheRunWorks(t *testing.T) {
	cfg := config(t, "claude")
	over := `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","unifiedWindows":{"seven_day":{"utilization":1,"resetsAt":1700000000}}}}`
	cfg.Runner.Binary = fakeClaude(t, over, warning, begins, "exec sleep 600")
	a := start(t, cfg)
	id := a.submit(api.AgentTask{Prompt: "x"}).TaskID
	a.says(id, "On it.")
	var out api.AgentOutput
	a.do("GET", "/task/"+id+"/output", nil, &out)
	for who, account := range map[string]*api.AgentAccount{"output": out.Account, "task": a.get(id).Account, "agent": a.daemon.Status().Account} {
		if account != nil && who != "agent" { // the agent omits windows that have ended
			account.Windows = account.Windows[1:]
		}
		if account == nil || account.AnsweredAt == nil || len(account.Windows) != 1 || account.Windows[0].UsedPercent != 92 || account.Windows[0].Name != "five_hour" {
			t.Errorf("%s: %+v", who, account)
		}
	}
	var status struct {
		Account struct{ Windows []map[string]any }
	}
	if a.do("GET", "/status", nil, &status); len(status.Account.Windows) != 1 || status.Account.Windows[0]["resets_at"] != "2099-01-01T00:00:00Z" {
		t.Errorf("status %+v", status)
	}
	a.do("POST", "/task/"+id+"/cancel", nil, nil)
	if s := a.end(id); s.State != "cancelled" || s.Limit != nil || s.Account == nil {
		t.Errorf("%s, limit %+v, account %+v", s.State, s.Limit, s.Account)
	}
}

// A pulling agent reports the limit to its director, even if the director was
// unreachable when the run ended and the agent was restarted.
func TestPullReportsLimit(t *testing.T) {
	d := newDirector(t)
	open := filepath.Join(t.TempDir(), "go")
	cfg := config(t, "claude")
	cfg.Name, cfg.Pull, cfg.Account = "far", true, "plan-one"
	cfg.Runner.Binary = fakeClaude(t, warning, begins, "while ! [ -e "+open+" ]; do sleep 0.02; done", rejected, gaveUp)
	stop := pulls(t, cfg, d.server.URL)
	d.say <- api.PullAnswer{Task: task(1, "x")}
	d.hears("the windows", func(r told) bool {
		return r.Account != nil && len(r.Account.Windows) == 1 && r.Account.Name == "plan-one"
	})
	d.shut(true)
	if err := os.WriteFile(open, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(cfg.DataDir, "records", "*")
	testkit.Wait(t, "the end is recorded", func() bool {
		files, _ := filepath.Glob(records)
		return len(files) == 1 && strings.Contains(read(t, files[0]), "usage_limit")
	})
	stop()
	d.shut(false)
	pulls(t, cfg, d.server.URL)
	s := d.finished("queue-1")
	wantError(t, s, "failed", "usage_limit", "limit reached")
	d.hears("the account with the end", func(r told) bool {
		return r.Finished != nil && r.Account != nil && r.Account.Windows[0].UsedPercent == 100
	})
	if s.Limit == nil || !s.Limit.Began || s.Limit.Window != "five_hour" || s.Account == nil || s.Account.Name != "plan-one" {
		t.Errorf("limit %+v, account %+v", s.Limit, s.Account)
	}
	testkit.Wait(t, "a claim with the windows", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		c := d.claims[len(d.claims)-1].Account
		return c != nil && c.Name == "plan-one" && len(c.Windows) == 1 && c.Windows[0].UsedPercent == 100
	})
}
