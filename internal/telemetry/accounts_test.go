package telemetry_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// parked returns an engine at which a run of coder has met the limit of account claude-1, which resets in an
// hour, with another task after it.
func parked(t *testing.T) (*engine.Engine, *telemetry.Metrics, signalbox.Agent, signalbox.Task) {
	t.Helper()
	e, _, a := newEngine(t)
	a.Account = "claude-1"
	e.SetLive(fleet{a})
	m := telemetry.NewMetrics(e)
	news := accounts.News{Name: a.Account, Kind: "claude", Windows: []signalbox.AccountWindow{{Name: "five_hour", UsedPercent: 99.5}, {Name: "five_hour"}}}
	if err := e.ReportAccount(t.Context(), a.Name, news); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := e.Submit(t.Context(), engine.NewTask{Prompt: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	return e, m, a, park(t, e, a, accounts.Usage)
}

// park makes an agent run the next task, up to a limit.
func park(t *testing.T, e *engine.Engine, a signalbox.Agent, kind accounts.LimitKind) signalbox.Task {
	t.Helper()
	c, found, err := e.Claim(t.Context(), a, 0)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	task, err := e.Accept(t.Context(), c.Task, "task-1", "talk-1")
	if err != nil {
		t.Fatal(err)
	}
	task, err = e.Finish(t.Context(), task, engine.Outcome{
		Reason: signalbox.ReasonAgentError, Account: accounts.News{Name: a.Account},
		Limit: &accounts.Limit{Kind: kind, Window: "five_hour", ResetsAt: e.Now().Add(time.Hour), Source: "event", Text: "limit", Began: true},
	})
	if err != nil || task.State != signalbox.Parked {
		t.Fatal(task.State, err)
	}
	return task
}

func TestMetricsOfAccounts(t *testing.T) {
	e, m, a, _ := parked(t)
	text := scrape(t, m)
	has(t, text,
		`signalbox_gate_closed{kind="account",name="claude-1"} 1`, `signalbox_account_open{account="claude-1"} 0`, `signalbox_account_signed_out{account="claude-1"} 0`,
		`signalbox_account_used_percent{account="claude-1",window="five_hour"} 99.5`,
		`signalbox_account_parked_tasks{account="claude-1"} 1`, `signalbox_account_waiting_tasks{account="claude-1"} 1`,
		`signalbox_parked_tasks{gate="account"} 1`, `signalbox_parked_tasks{gate="time"} 0`,
		`signalbox_task_parks_total{gate="account"} 1`, `signalbox_task_parks_total{gate="time"} 0`,
	)
	var until float64
	_, rest, _ := strings.Cut(text, "\nsignalbox_account_closed_until_seconds{account=\"claude-1\"} ")
	if _, err := fmt.Sscan(rest, &until); err != nil || until < 3590 || until > 3602 {
		t.Errorf("it is closed for another %v s, %v", until, err)
	}
	if _, err := e.ChangeAccount(t.Context(), signalbox.AccountEvent{Kind: signalbox.AccountRefused, Account: a.Account}); err != nil {
		t.Fatal(err)
	}
	has(t, scrape(t, m), `signalbox_account_open{account="claude-1"} 0`, `signalbox_account_signed_out{account="claude-1"} 1`, `signalbox_account_closed_until_seconds{account="claude-1"} 0`)
	if _, err := e.ChangeAccount(t.Context(), signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: a.Account}); err != nil {
		t.Fatal(err)
	}
	if err := e.OpenGates(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, scrape(t, m), `signalbox_account_open{account="claude-1"} 1`, `signalbox_account_signed_out{account="claude-1"} 0`,
		`signalbox_account_parked_tasks{account="claude-1"} 0`, `signalbox_account_waiting_tasks{account="claude-1"} 0`, `signalbox_parked_tasks{gate="account"} 0`)
	// An overloaded provider closes no account; the claim of a parked task is not a wait.
	park(t, e, a, accounts.Overloaded)
	has(t, scrape(t, m), `signalbox_account_open{account="claude-1"} 1`, `signalbox_parked_tasks{gate="time"} 1`, `signalbox_task_parks_total{gate="time"} 1`,
		`signalbox_task_wait_seconds_count{queue_kind="work"} 1`, `signalbox_task_wait_seconds_count{queue_kind="agent"} 0`)
}

// Names of accounts come from agents: at most 100 have values, including those that are not open.
func TestMetricsOfManyAccounts(t *testing.T) {
	e, _, _ := newEngine(t)
	m := telemetry.NewMetrics(e)
	for i := range 120 {
		kind := signalbox.AccountReported
		if i == 119 {
			kind = signalbox.AccountRefused
		}
		if _, err := e.ChangeAccount(t.Context(), signalbox.AccountEvent{Kind: kind, Account: fmt.Sprintf("claude-%03d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	text := scrape(t, m)
	if n := strings.Count(text, "\nsignalbox_account_open{"); n != 100 {
		t.Errorf("%d accounts", n)
	}
	has(t, text, `signalbox_account_open{account="claude-119"} 0`, `signalbox_account_open{account="claude-000"} 1`)
}
